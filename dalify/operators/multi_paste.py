"""Paste regions of several images onto one canvas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, LimitError, ShapeError
from dalify.base.limits import check_shape
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.data import Batch, DALIDataType, DeviceSamples, torch_dtype
from dalify.data.origin import joined_origin
from dalify.data.torch_unsigned import joined_torch
from dalify.kernels.arrays.convert import saturate_cast
from dalify.kernels.images.frames import flat_matrices, visual_layout
from dalify.kernels.images.paste_regions import paste_regions, paste_regions_torch
from dalify.registry import Matrix, Memory, Parameters, PerSample, Spec, Vectors, argument_names, operator

_IMAGE_DIMENSIONS = 3
_LAYOUTS = ("HWC", "FHWC")


@dataclass(slots=True)
class Regions(Parameters):
    """Where regions come from and where they are pasted.

    Attributes:
        in_anchors: upper left corners of the regions, (y, x) each; by default 0.
        in_anchors_rel: the same as fractions of the extents of the source image.
        out_anchors: positions of the upper left corners on the canvas; by default 0.
        out_anchors_rel: the same as fractions of the extents of the canvas.
        shapes: height and width of the regions; by default to the end of the image.
        shapes_rel: the same as fractions of the extents of the source image.
    """

    in_anchors: PerSample[Matrix[list[int]]] | None = None
    in_anchors_rel: PerSample[Matrix[list[float]]] | None = None
    out_anchors: PerSample[Matrix[list[int]]] | None = None
    out_anchors_rel: PerSample[Matrix[list[float]]] | None = None
    shapes: PerSample[Matrix[list[int]]] | None = None
    shapes_rel: PerSample[Matrix[list[float]]] | None = None

    def check(self) -> None:
        """Raise ArgumentValueError for an argument together with its relative counterpart."""
        for name in ("in_anchors", "out_anchors", "shapes"):
            if getattr(self, name) is not None and getattr(self, f"{name}_rel") is not None:
                raise ArgumentValueError(f"specify either {name} or {name}_rel, not both.")

    def numbers(self, owners: np.ndarray, count: int) -> dict[str, np.ndarray | None]:
        """Return each argument as [regions, 2] for all regions of `count` samples; see `_numbers`."""
        return {name: _numbers(getattr(self, name), owners, count, name) for name in _REGION_ARGUMENTS}


_REGION_ARGUMENTS = argument_names(Regions)


@operator(alphabetical=True)
def multi_paste(
    x: Spec,
    /,
    *inputs: Spec,
    dtype: DALIDataType | None = None,
    in_ids: PerSample[list[int]] | None = None,
    output_size: PerSample[list[int]] | None = None,
    regions: Regions,
) -> Spec:
    """Paste regions of several images onto one canvas of zeros; later regions overwrite earlier ones.

    With `in_ids` the regions come from samples of the single input batch; otherwise region i comes from input i.
    Relative anchors are rounded down, relative extents up.

    Args:
        x: images HWC or sequences FHWC, any numeric type.
        inputs: further inputs, of the same type.
        dtype: type of the result, the input's by default; integers are rounded half away from zero and saturated.
        in_ids: indices in the batch of the images that the regions come from.
        output_size: height and width of the canvas; by default the size of the inputs, if all are equal.

    Returns:
        Same layout, extents `output_size`.

    Raises:
        ArgumentValueError: an argument together with its relative counterpart, or `in_ids` with several inputs.
        IndexingError: a region is not inside its image or the canvas, or an id is not in the batch.
        ShapeError: images of different extents without `output_size`, different numbers of channels, or an argument
            with the wrong number of values.

    Example:
        >>> mosaic = fn.multi_paste(
        ...     images, in_ids=[0, 1], out_anchors=[0, 0, 0, 300], shapes=[300, 300] * 2, output_size=[300, 600]
        ... )  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, _LAYOUTS))
    regions.check()
    if in_ids is not None and inputs:
        raise ArgumentValueError("in_ids requires a single input; omit it for several inputs.")
    if any(other.dtype != x.dtype for other in inputs):
        raise DTypeError("all inputs must have the same element type.")
    return x.replace(dtype=x.dtype if dtype is None else dtype, shape=None)


