"""Select the polygons of masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.kernels.arrays.frozen import read_only
from dalify.registry import Spec, operator

_GOOD, _REPEATED, _UNKNOWN, _REVERSED, _OUTSIDE = range(5)


@operator(allocating=True, outputs=2)
def select_masks(
    mask_ids: Spec, polygons: Spec, vertices: Spec, /, *, reindex_masks: bool = False
) -> tuple[Spec, Spec]:
    """Select the polygons and vertices of masks.

    A mask can have several polygons, which keep their order. (DALI keeps only the last one.)

    Args:
        mask_ids: integers [k], the masks to keep, in output order, without repetitions.
        polygons: int32 [p, 3], as returned by the COCO reader: mask, first vertex, and end vertex (exclusive).
        vertices: [v, any] coordinates of any type.
        reindex_masks: number the masks by their position in `mask_ids`.

    Returns:
        polygons int32 [p', 3] and vertices [v', any] of the same type. Polygons index into the returned
        vertices; vertices shared by several polygons are repeated.

    Raises:
        ArgumentValueError: a mask has no polygon, or is repeated.
        IndexingError: the vertices of a polygon do not exist.
        DTypeError: masks or polygons are not integers.
        ShapeError: an input has the wrong number of dimensions or columns.

    Example:
        >>> polygons, vertices = fn.segmentation.select_masks(
        ...     chosen, polygons, vertices, reindex_masks=True
        ... )  # doctest: +SKIP
    """
    for name, spec, ndim in (("mask_ids", mask_ids, 1), ("polygons", polygons, 2), ("vertices", vertices, 2)):
        if spec.ndim != ndim:
            raise ShapeError(f"{name} must have {ndim} dimension{'s' * (ndim > 1)}; got {spec.ndim}.")
        if name != "vertices" and (spec.dtype is None or not spec.dtype.is_integer):
            raise DTypeError(f"{name} must be integers; got {spec.dtype!s}.")
    if polygons.shape is not None and polygons.shape[1] != 3:
        raise ShapeError(f"polygons must have 3 columns (mask, first vertex, end); got {polygons.shape[1]}.")
    return Spec(DALIDataType.INT32, 2, ""), Spec(vertices.dtype, 2, "")


@njit(nogil=True, cache=True)
def _choose(masks, polygons, vertices, chosen, places, totals):
    """Select the polygons of each sample.

    Args:
        masks: int64 [N, k].
        polygons: int64 [N, p, 3].
        vertices: number of vertices.
        chosen: output, int64 [N, p]: polygons in the order of the result.
        places: output, int64 [N, p]: positions of their masks in `masks`.
        totals: output, int64 [N, 2]: numbers of selected polygons and vertices.

    Returns:
        an error code, the sample, and the mask or polygon.
    """
    for n in range(masks.shape[0]):
        kept, points = 0, 0
        for place in range(masks.shape[1]):
            mask = masks[n, place]
            for other in range(place):
                if masks[n, other] == mask:
                    return _REPEATED, n, mask
            before = kept
            for p in range(polygons.shape[1]):
                if polygons[n, p, 0] == mask:
                    first, end = polygons[n, p, 1], polygons[n, p, 2]
                    if first > end:
                        return _REVERSED, n, p
                    if first < 0 or end > vertices:
                        return _OUTSIDE, n, p
                    chosen[n, kept] = p
                    places[n, kept] = place
                    points += end - first
                    kept += 1
            if kept == before:
                return _UNKNOWN, n, mask
        totals[n, 0] = kept
        totals[n, 1] = points
    return _GOOD, 0, 0


@njit(nogil=True, cache=True)
def _gather(out_polygons, out_vertices, polygons, vertices, chosen, places, totals, reindex_masks):
    """Write the results of all samples, concatenated; vertices are rows of bytes."""
    row, point = 0, 0
    for n in range(totals.shape[0]):
        begin = point
        for k in range(totals[n, 0]):
            p = chosen[n, k]
            first, end = polygons[n, p, 1], polygons[n, p, 2]
            out_polygons[row, 0] = places[n, k] if reindex_masks else polygons[n, p, 0]
            out_polygons[row, 1] = point - begin
            out_polygons[row, 2] = point - begin + end - first
            row += 1
            for v in range(first, end):
                for b in range(vertices.shape[2]):
                    out_vertices[point, b] = vertices[n, v, b]
                point += 1


@select_masks.cpu
def _(mask_ids: np.ndarray, polygons: np.ndarray, vertices: np.ndarray, *, reindex_masks: bool) -> Any:
    count, number = len(mask_ids), polygons.shape[1]
    masks, rows = mask_ids.astype(np.int64), polygons.astype(np.int64)
    chosen, places = np.empty((2, count, number), np.int64)
    totals = np.empty((count, 2), np.int64)
    problem, sample, what = _choose(masks, rows, vertices.shape[1], chosen, places, totals)
    if problem != _GOOD:
        raise _error(problem, sample, what, rows, vertices.shape[1])
    ends = totals.cumsum(axis=0)
    coordinates = vertices.shape[2]
    kept_polygons = np.empty((ends[-1, 0], 3), np.int32)
    kept_vertices = np.empty((ends[-1, 1], coordinates), vertices.dtype)
    if coordinates:
        source, target = vertices.view(np.uint8), kept_vertices.view(np.uint8)
    else:
        source, target = np.empty((count, vertices.shape[1], 0), np.uint8), np.empty((len(kept_vertices), 0), np.uint8)
    _gather(kept_polygons, target, rows, read_only(source), chosen, places, totals, reindex_masks)
    if (totals == totals[0]).all():
        return kept_polygons.reshape(count, totals[0, 0], 3), kept_vertices.reshape(count, totals[0, 1], coordinates)
    return np.split(kept_polygons, ends[:-1, 0]), np.split(kept_vertices, ends[:-1, 1])


def _error(problem: int, sample: int, what: int, polygons: np.ndarray, vertices: int) -> Exception:
    if problem == _REPEATED:
        return ArgumentValueError(f"mask_ids contains the mask {what} twice.", sample=sample)
    if problem == _UNKNOWN:
        known = np.unique(polygons[sample, :, 0]).tolist()
        listing = ", ".join(map(str, known[:10])) + (", …" if len(known) > 10 else "")
        message = f"the mask {what} of mask_ids has no polygon; known masks: {listing or 'none'}."
        return ArgumentValueError(message, sample=sample)
    mask, first, end = polygons[sample, what].tolist()
    reason = ", which end before they start" if problem == _REVERSED else f"; there are {vertices} vertices"
    message = f"polygon {what}, of the mask {mask}, has the vertices [{first}, {end}){reason}."
    return IndexingError(message, sample=sample)
