"""Paste regions of several images on one canvas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, ShapeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.kernels.convert import saturate_cast, saturate_cast_torch
from dalify.kernels.frames import visual_layout
from dalify.registry import PerSample, Spec, operator

_LAYOUTS = ("HWC", "FHWC")


@operator(batchwise=True)
def multi_paste(
    x: Spec,
    /,
    *inputs: Spec,
    dtype: DALIDataType | None = None,
    in_anchors: PerSample[list[int]] | None = None,
    in_anchors_rel: PerSample[list[float]] | None = None,
    in_ids: PerSample[list[int]] | None = None,
    out_anchors: PerSample[list[int]] | None = None,
    out_anchors_rel: PerSample[list[float]] | None = None,
    output_size: PerSample[list[int]] | None = None,
    shapes: PerSample[list[int]] | None = None,
    shapes_rel: PerSample[list[float]] | None = None,
) -> Spec:
    """Paste regions of several images on one canvas; what no region covers is 0, later regions cover earlier ones.

    With `in_ids` the regions come from samples of the one input batch; without, region i comes from input i. Relative
    anchors are rounded down, relative extents up.

    Args:
        x: images HWC or sequences FHWC, any numeric type.
        inputs: more of them, of the same type.
        dtype: type of the result, the input's by default; integers are rounded half away from zero and saturated.
        in_anchors: upper left corners of the regions, (y, x) each; by default 0.
        in_anchors_rel: the same as parts of the source image's extents.
        in_ids: positions in the batch of the images that the regions come from.
        out_anchors: where on the canvas the upper left corners lie; by default 0.
        out_anchors_rel: the same as parts of the canvas.
        output_size: height and width of the canvas; by default that of the inputs, if they all have the same.
        shapes: height and width of the regions; by default all from the corner on.
        shapes_rel: the same as parts of the source image's extents.

    Returns:
        Same layout, extents `output_size`.

    Raises:
        ArgumentValueError: an argument together with its relative twin, or `in_ids` with several inputs.
        IndexingError: a region that is not within its image or the canvas, or an id that is not in the batch.
        ShapeError: images of different extents without `output_size`, or a wrong number of numbers.

    Example:
        >>> mosaic = fn.multi_paste(
        ...     images, in_ids=[0, 1], out_anchors=[0, 0, 0, 300], output_size=[300, 600]
        ... )  # doctest: +SKIP
    """
    visual_layout(x, _LAYOUTS)
    for name, one, other in (
        ("in_anchors", in_anchors, in_anchors_rel),
        ("out_anchors", out_anchors, out_anchors_rel),
        ("shapes", shapes, shapes_rel),
    ):
        if one is not None and other is not None:
            raise ArgumentValueError(f"give either `{name}` or `{name}_rel`.")
    if in_ids is not None and inputs:
        raise ArgumentValueError("`in_ids` chooses from one input; leave it out to paste from several inputs.")
    if any(other.dtype != x.dtype for other in inputs):
        raise DTypeError("all inputs must have the same element type.")
    return x.replace(dtype=x.dtype if dtype is None else dtype, shape=None)


def _pairs(values: Any, n: int, count: int, name: str) -> np.ndarray | None:
    """Return an argument of sample n as [count, 2], or None."""
    if values is None:
        return None
    flat = np.asarray(values[n]).reshape(-1)
    if flat.size != 2 * count:
        raise ShapeError(f"{name} needs a y and an x for each of the {count} regions; got {flat.size} numbers.")
    return flat.reshape(count, 2)


def _placed(
    absolute: np.ndarray | None, relative: np.ndarray | None, extents: np.ndarray, rounding: Callable[..., Any]
) -> np.ndarray | None:
    """Return corners or extents in pixels, whichever way they are given; None where they are not."""
    if absolute is not None:
        return absolute.astype(np.int64)
    if relative is None:
        return None
    return rounding(relative.astype(np.float32) * extents.astype(np.float32)).astype(np.int64)


def _check_inside(start: np.ndarray, extent: np.ndarray, bounds: np.ndarray, what: str) -> None:
    if (start < 0).any() or (extent < 0).any() or (start + extent > bounds).any():
        raise IndexingError(
            f"the region at {start.tolist()} of {extent.tolist()} pixels is not within the {what} of {bounds.tolist()}."
        )


def _canvas_size(sources: list[Any], output_size: Any, n: int) -> np.ndarray:
    if output_size is not None:
        size = np.asarray(output_size[n]).reshape(-1).astype(np.int64)
        if len(size) != 2 or size.min() < 0:
            raise ShapeError(f"output_size must be a height and a width; got {size.tolist()}.")
        return size
    sizes = {tuple(source.shape[-3:-1]) for source in sources}
    if len(sizes) != 1:
        raise ShapeError("images of different extents need `output_size`.", hint="output_size=[height, width]")
    return np.array(sizes.pop())


def _paste(
    inputs: tuple[Any, ...], make: Any, fill: Any, ids: Any, output_size: Any, arguments: dict[str, Any]
) -> list[Any]:
    """Return the canvases. `make` makes one, `fill` writes a region into it; both know the device."""
    first = inputs[0]
    canvases: list[Any] = []
    for n in range(len(first)):
        if ids is None:
            sources = [batch.samples[n] for batch in inputs]
        else:
            chosen = np.asarray(ids[n]).reshape(-1).tolist()
            if any(not 0 <= index < len(first) for index in chosen):
                raise IndexingError(
                    f"in_ids must lie between 0 and {len(first) - 1}, the last of the batch; got {chosen}."
                )
            sources = [first.samples[index] for index in chosen]
        count = len(sources)
        given = {name: _pairs(values, n, count, name) for name, values in arguments.items()}
        everything = sources if ids is None else first.samples
        size = _canvas_size(everything, output_size, n)
        canvas = make(sources[0] if sources else first.samples[n], size)
        for region, source in enumerate(sources):
            numbers = {name: None if values is None else values[region] for name, values in given.items()}
            extents = np.array(source.shape[-3:-1])
            corner = _placed(numbers["in_anchors"], numbers["in_anchors_rel"], extents, np.floor)
            corner = np.zeros(2, np.int64) if corner is None else corner
            shape = _placed(numbers["shapes"], numbers["shapes_rel"], extents, np.ceil)
            shape = extents - corner if shape is None else shape
            place = _placed(numbers["out_anchors"], numbers["out_anchors_rel"], size, np.floor)
            place = np.zeros(2, np.int64) if place is None else place
            _check_inside(corner, shape, extents, "image")
            _check_inside(place, shape, size, "canvas")
            (top, left), (y, x), (height, width) = corner.tolist(), place.tolist(), shape.tolist()
            fill(
                canvas[..., y : y + height, x : x + width, :],
                source[..., top : top + height, left : left + width, :],
            )
        canvases.append(canvas)
    return canvases


@multi_paste.cpu
def _(
    *inputs, in_anchors, in_anchors_rel, in_ids, out_anchors, out_anchors_rel, output_size, shapes, shapes_rel, out_spec
):
    def make(like: np.ndarray, size: np.ndarray) -> np.ndarray:
        return np.zeros((*like.shape[:-3], *size.tolist(), like.shape[-1]), out_spec.dtype.numpy)

    regions = {
        "in_anchors": in_anchors, "in_anchors_rel": in_anchors_rel, "out_anchors": out_anchors,
        "out_anchors_rel": out_anchors_rel, "shapes": shapes, "shapes_rel": shapes_rel,
    }  # fmt: skip
    return _paste(inputs, make, saturate_cast, in_ids, output_size, regions)


@multi_paste.gpu
def _(
    *inputs, in_anchors, in_anchors_rel, in_ids, out_anchors, out_anchors_rel, output_size, shapes, shapes_rel, out_spec
):
    dtype = getattr(torch, out_spec.dtype.numpy.name)

    def make(like: Any, size: np.ndarray) -> Any:
        return torch.zeros((*like.shape[:-3], *size.tolist(), like.shape[-1]), dtype=dtype, device=like.device)

    regions = {
        "in_anchors": in_anchors, "in_anchors_rel": in_anchors_rel, "out_anchors": out_anchors,
        "out_anchors_rel": out_anchors_rel, "shapes": shapes, "shapes_rel": shapes_rel,
    }  # fmt: skip
    return _paste(inputs, make, saturate_cast_torch, in_ids, output_size, regions)
