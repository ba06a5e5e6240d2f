"""``numba_function`` and ``NumbaFunction``: user functions compiled by Numba, per sample or per batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dalify.api import OperatorInstance, apply_operator
from dalify.registry import catalog

_NAME = "experimental.numba_function"


def numba_function(
    input_0: Any,
    /,
    *inputs: Any,
    run_fn: Callable[..., Any],
    out_types: Sequence[Any],
    in_types: Sequence[Any],
    outs_ndim: Sequence[int],
    ins_ndim: Sequence[int],
    setup_fn: Callable[..., Any] | None = None,
    batch_processing: bool = False,
    blocks: Sequence[int] | None = None,
    threads_per_block: Sequence[int] | None = None,
    device: str | None = None,
    name: str | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: Any = 0,
) -> Any:
    """Call a function compiled by Numba.

    Args:
        input_0: a graph value on the CPU.
        inputs: further graph values.
        run_fn: function that writes its outputs; it is called with the output arrays, then the input arrays.
        out_types: element type of each output.
        in_types: element type of each input.
        outs_ndim: number of dimensions of each output.
        ins_ndim: number of dimensions of each input.
        setup_fn: function that sets the shapes of the outputs; None: they have the shapes of the inputs.
        batch_processing: call ``run_fn`` once per batch, with a list of arrays for each output and input, instead of
            once per sample.
        blocks: accepted but ignored; for functions on the GPU.
        threads_per_block: accepted but ignored; for functions on the GPU.
        device: ``cpu``.
        name: name of the operator.
        preserve: call it even if no output of the pipeline needs it.
        bytes_per_sample_hint: accepted but ignored.

    Returns:
        a graph value, or a list of several.

    Raises:
        ArgumentValueError: the numbers of types and of dimensions differ.
    """
    arguments = {
        "run_fn": run_fn,
        "out_types": out_types,
        "in_types": in_types,
        "outs_ndim": outs_ndim,
        "ins_ndim": ins_ndim,
        "setup_fn": setup_fn,
        "device": device,
        "name": name,
        "preserve": preserve,
    }
    operator = catalog.find("experimental._numba_batch_function" if batch_processing else _NAME)
    return apply_operator(operator, (input_0, *inputs), arguments)


class NumbaFunction(OperatorInstance):
    """``numba_function`` as a class: created with the arguments, called with the inputs.

    See ``numba_function`` for the arguments.
    """

    operator = catalog.find(_NAME)
    public_name = "NumbaFunction"
    schema_name = "NumbaFunction"

    def __init__(
        self,
        run_fn: Callable[..., Any],
        out_types: Sequence[Any],
        in_types: Sequence[Any],
        outs_ndim: Sequence[int],
        ins_ndim: Sequence[int],
        setup_fn: Callable[..., Any] | None = None,
        device: str = "cpu",
        batch_processing: bool = False,
        blocks: Sequence[int] | None = None,
        threads_per_block: Sequence[int] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(device=device, **arguments)
        self.run_fn = run_fn
        self.setup_fn = setup_fn
        self.out_types, self.in_types = out_types, in_types
        self.outs_ndim, self.ins_ndim = outs_ndim, ins_ndim
        self.num_outputs = len(out_types)
        self.batch_processing = batch_processing
        self.blocks, self.threads_per_block = blocks, threads_per_block

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Return the graph values; an argument of the constructor cannot be specified again."""
        own = ("run_fn", "setup_fn", "out_types", "in_types", "outs_ndim", "ins_ndim", "batch_processing")
        return numba_function(*inputs, **{name: getattr(self, name) for name in own}, **self.with_arguments(arguments))
