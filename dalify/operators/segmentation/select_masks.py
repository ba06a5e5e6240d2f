"""Select the polygons of masks."""

from __future__ import annotations

import numpy as np

from dalify.base.array_at import copy_bytes
from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, DTypeError, IndexingError, ShapeError
from dalify.base.wording import counted
from dalify.data import DALIDataType
from dalify.data.rows import Rows, starts_of
from dalify.registry import Spec, operator

_GOOD, _REPEATED, _UNKNOWN, _REVERSED, _OUTSIDE = range(5)


@operator(outputs=2)
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
            raise ShapeError(f"{name} must have {counted(ndim, 'dimension')}; got {spec.ndim}.")
        if name != "vertices" and (spec.dtype is None or not spec.dtype.is_integer):
            raise DTypeError(f"{name} must be integers; got {spec.dtype_text}.")
    if polygons.shape is not None and polygons.shape[1] != 3:
        raise ShapeError(f"polygons must have 3 columns (mask, first vertex, end); got {polygons.shape[1]}.")
    return Spec(DALIDataType.INT32, 2, ""), Spec(vertices.dtype, 2, "")


@njit(nogil=True, cache=True)
def _choose(masks, mask_starts, polygons, polygon_starts, vertex_starts, chosen, places, totals):
    """Select the polygons of each sample.

    Args:
        masks: int64 [k]: masks of all samples.
        mask_starts: the first one of each sample, int64 [N + 1]; likewise for the others.
        polygons: int64 [p, 3].
        polygon_starts: see `mask_starts`.
        vertex_starts: see `mask_starts`.
        chosen: output, int64 [p]: polygons in the order of the result; those of a sample begin at its start.
        places: output, int64 [p]: positions of their masks among the masks of the sample.
        totals: output, int64 [N, 2]: numbers of selected polygons and vertices.

    Returns:
        an error code, the sample, and the mask or polygon.
    """
    for n in range(len(totals)):
        kept, points = 0, 0
        begin, stop, vertices = polygon_starts[n], polygon_starts[n + 1], vertex_starts[n + 1] - vertex_starts[n]
        own, own_masks = polygons[begin:stop], masks[mask_starts[n] : mask_starts[n + 1]]
        for place in range(own_masks.size):
            mask = own_masks[place]
            for other in range(place):
                if own_masks[other] == mask:
                    return _REPEATED, n, mask
            before = kept
            for p in range(own.shape[0]):
                if own[p, 0] == mask:
                    first, end = own[p, 1], own[p, 2]
                    if first > end:
                        return _REVERSED, n, p
                    if first < 0 or end > vertices:
                        return _OUTSIDE, n, p
                    chosen[begin + kept] = begin + p
                    places[begin + kept] = place
                    points += end - first
                    kept += 1
            if kept == before:
                return _UNKNOWN, n, mask
        totals[n, 0] = kept
        totals[n, 1] = points
    return _GOOD, 0, 0


@njit(nogil=True, cache=True)
def _gather(
    out_polygons, out_vertices_at, polygons, polygon_starts, vertices_at, vertex_starts, row_bytes, chosen, places,
    totals, reindex_masks,
):  # fmt: skip
    """Write the results of all samples, concatenated; vertices are given by the address of the first one."""
    row, point = 0, 0
    for n in range(totals.shape[0]):
        begin = point
        for k in range(polygon_starts[n], polygon_starts[n] + totals[n, 0]):
            p = chosen[k]
            first, end = polygons[p, 1], polygons[p, 2]
            out_polygons[row, 0] = places[k] if reindex_masks else polygons[p, 0]
            out_polygons[row, 1] = point - begin
            out_polygons[row, 2] = point - begin + end - first
            row += 1
            source = vertices_at + (vertex_starts[n] + first) * row_bytes
            copy_bytes(out_vertices_at + point * row_bytes, source, (end - first) * row_bytes)
            point += end - first


@select_masks.cpu_new_rows
def _(mask_ids: Rows, polygons: Rows, vertices: Rows, *, reindex_masks: bool) -> tuple[Rows, Rows]:
    masks, rows = mask_ids.values.astype(np.int64), polygons.values.astype(np.int64)
    chosen, places = np.empty((2, len(rows)), np.int64)
    totals = np.empty((len(mask_ids), 2), np.int64)
    problem, sample, what = _choose(
        masks, mask_ids.starts, rows, polygons.starts, vertices.starts, chosen, places, totals
    )
    if problem != _GOOD:
        first, end = polygons.starts[sample : sample + 2]
        raise _error(problem, sample, what, rows[first:end], int(vertices.lengths[sample]))
    starts = [starts_of(totals[:, k].tolist()) for k in range(2)]
    kept_polygons = np.empty((int(starts[0][-1]), 3), np.int32)
    kept_vertices = np.empty((int(starts[1][-1]), vertices.values.shape[1]), vertices.values.dtype)
    source, target = (array.__array_interface__["data"][0] for array in (vertices.values, kept_vertices))
    row_bytes = kept_vertices.itemsize * kept_vertices.shape[1]
    _gather(
        kept_polygons, target, rows, polygons.starts, source, vertices.starts, row_bytes, chosen, places, totals,
        reindex_masks,
    )  # fmt: skip
    return Rows(kept_polygons, starts[0]), Rows(kept_vertices, starts[1])


def _error(problem: int, sample: int, what: int, polygons: np.ndarray, vertices: int) -> Exception:
    """Return the error of a sample, from its polygons and the number of its vertices."""
    if problem == _REPEATED:
        return ArgumentValueError(f"mask_ids contains the mask {what} twice.", sample=sample)
    if problem == _UNKNOWN:
        known = np.unique(polygons[:, 0]).tolist()
        listing = ", ".join(map(str, known[:10])) + (", …" if len(known) > 10 else "")
        message = f"the mask {what} of mask_ids has no polygon; known masks: {listing or 'none'}."
        return ArgumentValueError(message, sample=sample)
    mask, first, end = polygons[what].tolist()
    reason = ", which end before they start" if problem == _REVERSED else f"; there are {counted(vertices, 'vertex')}"
    message = f"polygon {what}, of the mask {mask}, has the vertices [{first}, {end}){reason}."
    return IndexingError(message, sample=sample)
