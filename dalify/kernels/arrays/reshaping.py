"""New shapes for the same elements, for ``fn.reshape`` and ``fn.reinterpret``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, IndexingError, ShapeError
from dalify.base.narrow import is_array
from dalify.base.wording import counted
from dalify.data.batch import Batch
from dalify.data.spec import Spec
from dalify.kernels.arrays.axes import check_layout

_MAX_EXTENT = 2.0**53


def wanted_extents(
    old: Sequence[int], shape: Sequence[int] | None, rel_shape: Sequence[float] | None, src_dims: Sequence[int] | None
) -> list[int]:
    """Return the extents requested by the arguments; a negative extent is still to be inferred.

    Args:
        old: shape of the sample.
        shape: extents.
        rel_shape: extents as factors of the extents of the sample.
        src_dims: source axis of each new extent; -1 for a new axis with extent 1.

    Raises:
        ShapeError: there are more relative extents than dimensions.
        IndexingError: a source dimension does not exist.
    """
    if src_dims is not None:
        for source in src_dims:
            if not -1 <= source < len(old):
                raise IndexingError(
                    f"src_dims has the entry {source}, but the samples have {counted(len(old), 'dimension')}."
                )
    if shape is not None:  # src_dims has no effect
        return [int(extent) for extent in shape]
    if src_dims is None:
        sources = list(old)
        if rel_shape is not None and any(factor >= 0 for factor in rel_shape[len(old) :]):
            raise ShapeError(
                f"rel_shape has {counted(len(rel_shape), 'entry')}, but the samples have "
                f"{counted(len(old), 'dimension')}.",
                hint="Specify the dimension of each entry with src_dims; -1 adds a new one.",
            )
    else:
        sources = [1 if source < 0 else old[source] for source in src_dims]
    if rel_shape is None:
        return sources
    if src_dims is not None and len(rel_shape) - len(src_dims) not in (
        0,
        int(len(rel_shape) > 0 and rel_shape[-1] < 0),
    ):
        raise ShapeError(
            f"rel_shape has {counted(len(rel_shape), 'entry')} and src_dims has {len(src_dims)}: they must have the "
            "same length."
        )
    # An inferred extent needs no source.
    return [
        -1 if factor < 0 else math.floor(source * factor + 0.5)
        for source, factor in zip([*sources, *[1] * len(rel_shape)], rel_shape, strict=False)
    ]


def filled_shape(extents: Sequence[int], size: int, old: Sequence[int]) -> tuple[int, ...]:
    """Return extents whose product is `size`, with a negative one inferred.

    Args:
        extents: at most one is negative.
        size: number of elements.
        old: shape of the sample, for error messages.

    Raises:
        ShapeError: there is more than one negative extent, or the number of elements differs.
    """
    known = math.prod(extent for extent in extents if extent >= 0)
    free = sum(extent < 0 for extent in extents)
    if free > 1:
        raise ShapeError(f"shape {tuple(extents)} has {free} negative extents; only one can be inferred.")
    if free and known and size % known == 0:
        return tuple(size // known if extent < 0 else extent for extent in extents)
    if free or known != size:
        raise ShapeError(
            f"a sample with shape {tuple(old)} and {counted(size, 'element')} cannot become {tuple(extents)}."
        )
    return tuple(extents)


def ragged_shapes(
    data: Batch,
    shape_input: Batch | None,
    shape: Any,
    rel_shape: Any,
    src_dims: Any,
    sizes: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return the new shapes of samples as ``out_shapes``; nothing if the rule must compute the shape of each sample.

    Args:
        data: the samples.
        shape_input: new shapes as data, or None.
        shape: extents of each sample, integers [N, ndim], or None.
        rel_shape: factors of each sample, floats [N, ndim] of the same type as for the rule, or None.
        src_dims: source axes of each sample, integers [N, ndim], or None.
        sizes: number of elements of each result, int64 [N]; None: the number of elements of the data.
    """
    if data.dense is not None or (data.device == "gpu" and data.ragged is None):
        return {}
    if shape is not None and src_dims is not None:
        return {}  # the rule checks src_dims
    old = data.shape_array()
    if sizes is None and shape is None and shape_input is None and rel_shape is None and src_dims is None:
        return {"out_shapes": old}
    sizes = old.prod(1) if sizes is None else sizes
    wanted = shape
    if shape_input is not None:
        given = shape_input.dense
        if not is_array(given) or given.ndim != 2 or not (np.abs(given) < _MAX_EXTENT).all():
            return {}
        wanted = given.astype(np.int64)
    if wanted is None:
        wanted = _relative_extents(old, rel_shape, src_dims)
    if not is_array(wanted):
        return {}
    is_free = wanted < 0
    known = np.where(is_free, 1, wanted).prod(1)
    inferred = sizes // np.maximum(known, 1)
    found = np.where(is_free, inferred[:, None], wanted)
    is_right = (is_free.sum(1) <= (known > 0)) & (found.prod(1) == sizes)
    return {"out_shapes": found} if is_right.all() else {}


