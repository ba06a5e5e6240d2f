"""Kernels that compute samples of several shapes as one tensor on the device, padded to one shape.

The number of launches for padding, and for cropping the results, does not depend on the number of samples.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.errors import DalifyError
from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.data.torch_unsigned import joined_torch
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.windows_torch import bordered_samples_torch, window_samples_torch

if TYPE_CHECKING:
    from torch import Tensor

# Maximum number of elements of a padded sample for each element of the sample.
_LIMIT = 4
_EXTENTS = "extents"


def on_padded(function: Callable[..., None]) -> Callable[..., None]:
    """Convert a kernel for tensors to a kernel for `DeviceSamples`: it is called with samples padded to one shape.

    The kernel is ``f(out, x, ..., *, parameters)`` with tensors ``[N, ...]``. The padding of inputs repeats the edges
    of each sample; the padding of the result may have any values. A parameter ``extents`` is the shapes of the first
    input without padding, int64 ``[N, ndim]`` on the host; ``spec`` has the padded shape. Samples of one shape are not
    padded. Samples of very different sizes are divided among several calls; their number depends on the ratio of the
    sizes, not on the number of samples.
    """
    signature = inspect.signature(function)
    wanted = {item.name for item in signature.parameters.values() if item.kind is inspect.Parameter.KEYWORD_ONLY}

    @functools.wraps(function)
    def called(out: DeviceSamples, *xs: DeviceSamples | None, **named: Any) -> None:
        ragged = [samples for samples in (out, *xs) if samples is not None and samples.dense is None]
        if not ragged:
            _call(function, wanted, out, xs, named)
            return  # the kernel has filled the tensor
        largest = max(ragged, key=lambda samples: int(samples.shapes.prod(1).sum()))
        groups = similar_shapes(largest.shapes)
        if len(groups) == 1:
            _fill(out, [_call(function, wanted, out, xs, named)], groups)
            return
        results: list[Tensor] = []
        for group in groups:
            inputs = tuple(None if x is None else x.take(group) for x in xs)
            values = {name: _of_group(name, value, group) for name, value in named.items()}
            try:
                results.append(_call(function, wanted, out.take(group), inputs, values))
            except DalifyError as error:
                if error.sample is not None:
                    error.sample = int(group[error.sample])
                raise
        _fill(out, results, groups)

    kept = [item for item in signature.parameters.values() if item.name != _EXTENTS]
    called.__signature__ = signature.replace(parameters=kept)  # pyright: ignore[reportAttributeAccessIssue]
    return called


def _call(
    function: Callable[..., None],
    wanted: set[str],
    out: DeviceSamples,
    xs: tuple[DeviceSamples | None, ...],
    named: dict[str, Any],
) -> Tensor:
    """Call the kernel and return its result: `out.dense` if that exists, otherwise a new padded tensor."""
    tensors = [None if x is None else _padded(x) for x in xs]
    result = out.dense
    if result is None:
        result = torch.empty((len(out), *out.shapes.max(0).tolist()), dtype=out.dtype, device=out.device)
    first = tensors[0] if tensors else None
    if _EXTENTS in wanted:
        named = {**named, _EXTENTS: None if xs[0] is None else xs[0].shapes}
    if "spec" in named and first is not None:
        named = {**named, "spec": named["spec"].replace(shape=tuple(first.shape[1:]))}
    function(result, *tensors, **named)
    return result


def _fill(out: DeviceSamples, results: list[Tensor], groups: list[np.ndarray]) -> None:
    """Fill samples with the front of each row of results [samples of the group, ...]."""
    if results[0] is out.dense:
        return
    if out.ndim == 0:
        out, results = out.flattened(), [result[:, None] for result in results]
    offsets, shapes, start = np.zeros(len(out), np.int64), np.zeros_like(out.shapes), 0
    for result, group in zip(results, groups, strict=True):
        shapes[group] = result.shape[1:]
        offsets[group] = start + np.arange(len(group)) * math.prod(result.shape[1:])
        start += result.numel()
    block = results[0].reshape(-1) if len(results) == 1 else joined_torch([result.reshape(-1) for result in results])
    window_samples_torch(out, DeviceSamples(block, offsets, shapes), np.zeros_like(out.shapes))


def _of_group(name: str, value: Any, group: np.ndarray) -> Any:
    """Return the values of an argument for some of the samples. Constants are tuples, numbers and strings."""
    if isinstance(value, np.ndarray):
        return value[group]
    if name == "draws":
        return type(value)(value.draws, value.samples[group])
    return [value[number] for number in group] if isinstance(value, list) else value


def similar_shapes(shapes: np.ndarray) -> list[np.ndarray]:
    """Divide samples into groups whose shapes are similar enough to be padded to one.

    Args:
        shapes: int64 [N, ndim].

    Returns:
        the indices of the samples of each group, ascending. No sample is padded to more than four times its number of
        elements, or four elements for an empty sample.
    """
    sizes = np.maximum(shapes.prod(1), 1)
    # Samples of similar sizes are adjacent, and those of equal shapes, so that they share a group.
    order = np.lexsort((*shapes.T[::-1], -np.frexp(sizes.astype(np.float64))[1]))
    groups: list[list[int]] = []
    largest, smallest = np.zeros(shapes.shape[1], np.int64), 0
    for number in order.tolist():
        together, least = np.maximum(largest, shapes[number]), min(smallest, int(sizes[number]))
        if groups and together.prod() <= _LIMIT * least:
            groups[-1].append(number)
            largest, smallest = together, least
        else:
            groups.append([number])
            largest, smallest = shapes[number], int(sizes[number])
    return [np.sort(np.array(group)) for group in groups]


def _padded(x: DeviceSamples) -> Tensor:
    """Return samples as one tensor [N, ...] of their largest extents, padded by repeating edges."""
    if x.dense is not None:
        return x.dense
    if x.is_uniform:
        return x.stacked().dense
    padded = DeviceSamples.empty(np.broadcast_to(x.shapes.max(0), x.shapes.shape), x.dtype, x.device)
    if padded.block.numel():
        bordered_samples_torch(padded, x, np.zeros_like(x.shapes), "edge")
    assert padded.dense is not None, "dalify bug: samples of one shape"
    return padded.dense


def inside_torch(x: Tensor, extents: np.ndarray, axes: tuple[int, ...]) -> Tensor | None:
    """Return which elements of a padded tensor are not padding along some axes, as booleans that broadcast to it.

    Args:
        x: [N, ...].
        extents: shapes of the samples, int64 [N, ndim].
        axes: axes of a sample.

    Returns:
        the mask, or None if there is no padding along these axes.
    """
    mask = None
    for axis in axes:
        extent = x.shape[axis + 1]
        if (extents[:, axis] == extent).all():
            continue
        form = [1] * x.ndim
        form[axis + 1] = extent
        limits = uploaded(extents[:, axis], x.device).reshape(-1, *[1] * (x.ndim - 1))
        within = torch.arange(extent, device=x.device).reshape(form) < limits
        mask = within if mask is None else mask & within
    return mask