def _numbers(values: Vectors | None, owners: np.ndarray, count: int, name: str) -> np.ndarray | None:
    """Return an argument as [regions, 2] for all regions of the batch, or None. `owners`: the sample of each region."""
    if values is None:
        return None
    rows: Vectors = flat_matrices(values, 2, name)
    expected = 2 * np.bincount(owners, minlength=count)
    sizes = np.full(count, rows[0].size) if isinstance(rows, np.ndarray) else np.array([row.size for row in rows])
    if (sizes != expected).any():
        sample = int((sizes != expected).argmax())
        raise ShapeError(
            f"{name} must have {counted(expected[sample], 'number')} (y and x of each region); got {sizes[sample]}."
        )
    return _concatenated(rows).reshape(-1, 2)


def _concatenated(values: Vectors) -> np.ndarray:
    """Return the elements of an argument, sample by sample."""
    return values.reshape(-1) if isinstance(values, np.ndarray) else np.concatenate([row.reshape(-1) for row in values])


def _to_pixels(
    absolute: np.ndarray | None, relative: np.ndarray | None, extents: np.ndarray, rounding: Callable[..., Any]
) -> np.ndarray | None:
    """Return corners or extents in pixels from absolute or relative values; None if neither is specified."""
    if absolute is not None:
        return absolute.astype(np.int64)
    if relative is None:
        return None
    return rounding(relative.astype(np.float32) * extents.astype(np.float32)).astype(np.int64)


def _check_inside(start: np.ndarray, extent: np.ndarray, bounds: np.ndarray, what: str) -> None:
    wrong = ((start < 0) | (extent < 0) | (start + extent > bounds)).any(axis=1)
    if wrong.any():
        place, size, limit = (numbers[wrong.argmax()].tolist() for numbers in (start, extent, bounds))
        raise IndexingError(f"the region at {place} of {size} pixels is not inside the {what} of {limit}.")


def _canvas_sizes(inputs: tuple[Batch, ...], is_mixed: bool, output_size: Vectors | None) -> np.ndarray:
    """Return height and width of each canvas, int [N, 2]; `is_mixed`: any sample may be pasted on any canvas."""
    if output_size is not None:
        for size in output_size if isinstance(output_size, list) else [output_size.min(axis=0)]:
            if len(size) != 2 or size.min() < 0:
                raise ShapeError(f"output_size must be a height and a width; got {size.tolist()}.")
        return np.asarray(output_size, np.int64)
    extents = np.array([[shape[-3:-1] for shape in batch.shapes()] for batch in inputs])
    if (extents != (extents[:1, :1] if is_mixed else extents[:1])).any():
        raise ShapeError("output_size is required for images of different extents.", hint="output_size=[height, width]")
    return extents[0]