def _relative_extents(old: np.ndarray, rel_shape: Any, src_dims: Any) -> np.ndarray | None:
    """Return `wanted_extents` for samples with the shapes `old`; None if there may be an error."""
    sources = old
    if src_dims is not None:
        if not is_array(src_dims) or (src_dims < -1).any() or (src_dims >= old.shape[1]).any():
            return None
        padded = np.pad(old, ((0, 0), (0, 1)), constant_values=1)
        sources = np.take_along_axis(padded, src_dims.astype(np.int64), axis=1)
    if rel_shape is None:
        return sources
    count = sources.shape[1]
    if not is_array(rel_shape) or (rel_shape[:, count:] >= 0).any():
        return None
    more = rel_shape.shape[1] - count
    if src_dims is not None and more not in (0, 1):
        return None
    padded = np.pad(sources, ((0, 0), (0, max(more, 0))), constant_values=1)[:, : rel_shape.shape[1]]
    factors = rel_shape.astype(np.float64)
    if not (padded * factors < _MAX_EXTENT).all():  # or not a number
        return None
    return np.where(factors < 0, -1, np.floor(padded * factors + 0.5)).astype(np.int64)


def reshaped_spec(
    data: Spec,
    shape_input: Spec | None,
    shape: Any,
    rel_shape: Any,
    src_dims: Any,
    layout: str | None,
    varies: Any,
) -> tuple[int | None, str, list[int] | None]:
    """Return number of dimensions, layout and requested extents of a result, as far as they are known.

    Args:
        data: spec of the data.
        shape_input: spec of the input with shapes, or None.
        shape: argument, possibly `varies`.
        rel_shape: argument, possibly `varies`.
        src_dims: argument, possibly `varies`.
        layout: argument.
        varies: placeholder of an argument whose value is not known yet.

    Raises:
        ArgumentValueError: arguments contradict each other.
        LayoutError: the layout does not match the dimensions.
    """
    given = [name for name, value in (("shape", shape), ("rel_shape", rel_shape)) if value is not None]
    given += ["a second input"] if shape_input is not None else []
    if len(given) > 1:
        raise ArgumentValueError(f"specify only one of shape, rel_shape and a second input; got {' and '.join(given)}.")
    arguments = (shape, rel_shape, src_dims)
    is_known = shape_input is None and not any(argument is varies for argument in arguments)
    extents = None
    ndim = None
    if is_known:
        rule = next((argument for argument in arguments if argument is not None), None)
        ndim = data.ndim if rule is None else len(rule)
        if data.shape is not None:
            extents = wanted_extents(data.shape, shape, rel_shape, src_dims)
    elif shape_input is not None and shape_input.shape:
        ndim = shape_input.shape[0]
    if layout is None:
        layout = data.layout if ndim is not None and ndim == data.ndim and data.layout else ""
    elif ndim is None and layout:
        ndim = len(layout)
    check_layout(layout, ndim)
    return ndim, layout, extents


def reshaped(x: Any, shape: tuple[int, ...] | None, shape_input: Any) -> Any:
    """Reshape a group, without a copy if possible.

    Args:
        x: array or tensor [N, ...].
        shape: shape of all samples; None if `shape_input` has one per sample.
        shape_input: array or tensor [N, ndim] of integers, or None.

    Returns:
        an array or tensor [N, ...], or a list of N if shapes differ.
    """
    if shape is not None:
        return x.reshape((x.shape[0], *shape))
    size = math.prod(x.shape[1:])
    results = []
    for sample, extents in enumerate(shape_input.tolist()):
        try:
            results.append(filled_shape([int(extent) for extent in extents], size, x.shape[1:]))
        except ShapeError as error:
            error.sample = sample
            raise
    if len(set(results)) == 1:
        return x.reshape((x.shape[0], *results[0]))
    return [x[sample].reshape(extents) for sample, extents in enumerate(results)]
