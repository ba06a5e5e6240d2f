"""``jax_function``: user functions on JAX arrays as operators."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dalify.api import apply_operator
from dalify.base.errors import ArgumentTypeError, SourceError
from dalify.base.optional import torch
from dalify.data import joined_torch
from dalify.plugin.frameworks import framework
from dalify.plugin.jax.arrays import Division, as_jax
from dalify.registry import catalog

__all__ = ["jax_function"]

jax = framework("jax")


def jax_function(
    function: Callable[..., Any] | None = None,
    num_outputs: int = 1,
    output_layouts: str | Sequence[str] | None = None,
    sharding: Any = None,
    device: str | None = None,
    preserve: bool = True,
) -> Any:
    """Convert a function of JAX arrays to a function of graph values.

    The function gets whole batches, ``[N, ...]``, as JAX arrays in the memory of the pipeline: the samples of an input
    must have equal shapes, and the arrays are valid only during the call. Functions transformed by ``jax.jit`` and
    ``jax.vmap`` are supported.

    Args:
        function: function of one array per input; it returns an array, or a tuple of ``num_outputs`` arrays. Without
            it, a decorator is returned.
        num_outputs: number of outputs; with 0 the function is called for its side effects.
        output_layouts: layout of the samples of the outputs: one string for all, or one per output. By default an
            output has the layout of the input of the same index, if it has the same number of dimensions.
        sharding: a JAX sharding: the function gets global arrays, divided over all processes.
        device: ``cpu`` or ``gpu``; None: the device of the inputs.
        preserve: call it even if no output of the pipeline needs it.

    Returns:
        a function that takes graph values and returns one, a list of several, or None for ``num_outputs=0``.

    Raises:
        ArgumentTypeError: ``function`` is not a function.
        ShapeError: (in a run) the samples of an input differ in shape.
        SourceError: (in a run) the function returned a wrong number of values or samples.

    Example:
        >>> @jax_function
        ... @jax.jit
        ... def mirrored(images):
        ...     return images[:, :, ::-1]
    """
    if function is None:
        return functools.partial(
            jax_function,
            num_outputs=num_outputs,
            output_layouts=output_layouts,
            sharding=sharding,
            device=device,
            preserve=preserve,
        )
    if not callable(function):
        raise ArgumentTypeError(f"jax_function needs a function; got {type(function).__name__}.")
    divide = None if sharding is None else Division(sharding, 1)

    def on_arrays(*batches: Any) -> tuple[Any, ...]:
        arrays = [as_jax(x) if divide is None else divide(f"input {index}", [x]) for index, x in enumerate(batches)]
        found = _returned(function(*arrays), num_outputs)
        on_device = bool(batches) and not isinstance(batches[0], np.ndarray)
        return tuple(_own_part(array, on_device) for array in found)

    operator = catalog.find("_batch_function")
    arguments = {
        "function": on_arrays,
        "num_outputs": num_outputs,
        "output_layouts": output_layouts,
        "device": device,
        "preserve": preserve,
    }

    def on_nodes(*inputs: Any) -> Any:
        return apply_operator(operator, inputs, arguments)

    functools.update_wrapper(on_nodes, function, updated=())
    return on_nodes


def _returned(found: Any, count: int) -> Sequence[Any]:
    if count == 0:
        return ()
    values = found if isinstance(found, (tuple, list)) else (found,)
    for value in values:
        if not isinstance(value, jax.Array):
            raise SourceError(
                f"a function of jax_function returned {type(value).__name__} where a JAX array is expected.",
                hint="Return jax arrays: jax.numpy.asarray(value). With num_outputs=0 nothing is expected.",
            )
    if len(values) != count:
        raise SourceError(
            f"a function of jax_function returned {len(values)} arrays where {count} are expected.",
            hint=f"Return {count}, or set num_outputs={len(values)}.",
        )
    return values


def _own_part(array: Any, on_device: bool) -> Any:
    """Return the samples of this process as a NumPy array, or as a torch tensor on a device."""
    shards = {shard.index[0].start or 0 if shard.index else 0: shard.data for shard in array.addressable_shards}
    parts = [shards[start] for start in sorted(shards)]
    if on_device:
        tensors = [torch.from_dlpack(part) for part in parts]
        return tensors[0] if len(tensors) == 1 else joined_torch(tensors)
    hosted = [np.asarray(part) for part in parts]
    return hosted[0] if len(hosted) == 1 else np.concatenate(hosted)
