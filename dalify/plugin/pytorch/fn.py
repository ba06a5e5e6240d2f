"""``torch_python_function``: user functions on torch tensors as operators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from dalify.api import OperatorInstance, apply_operator
from dalify.registry import catalog

__all__ = ["TorchPythonFunction", "torch_python_function"]


def torch_python_function(
    *inputs: Any,
    function: Callable[..., Any],
    num_outputs: int = 1,
    batch_processing: bool = False,
    output_layouts: str | list[str] | None = None,
    device: str | None = None,
    name: str | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: Any = 0,
) -> Any:
    """Call a function on torch tensors, per sample or per batch.

    Args:
        inputs: graph values; the function gets one argument per input.
        function: function of the tensors of one sample, which share the pipeline's memory; it returns a tensor or a
            tuple of ``num_outputs`` tensors.
        num_outputs: number of outputs; with 0 the function is called for its side effects.
        batch_processing: call the function once per batch; it then gets, and returns, one list of tensors for each
            input and output.
        output_layouts: layout of the outputs: one string for all, or a list with one per output.
        device: ``cpu`` or ``gpu``; None: the device of the inputs.
        name: name of the operator.
        preserve: call it even if no output of the pipeline needs it.
        bytes_per_sample_hint: accepted but ignored.

    Returns:
        A graph value, a list of several, or None for ``num_outputs=0``.

    Example:
        >>> blurred = torch_python_function(images, function=lambda image: blur(image.float()))
    """

    @functools.wraps(function)
    def on_tensors(*values: Any) -> Any:
        return function(*(_tensors(value) for value in values))

    arguments = {
        "function": on_tensors,
        "num_outputs": num_outputs,
        "batch_processing": batch_processing,
        "output_layouts": output_layouts,
        "device": device,
        "name": name,
        "preserve": preserve,
    }
    return apply_operator(catalog.find("python_function"), inputs, arguments)


class TorchPythonFunction(OperatorInstance):
    """``torch_python_function`` as a class: created with the function, called with the inputs.

    See ``torch_python_function`` for the arguments.
    """

    operator = catalog.find("python_function")
    public_name = "TorchPythonFunction"
    schema_name = "TorchPythonFunction"

    def __init__(
        self,
        function: Callable[..., Any],
        num_outputs: int = 1,
        device: str = "cpu",
        batch_processing: bool = False,
        **arguments: Any,
    ) -> None:
        own = {"num_outputs": num_outputs, "device": device, "batch_processing": batch_processing}
        super().__init__(function=function, **own, **arguments)
        self.function = function
        self.num_outputs = num_outputs
        self.batch_processing = batch_processing

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Return the graph values; an argument of the constructor cannot be specified again."""
        return torch_python_function(*inputs, **self.with_arguments(arguments))


def _tensors(value: Any) -> Any:
    if isinstance(value, list):
        return [_tensors(item) for item in value]
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value
