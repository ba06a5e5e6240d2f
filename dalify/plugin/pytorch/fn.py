"""``torch_python_function``: the user's own functions on torch tensors, as an operator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from dalify.api.functions import use
from dalify.registry import catalogue

__all__ = ["torch_python_function"]


def torch_python_function(
    *inputs: Any,
    function: Callable[..., Any],
    num_outputs: int = 1,
    batch_processing: bool = False,
    output_layouts: str | list[str] | None = None,
    **arguments: Any,
) -> Any:
    """Call a function on torch tensors, for one batch after the other.

    Args:
        inputs: graph values; the function gets one argument for each.
        function: gets the tensors of one sample, which view the pipeline's memory, and returns a tensor or a tuple of
            ``num_outputs`` tensors.
        num_outputs: number of outputs; with 0 it is called for what it does.
        batch_processing: call the function once per batch; it then gets, and returns, one list of tensors for each
            input and output.
        output_layouts: layout of the outputs: one text for all, or a list with one for each.
        arguments: of every operator: device, name, preserve.

    Returns:
        a graph value, a list of several, or None for ``num_outputs=0``.

    Example:
        >>> blurred = torch_python_function(images, function=lambda image: blur(image.float()))
    """

    @functools.wraps(function)
    def on_tensors(*values: Any) -> Any:
        return function(*(_tensors(value) for value in values))

    arguments.update(
        function=on_tensors, num_outputs=num_outputs, batch_processing=batch_processing, output_layouts=output_layouts
    )
    return use(catalogue.find("python_function"), inputs, arguments)


def _tensors(value: Any) -> Any:
    if isinstance(value, list):
        return [_tensors(item) for item in value]
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value
