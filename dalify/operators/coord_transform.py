"""Apply a matrix and a translation to points or vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from dalify.base.narrow import is_array, is_list
from dalify.base.small_arrays import equal_rows, rows_at
from dalify.base.wording import counted
from dalify.data import Batch, DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.windows_torch import fill_by_kind
from dalify.kernels.images.color_matrix import apply_matrix, apply_matrix_torch
from dalify.kernels.images.frames import flat_matrices
from dalify.registry import VARIES_BY_FRAME, AnySamples, Matrix, PerFrame, Spec, Vectors, operator


@operator
def coord_transform(
    x: Spec,
    /,
    *,
    M: PerFrame[Matrix[float | list[float]]] | None = None,  # noqa: N803 -- DALI's name
    MT: PerFrame[Matrix[float | list[float]]] | None = None,  # noqa: N803
    T: PerFrame[float | list[float]] | None = None,  # noqa: N803
    dtype: DALIDataType = DALIDataType.FLOAT,
) -> Spec:
    """Apply a matrix and a translation to points or vectors: ``out = M * x + T``.

    Args:
        x: vectors of n numbers in the last axis; at least two axes; sequences if the layout starts with F.
        M: matrix of m rows and n columns, in row-major order; a single number is multiplied by the identity; by
            default the identity. One matrix per sample, or per frame if the argument's layout starts with F. If the
            input is not a sequence, it is then repeated for each frame.
        MT: M and T side by side, m rows of n + 1 numbers; instead of both.
        T: translation: m numbers, or one for all.
        dtype: type of the result; integers are rounded half away from zero and saturated.

    Returns:
        The same axes and layout, with m numbers in the last axis. An axis F comes first if an argument has frames and
        the input does not.

    Raises:
        ArgumentValueError: `MT` together with `M` or `T`.
        ShapeError: fewer than two axes, or arguments whose sizes do not match the vectors.
        DTypeError: elements are booleans.

    Example:
        >>> points = fn.coord_transform(points, MT=fn.transforms.rotation(angle=30))  # doctest: +SKIP
    """
    if MT is not None and (M is not None or T is not None):
        raise ArgumentValueError("specify either MT, or M and T.")
    if DALIDataType.BOOL in (x.dtype, dtype):
        raise DTypeError("coordinates must be numbers, not booleans.")
    is_sequence = (x.layout or "").startswith("F")
    if x.ndim is not None and x.ndim < 2 + is_sequence:
        raise ShapeError(
            f"{'a frame of ' if is_sequence else ''}the input must have at least two axes; the last one holds the "
            "numbers of a vector.",
            hint="x[newaxis]",
        )
    result = x.replace(dtype=dtype)
    if not is_sequence and any(value is VARIES_BY_FRAME for value in (M, MT, T)):
        ndim = None if x.ndim is None else x.ndim + 1
        return result.replace(ndim=ndim, layout=f"F{x.layout}" if x.layout else x.layout, shape=None)
    if x.shape is None:
        return result
    rows = _rows(M, MT, x.shape[-1])
    return result.replace(shape=(*x.shape[:-1], rows))


def _rows(m: Any, mt: Any, columns: int) -> int:
    """Return the number of rows of the matrix: the number of columns if the argument is unknown or a single number."""
    given, width = (mt, columns + 1) if mt is not None else (m, columns)
    if not isinstance(given, (tuple, np.ndarray)):
        return columns
    size = given.shape[-1] if isinstance(given, np.ndarray) else len(given)
    if size == 1:
        return columns
    if not width or not size or size % width:
        raise ShapeError(
            f"{counted(size, 'number')} do not form a matrix with {counted(width, 'column')}, for vectors of "
            f"{counted(columns, 'number')}."
        )
    return size // width


@coord_transform.prepare
def _(x: Batch, *, M: Vectors | None, MT: Vectors | None, T: Vectors | None) -> dict[str, Any]:  # noqa: N803
    M, MT = _flat(M, MT, x.shape_array()[:, -1])  # noqa: N806 -- DALI's names
    frames = None if x.layout.startswith("F") else _frames(M, MT, T)
    if frames is None and M is None and MT is None:
        return {}
    if frames is None and x.dense is not None and all(values is None or is_array(values) for values in (M, MT)):
        shape = x.dense.shape[1:]
        rows = _rows(M, MT, shape[-1])
        return {} if rows == shape[-1] else {"out_shapes": (*shape[:-1], rows)}
    shapes = x.shape_array()
    rows = _rows_of_samples(M, MT, shapes[:, -1])
    if frames is None and (rows == shapes[:, -1]).all():
        return {}
    results = np.concatenate([shapes[:, :-1], rows[:, None]], axis=1)
    if frames is None:
        return {"out_shapes": results}
    results = np.concatenate([np.array(frames, np.int64)[:, None], results], axis=1)
    return {"out_shapes": results, "out_layout": f"F{x.layout}" if x.layout else ""}


def _flat(m: Any, mt: Any, columns: np.ndarray) -> tuple[Any, Any]:
    """Return M and MT row by row, for samples with as many columns; see `flat_matrices`."""
    m = None if m is None else flat_matrices(m, columns.tolist(), "M")
    return m, None if mt is None else flat_matrices(mt, (columns + 1).tolist(), "MT")


def _rows_of_samples(m: Vectors | None, mt: Vectors | None, columns: np.ndarray) -> np.ndarray:
    """Return the number of rows of each matrix, int64 [N]."""
    given = m if mt is None else mt
    if given is None or (is_array(given) and given.shape[-1] == 1):
        return columns
    if is_array(given) and (columns == columns[0]).all():
        return np.full(len(columns), _rows(m, mt, int(columns[0])), np.int64)
    rows = np.empty(len(columns), np.int64)
    for n, number in enumerate(columns.tolist()):
        try:
            rows[n] = _rows(None if m is None else m[n], None if mt is None else mt[n], number)
        except ShapeError as error:
            error.sample = n
            raise
    return rows


def _frames(*arguments: Any) -> list[int] | None:
    """Return the number of frames of the arguments per sample; None if no argument has frames.

    Raises:
        ShapeError: two arguments differ.
    """
    found: list[int] | None = None
    for values in arguments:
        if values is None or values[0].ndim < 2:
            continue
        counts = [len(value) for value in values]
        # A single frame broadcasts.
        found = counts if found is None else [max(pair) for pair in zip(found, counts, strict=True)]
        for index, (count, largest) in enumerate(zip(counts, found, strict=True)):
            if count not in (1, largest):
                raise ShapeError(
                    f"M, MT and T must have the same number of frames; got {count} and {largest}.", sample=index
                )
    return found


def _columns(values: Any, count: int, frames: int, name: str) -> np.ndarray:
    """Return an argument as [N * frames, k]."""
    array = np.stack(values) if isinstance(values, list) else np.asarray(values)
    if array.ndim == 3:
        if array.shape[1] == 1:
            return np.repeat(array[:, 0], frames, axis=0)
        if array.shape[1] != frames:
            raise ShapeError(f"{name} has {counted(array.shape[1], 'frame')}; the input has {frames}.")
        return array.reshape(count * frames, -1)
    return np.repeat(array, frames, axis=0) if frames > 1 else array


def _map(count: int, sizes: Sequence[int], m: Any, mt: Any, t: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return matrices [N * frames, rows, columns] and translations [N * frames, rows].

    Args:
        count: N, number of samples.
        sizes: numbers of frames, columns and rows.
        m: argument M; None if not given, like the others.
        mt: argument MT.
        t: argument T.
    """
    frames, columns, rows = sizes
    translation = np.zeros((count * frames, rows), np.float32) if t is None else np.empty(0, np.float32)
    whole = m if mt is None else mt
    if whole is None:
        matrix = np.repeat(np.eye(columns, dtype=np.float32)[None], count * frames, axis=0)
    else:
        given = _columns(whole, count, frames, "M" if mt is None else "MT")
        if given.shape[1] == 1:
            matrix = given[:, :, None] * np.eye(columns, dtype=np.float32)
        else:
            matrix = given.reshape(count * frames, rows, -1)
    if mt is not None and matrix.shape[2] > columns:
        matrix, translation = matrix[:, :, :-1], matrix[:, :, -1]
    if t is not None:
        shift = _columns(t, count, frames, "T")
        if shift.shape[1] not in (1, rows):
            raise ShapeError(f"T must have {counted(rows, 'number')} or one; got {shift.shape[1]}.")
        translation = np.broadcast_to(shift, (count * frames, rows))
    return matrix, translation


