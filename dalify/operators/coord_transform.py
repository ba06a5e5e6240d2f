"""Apply a matrix and a translation to points or vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from dalify.data.batch import Batch
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.kernels.arrays.windows_torch import fill_by_kind
from dalify.kernels.images.color_matrix import apply_matrix, apply_matrix_torch
from dalify.kernels.images.frames import flat_frames
from dalify.registry import VARIES_BY_FRAME, PerFrame, Spec, Vectors, operator


@operator
def coord_transform(
    x: Spec,
    /,
    *,
    M: PerFrame[float | list[float]] | None = None,  # noqa: N803 -- DALI's name
    MT: PerFrame[float | list[float]] | None = None,  # noqa: N803
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
    """Return the number of rows of the matrix: that of the columns if the argument is unknown or a single number."""
    given, width = (mt, columns + 1) if mt is not None else (m, columns)
    if not isinstance(given, (tuple, np.ndarray)):
        return columns
    size = given.shape[-1] if isinstance(given, np.ndarray) else len(given)
    if size == 1:
        return columns
    if not width or size % width:
        raise ShapeError(f"{size} numbers do not form a matrix with {width} columns, for vectors of {columns} numbers.")
    return size // width


@coord_transform.prepare
def _(x: Batch, *, M: Vectors | None, MT: Vectors | None, T: Vectors | None) -> dict[str, Any]:  # noqa: N803
    given = MT if M is None else M
    if not x.layout.startswith("F") and (frames := _frames(M, MT, T)):
        rows = [
            _rows(None if M is None else M[i], None if MT is None else MT[i], shape[-1])
            for i, shape in enumerate(x.shapes())
        ]
        shapes = zip(frames, x.shapes(), rows, strict=True)
        return {
            "out_shapes": [(count, *shape[:-1], row) for count, shape, row in shapes],
            "out_layout": f"F{x.layout}" if x.layout else "",
        }
    if given is None:
        return {}
    if x.dense is not None and isinstance(given, np.ndarray):
        shape = x.dense.shape[1:]
        rows = _rows(M, MT, shape[-1])
        return {} if rows == shape[-1] else {"out_shapes": (*shape[:-1], rows)}
    shapes = x.shapes()
    rows = [
        _rows(None if M is None else M[i], None if MT is None else MT[i], shape[-1]) for i, shape in enumerate(shapes)
    ]
    if all(row == shape[-1] for row, shape in zip(rows, shapes, strict=True)):
        return {}
    return {"out_shapes": [(*shape[:-1], row) for row, shape in zip(rows, shapes, strict=True)]}


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
            raise ShapeError(f"{name} has {array.shape[1]} frames; the input has {frames}.")
        return array.reshape(count * frames, -1)
    return np.repeat(array, frames, axis=0) if frames > 1 else array


def _map_of_group(count: int, spec: Spec, out_spec: Spec, m: Any, mt: Any, t: Any) -> tuple[np.ndarray, np.ndarray]:
    assert spec.shape is not None, "dalify bug: a kernel without the shape of its input"
    assert out_spec.shape is not None, "dalify bug: a kernel without the shape of its output"
    frames = out_spec.shape[0] if len(out_spec.shape) > len(spec.shape) or _is_sequence(spec) else 1
    return _map(count, [frames, spec.shape[-1], out_spec.shape[-1]], m, mt, t)


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
            raise ShapeError(f"T must have {rows} numbers or one; got {shift.shape[1]}.")
        translation = np.broadcast_to(shift, (count * frames, rows))
    return matrix, translation


def _is_sequence(spec: Spec) -> bool:
    return (spec.layout or "").startswith("F")


def _in_frames(out: np.ndarray, x: np.ndarray, spec: Spec) -> tuple[Any, Any]:
    """Return output and input with samples and frames in one axis; an input without frames is repeated."""
    if out.ndim > x.ndim:
        return flat_frames(out, "F"), np.repeat(x, out.shape[1], axis=0)
    layout = spec.layout or ""
    return flat_frames(out, layout), flat_frames(x, layout)


@coord_transform.cpu
def _(
    out: np.ndarray,
    x: np.ndarray,
    *,
    M: np.ndarray | None,  # noqa: N803
    MT: np.ndarray | None,  # noqa: N803
    T: np.ndarray | None,  # noqa: N803
    spec: Spec,
    out_spec: Spec,
) -> None:
    target, source = _in_frames(out, x, spec)
    maps = _map_of_group(len(x), spec, out_spec, M, MT, T)
    apply_matrix(Samples.of_dense(target), Samples.of_dense(source), *maps)


@coord_transform.gpu_samples
def _(
    out: DeviceSamples,
    x: DeviceSamples,
    *,
    M: Vectors | None,  # noqa: N803
    MT: Vectors | None,  # noqa: N803
    T: Vectors | None,  # noqa: N803
    spec: Spec,
) -> None:
    is_longer = out.ndim > x.ndim
    has_frames = is_longer or _is_sequence(spec)
    frames = out.extents(0) if has_frames else np.ones(len(x), np.int64)
    sizes = np.stack([frames, x.extents(-1), out.extents(-1)], 1)
    given = (M, MT, T)

    def maps(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if len(numbers) == len(x) and (sizes == sizes[0]).all() and not any(isinstance(item, list) for item in given):
            return _map(len(x), sizes[0].tolist(), M, MT, T)
        found = []
        for n in numbers.tolist():
            m, mt, t = (None if values is None else values[n][None] for values in given)
            try:
                found.append(_map(1, sizes[n].tolist(), m, mt, t))
            except ShapeError as error:
                error.sample = n
                raise
        matrices, translations = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return matrices, translations

    def fill(part: DeviceSamples, numbers: np.ndarray) -> None:
        # A sample of the input for each frame of the result.
        owners = np.repeat(numbers, frames[numbers])
        source = x.take(owners) if is_longer else x.take(numbers).folded(1)[0] if has_frames else x.take(numbers)
        apply_matrix_torch(part.folded(1)[0] if has_frames else part, source, *maps(numbers))

    # Samples with as many coordinates have matrices of one shape.
    fill_by_kind(out, [tuple(row) for row in sizes[:, 1:].tolist()], fill)