def _region_sources(inputs: tuple[Batch, ...], in_ids: Vectors | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the canvas and the source sample of each region of the batch, in order.

    Samples are numbered input by input.
    """
    first = inputs[0]
    if in_ids is None:
        order = np.arange(len(inputs) * len(first)).reshape(len(inputs), len(first))
        return np.repeat(np.arange(len(first)), len(inputs)), order.T.reshape(-1)
    chosen = _concatenated(in_ids)
    wrong = (chosen < 0) | (chosen >= len(first))
    owners = np.repeat(
        np.arange(len(first)), in_ids[0].size if isinstance(in_ids, np.ndarray) else [row.size for row in in_ids]
    )
    if wrong.any():
        raise IndexingError(
            f"in_ids must be between 0 and {len(first) - 1}, the last index of the batch; "
            f"got {in_ids[owners[wrong.argmax()]].reshape(-1).tolist()}."
        )
    return owners, chosen.astype(np.int64)


def _origins(inputs: tuple[Batch, ...], owners: np.ndarray, chosen: np.ndarray) -> list[str | None] | None:
    """Return the origin of each canvas, joined from the origins of its regions; None if no image has an origin."""
    if all(batch.origins is None for batch in inputs):
        return None
    known = [origin for batch in inputs for origin in (batch.origins or [None] * len(batch))]
    of_canvas: list[list[str | None]] = [[] for _ in range(len(inputs[0]))]
    for owner, source in zip(owners.tolist(), chosen.tolist(), strict=True):
        of_canvas[owner].append(known[source])
    return [joined_origin(origins) for origins in of_canvas]


def _placed(
    inputs: tuple[Batch, ...],
    sources: tuple[np.ndarray, np.ndarray],
    is_mixed: bool,
    output_size: Vectors | None,
    regions: Regions,
) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Return the shapes of the canvases, and the regions as `paste_regions` takes them, int64 [regions, 7]."""
    owners, chosen = sources
    images = [shape for batch in inputs for shape in batch.shapes()]
    if len({(*shape[:-3], shape[-1]) for shape in images}) > 1:
        raise ShapeError(
            "all images must have the same number of channels, and all sequences the same number of frames."
        )
    sizes = _canvas_sizes(inputs, is_mixed, output_size)
    numbers = regions.numbers(owners, len(inputs[0]))
    extents = np.array([shape[-3:-1] for shape in images], np.int64).reshape(-1, 2)[chosen]
    corners = _to_pixels(numbers["in_anchors"], numbers["in_anchors_rel"], extents, np.floor)
    corners = np.zeros_like(extents) if corners is None else corners
    shapes = _to_pixels(numbers["shapes"], numbers["shapes_rel"], extents, np.ceil)
    shapes = extents - corners if shapes is None else shapes
    places = _to_pixels(numbers["out_anchors"], numbers["out_anchors_rel"], sizes[owners], np.floor)
    places = np.zeros_like(extents) if places is None else places
    _check_inside(corners, shapes, extents, "image")
    _check_inside(places, shapes, sizes[owners], "canvas")
    expected = [(*images[0][:-3], *size, images[0][-1]) for size in sizes.tolist()]
    return expected, np.concatenate([owners[:, None], places, corners, shapes], axis=1)


def _paste(
    inputs: tuple[Batch, ...], chosen: np.ndarray, table: np.ndarray, expected: list[tuple[int, ...]], memory: Memory
) -> Any:
    """Return the canvases as one array or a list of arrays, on the CPU."""
    first = inputs[0]
    is_uniform = len(set(expected)) == 1
    canvases: Any = (
        memory(0, len(first), expected[0])
        if is_uniform
        else [memory(n, 1, shape)[0] for n, shape in enumerate(expected)]
    )
    dense = first.dense if len(inputs) == 1 and first.ndim == _IMAGE_DIMENSIONS else None
    if dense is not None and is_uniform and canvases.dtype == dense.dtype:
        paste_regions(canvases, np.ascontiguousarray(dense), chosen, table)
        return canvases
    images = [sample for batch in inputs for sample in batch.samples]
    for canvas in [canvases] if is_uniform else canvases:
        canvas[...] = 0
    for index, (owner, y, x, top, left, height, width) in zip(chosen.tolist(), table.tolist(), strict=True):
        saturate_cast(
            canvases[owner][..., y : y + height, x : x + width, :],
            images[index][..., top : top + height, left : left + width, :],
        )
    return canvases


def _paste_torch(
    inputs: tuple[Batch, ...],
    chosen: np.ndarray,
    table: np.ndarray,
    expected: list[tuple[int, ...]],
    dtype: DALIDataType,
) -> DeviceSamples:
    """Return the canvases, on the device."""
    for sample, shape in enumerate(expected):
        try:
            check_shape(shape, dtype.numpy.itemsize, "a result")
        except LimitError as error:
            error.sample = sample
            raise
    parts = [DeviceSamples.of_batch(batch) for batch in inputs]
    images = parts[0]
    if len(parts) > 1:
        starts = np.cumsum([0, *(part.block.numel() for part in parts[:-1])])
        offsets = np.concatenate([part.offsets + start for part, start in zip(parts, starts.tolist(), strict=True)])
        block = joined_torch([part.block for part in parts])
        images = DeviceSamples(block, offsets, np.concatenate([part.shapes for part in parts]))
    canvases = DeviceSamples.empty(np.array(expected, np.int64), torch_dtype(dtype), images.device)
    if canvases.block.numel():
        paste_regions_torch(canvases, images, chosen, table)
    return canvases


@multi_paste.cpu_batch
@multi_paste.gpu_batch
def _(
    *inputs: Batch,
    in_ids: Vectors | None,
    output_size: Vectors | None,
    regions: Regions,
    memory: Memory,
    out_spec: Spec,
) -> Batch:
    owners, chosen = _region_sources(inputs, in_ids)
    expected, table = _placed(inputs, (owners, chosen), in_ids is not None, output_size, regions)
    origins = _origins(inputs, owners, chosen)
    layout = out_spec.layout or ""
    if inputs[0].device == "cpu":
        canvases = _paste(inputs, chosen, table, expected, memory)
        samples = canvases if isinstance(canvases, list) else None
        return Batch(None if samples else canvases, samples, layout, "cpu", origins)
    assert out_spec.dtype is not None, "dalify bug: a result without a type"
    found = _paste_torch(inputs, chosen, table, expected, out_spec.dtype)
    if found.dense is not None:
        return Batch(found.dense, None, layout, "gpu", origins)
    ragged = found.block.view(torch.uint8), found.offsets * out_spec.dtype.numpy.itemsize, found.shapes
    return Batch(None, None, layout, "gpu", origins, out_spec.dtype, ragged)
