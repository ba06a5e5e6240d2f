"""Keep the polygons of chosen masks."""

from __future__ import annotations

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, ShapeError
from dalify.data.dtypes import DALIDataType
from dalify.kernels.frozen import read_only
from dalify.registry import Spec, operator

_GOOD, _REPEATED, _UNKNOWN, _REVERSED, _OUTSIDE = range(5)


@operator(allocating=True, outputs=2)
def select_masks(
    mask_ids: Spec, polygons: Spec, vertices: Spec, /, *, reindex_masks: bool = False
) -> tuple[Spec, Spec]:
    """Keep the polygons of chosen masks, and their vertices.

    A mask may have several polygons; they keep their order. (DALI keeps the last one only.)

    Args:
        mask_ids: integers [k], the masks to keep, in the order in which they shall come; none twice.
        polygons: int32 [p, 3], as the COCO reader gives them: mask, first vertex, and the one behind the last vertex.
        vertices: [v, any] coordinates of any type.
        reindex_masks: number the masks by their place in `mask_ids`.

    Returns:
        polygons int32 [p', 3] and vertices [v', any] of the same type. The polygons count from the first kept vertex;
        vertices that several polygons share are repeated.

    Raises:
        ArgumentValueError: a mask is asked for that has no polygon, or twice.
        IndexingError: a polygon whose vertices are not there.
        DTypeError: masks or polygons that are not integers.
        ShapeError: an input of another form.

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
        raise ShapeError(f"polygons have 3 columns: mask, first vertex, end; got {polygons.shape[1]}.")
    return Spec(DALIDataType.INT32, 2, polygons.layout), Spec(vertices.dtype, 2, vertices.layout)


@njit(nogil=True, cache=True)
def _choose(masks, polygons, vertices, chosen, places, totals):
    """Choose polygons for each sample.

    Args:
        masks: int64 [N, k].
        polygons: int64 [N, p, 3].
        vertices: their number.
        chosen: to fill, int64 [N, p]: polygons in the order of the result.
        places: to fill, int64 [N, p]: where their masks stand in `masks`.
        totals: to fill, int64 [N, 2]: chosen polygons and their vertices.

    Returns:
        what is wrong, in which sample, and with which mask or polygon.
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
    """Write the results of all samples, one behind the other; vertices are rows of bytes."""
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
def _(mask_ids, polygons, vertices, *, reindex_masks):
    count, number = len(mask_ids), polygons.shape[1]
    masks, rows = mask_ids.astype(np.int64), polygons.astype(np.int64)
    chosen, places = np.empty((2, count, number), np.int64)
    totals = np.empty((count, 2), np.int64)
    problem, sample, what = _choose(masks, rows, vertices.shape[1], chosen, places, totals)
    if problem != _GOOD:
        raise _mistake(problem, sample, what, rows, vertices.shape[1])
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


def _mistake(problem: int, sample: int, what: int, polygons: np.ndarray, vertices: int) -> Exception:
    if problem == _REPEATED:
        return ArgumentValueError(f"the mask {what} is asked for twice in mask_ids.", sample=sample)
    if problem == _UNKNOWN:
        known = np.unique(polygons[sample, :, 0]).tolist()
        shown = ", ".join(map(str, known[:10])) + (", …" if len(known) > 10 else "")
        message = f"no polygon belongs to the mask {what} of mask_ids; there are {shown or 'none'}."
        return ArgumentValueError(message, sample=sample)
    mask, first, end = polygons[sample, what].tolist()
    reason = ", which end before they begin" if problem == _REVERSED else f"; there are {vertices} vertices"
    message = f"polygon {what}, of the mask {mask}, has the vertices [{first}, {end}){reason}."
    return IndexingError(message, sample=sample)