def _is_sequence(spec: Spec) -> bool:
    return (spec.layout or "").startswith("F")


def _maps(
    numbers: np.ndarray, sizes: np.ndarray, m: Vectors | None, mt: Vectors | None, t: Vectors | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the result of `_map` for some of the samples, whose matrices have one shape.

    Args:
        numbers: numbers of the samples.
        sizes: numbers of frames, columns and rows of all samples, int64 [N, 3].
        m: argument M.
        mt: argument MT.
        t: argument T.
    """
    is_all = len(numbers) == len(sizes)
    chosen = sizes if is_all else rows_at(sizes, numbers)
    if (chosen == chosen[0]).all() and not any(is_list(values) for values in (m, mt, t)):
        given = (values if values is None or is_all else values[numbers] for values in (m, mt, t))
        return _map(len(numbers), chosen[0].tolist(), *given)
    found = []
    for n in numbers.tolist():
        one = (None if values is None else values[n][None] for values in (m, mt, t))
        try:
            found.append(_map(1, sizes[n].tolist(), *one))
        except ShapeError as error:
            error.sample = n
            raise
    matrices, translations = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return matrices, translations


def _sizes(out: Any, x: Any, spec: Spec) -> np.ndarray:
    """Return the numbers of frames, columns and rows of samples, int64 [N, 3]."""
    has_frames = out.ndim > x.ndim or _is_sequence(spec)
    frames = out.extents(0) if has_frames else np.ones(len(x), np.int64)
    return np.stack([frames, x.extents(-1), out.extents(-1)], 1)


def _in_frames(out: Any, x: Any, spec: Spec) -> tuple[Any, Any]:
    """Return frames of the output and the input as samples; an input without frames is repeated."""
    if out.ndim > x.ndim:
        target, owners = out.folded(1)
        return target, x.take(owners)
    return (out.folded(1)[0], x.folded(1)[0]) if _is_sequence(spec) else (out, x)


@coord_transform.cpu_samples
@coord_transform.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
    *,
    M: Vectors | None,  # noqa: N803
    MT: Vectors | None,  # noqa: N803
    T: Vectors | None,  # noqa: N803
    spec: Spec,
) -> None:
    sizes = _sizes(out, x, spec)
    M, MT = _flat(M, MT, sizes[:, 1])  # noqa: N806 -- DALI's names
    # Samples with as many coordinates have matrices of one shape.
    if isinstance(out, Samples):
        for numbers in equal_rows(sizes[:, 1:]):
            part = (out, x) if len(numbers) == len(x) else (out.take(numbers), x.take(numbers))
            apply_matrix(*_in_frames(*part, spec), *_maps(numbers, sizes, M, MT, T))
        return

    def fill(part: DeviceSamples, numbers: np.ndarray) -> None:
        apply_matrix_torch(*_in_frames(part, x.take(numbers), spec), *_maps(numbers, sizes, M, MT, T))

    fill_by_kind(out, [tuple(row) for row in sizes[:, 1:].tolist()], fill)
