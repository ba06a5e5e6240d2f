"""Creation and composition of affine transforms of points, matrices [k, k + 1], for ``fn.transforms``.

Matrices are computed in float64, and stored as float32, in one compiled call per batch.

Arguments of the compiled functions have shape ``[N or 1, F or 1, k or 1]`` (samples, frames, axes) and are broadcast
along every axis of extent 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.wording import counted
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.wide_torch import widened

_RADIANS = np.float32(math.pi / 180)
_ORIGIN = np.zeros((1, 1, 1), np.float32)
_ORIGIN.flags.writeable = False


def entries(values: Any, size: int | None = None) -> np.ndarray:
    """Convert an argument to the form of compiled functions: float32 ``[N, F or 1, k or 1]``.

    Args:
        values: [N], [N, k] or [N, F, k]; None for zeros.
        size: k; None for any number.

    Raises:
        ShapeError: there are neither one nor `size` values.
    """
    if values is None:
        return _ORIGIN
    array = values.view() if values.ndim == 3 else values.reshape(len(values), 1, -1)
    array.setflags(write=False)  # like constants: one array type needs only one compilation
    if size is not None and array.shape[2] not in (1, size):
        raise ShapeError(f"an argument must have 1 or {counted(size, 'value')}; got {array.shape[2]}.")
    return array


def compose(outer: Any, inner: Any) -> Any:
    """Return the transform that applies `inner`, then `outer`; both [..., k, k + 1], leading axes are broadcast."""
    result = outer[..., :-1] @ inner
    result[..., -1] += outer[..., -1]
    return result


@njit(nogil=True, inline="always")
def _entry(values, n, f, i):
    return np.float64(
        values[n if values.shape[0] > 1 else 0, f if values.shape[1] > 1 else 0, i if values.shape[2] > 1 else 0]
    )


@njit(nogil=True, cache=True)
def _store(out, outer, inner):
    """Fill one matrix [k, k + 1] with the composition of `outer` and `inner`."""
    size = out.shape[0]
    for i in range(size):
        for j in range(size + 1):
            total = np.float64(outer[i, size]) if j == size else 0.0
            for k in range(size):
                total += np.float64(outer[i, k]) * np.float64(inner[k, j])
            out[i, j] = total


@njit(nogil=True, cache=True)
def _put(out, x, has_x, reverse_order, made, n, f):
    if not has_x:
        out[n, f] = made
        return
    given = x[n, f if x.shape[1] > 1 else 0]
    if reverse_order:
        _store(out[n, f], given, made)
    else:
        _store(out[n, f], made, given)


@njit(nogil=True, cache=True)
def _about(made, center, n, f):
    """Set the translation of a matrix with a given linear part, so that the center is a fixed point."""
    size = made.shape[0]
    for i in range(size):
        moved = _entry(center, n, f, i)
        for j in range(size):
            moved -= made[i, j] * _entry(center, n, f, j)
        made[i, size] = moved


@njit(nogil=True, cache=True, error_model="numpy")
def _translations(out, x, has_x, reverse_order, offset):
    size = out.shape[2]
    made = np.eye(size, size + 1)
    for n in range(out.shape[0]):
        for f in range(out.shape[1]):
            for i in range(size):
                made[i, size] = _entry(offset, n, f, i)
            _put(out, x, has_x, reverse_order, made, n, f)


@njit(nogil=True, cache=True, error_model="numpy")
def _scales(out, x, has_x, reverse_order, factors, center):
    size = out.shape[2]
    made = np.zeros((size, size + 1))
    for n in range(out.shape[0]):
        for f in range(out.shape[1]):
            for i in range(size):
                made[i, i] = _entry(factors, n, f, i)
            _about(made, center, n, f)
            _put(out, x, has_x, reverse_order, made, n, f)


@njit(nogil=True, cache=True, error_model="numpy")
def _shears(out, x, has_x, reverse_order, factors, is_angle, center):
    size = out.shape[2]
    made = np.eye(size, size + 1)
    for n in range(out.shape[0]):
        for f in range(out.shape[1]):
            given = 0
            for i in range(size):
                for j in range(size):
                    if i != j:
                        factor = _entry(factors, n, f, given)
                        made[i, j] = math.tan(factor * (math.pi / 180)) if is_angle else factor
                        given += 1
            _about(made, center, n, f)
            _put(out, x, has_x, reverse_order, made, n, f)


@njit(nogil=True, cache=True, error_model="numpy")
def _rotations(out, x, has_x, reverse_order, angle, axis, center):
    """Return the first sample with an angle that is not finite, ``-1 - n`` for an axis of length 0, or N."""
    size = out.shape[2]
    made = np.zeros((size, size + 1))
    for n in range(out.shape[0]):
        for f in range(out.shape[1]):
            # In float32 as in DALI: at 45 degrees the last bit decides which axis is the dominant one.
            radians = np.float64(np.float32(_entry(angle, n, f, 0)) * _RADIANS)
            if not math.isfinite(radians):
                return n
            cosine, sine = math.cos(radians), math.sin(radians)
            if size == 2:
                made[0, 0], made[0, 1] = cosine, -sine
                made[1, 0], made[1, 1] = sine, cosine
            else:  # Rodrigues' formula
                a, b, c = _entry(axis, n, f, 0), _entry(axis, n, f, 1), _entry(axis, n, f, 2)
                length = math.sqrt(a * a + b * b + c * c)
                if length == 0:
                    return -1 - n
                a, b, c = a / length, b / length, c / length
                rest = 1 - cosine
                made[0, 0], made[0, 1], made[0, 2] = (
                    a * a * rest + cosine,
                    a * b * rest - c * sine,
                    a * c * rest + b * sine,
                )
                made[1, 0], made[1, 1], made[1, 2] = (
                    b * a * rest + c * sine,
                    b * b * rest + cosine,
                    b * c * rest - a * sine,
                )
                made[2, 0], made[2, 1], made[2, 2] = (
                    c * a * rest - b * sine,
                    c * b * rest + a * sine,
                    c * c * rest + cosine,
                )
            _about(made, center, n, f)
            _put(out, x, has_x, reverse_order, made, n, f)
    return out.shape[0]


@njit(nogil=True, cache=True, error_model="numpy")
def _crops(out, x, has_x, reverse_order, from_start, from_end, to_start, to_end, absolute):
    size = out.shape[2]
    made = np.zeros((size, size + 1))
    for n in range(out.shape[0]):
        for f in range(out.shape[1]):
            for i in range(size):
                low, high = _entry(from_start, n, f, i), _entry(from_end, n, f, i)
                target, end = _entry(to_start, n, f, i), _entry(to_end, n, f, i)
                if absolute:
                    low, high = min(low, high), max(low, high)
                    target, end = min(target, end), max(target, end)
                scale = (end - target) / (high - low)
                made[i, i] = scale
                made[i, size] = target - scale * low
            _put(out, x, has_x, reverse_order, made, n, f)


@njit(nogil=True, cache=True)
def _joined(out, outer, inner):
    for n in range(out.shape[0]):
        for f in range(out.shape[1]):
            _store(out[n, f], outer[n, f if outer.shape[1] > 1 else 0], inner[n, f if inner.shape[1] > 1 else 0])


def _by_frame(matrices: np.ndarray) -> np.ndarray:
    """Return matrices as ``[N, F or 1, k, k + 1]``."""
    return matrices.view() if matrices.ndim == 4 else matrices.reshape(len(matrices), 1, *matrices.shape[1:])


def _read_only(matrices: np.ndarray) -> np.ndarray:
    view = _by_frame(np.ascontiguousarray(matrices))
    view.setflags(write=False)
    return view


Targets = tuple[np.ndarray, np.ndarray, bool, bool]
"""The first arguments of compiled functions; `fill_transforms` creates them.

Results, float32 ``[N, F or 1, k, k + 1]``; transforms to compose with, in the same form; whether there are any; and
whether they are applied last.
"""


def fill_translations(targets: Targets, offset: np.ndarray) -> None:
    """Compute translations by an offset, [N, k] or [N, F, k]."""
    _translations(*targets, entries(offset, targets[0].shape[-2]))


def fill_scales(targets: Targets, scale: np.ndarray, center: Any) -> None:
    """Compute scalings about a center, [N, k] or [N, F, k]; None for 0."""
    size = targets[0].shape[-2]
    _scales(*targets, entries(scale, size), entries(center, size))


def fill_shears(targets: Targets, factors: np.ndarray, is_angle: bool, center: Any) -> None:
    """Compute shears about a center.

    Args:
        targets: see `Targets`.
        factors: [N, k * (k - 1)] or [N, F, k * (k - 1)], the off-diagonal elements row by row.
        is_angle: whether they are angles in degrees; the factors are their tangents.
        center: see `fill_scales`.

    Raises:
        ShapeError: there are not 2 (2-D) or 6 (3-D) factors.
    """
    given, size = factors.shape[-1], targets[0].shape[-2]
    if given not in (2, 6):
        raise ShapeError(f"a shear needs 2 factors in 2-D or 6 in 3-D; got {given}.")
    _shears(*targets, entries(factors), is_angle, entries(center, size))


def fill_rotations(targets: Targets, angle: np.ndarray, axis: Any, center: Any) -> None:
    """Compute rotations about a center.

    Args:
        targets: see `Targets`.
        angle: degrees, [N], [N, 1] or [N, F, 1].
        axis: [N, 3] or [N, F, 3] in 3-D, else None.
        center: see `fill_scales`.

    Raises:
        ArgumentValueError: an angle is not finite, or an axis has length 0.
        ShapeError: there are several angles, or an axis has a wrong number of elements.
    """
    out = targets[0]
    angles = entries(angle)
    if angles.shape[2] != 1:
        raise ShapeError(f"angle must have one value; got {angles.shape[2]}.")
    if axis is not None and axis.shape[-1] != 3:
        raise ShapeError(f"axis must have 3 values, x, y and z; got {axis.shape[-1]}.")
    bad = _rotations(*targets, angles, entries(axis), entries(center, out.shape[-2]))
    if bad < 0:
        raise ArgumentValueError("axis must not have length 0; got [0, 0, 0].")
    if bad < len(out):
        raise ArgumentValueError(f"an angle must be a finite number of degrees; got {angles[bad].ravel().tolist()}.")


def fill_crops(targets: Targets, corners: tuple[Any, ...], absolute: bool) -> None:
    """Compute the transforms that map one box to another.

    A box with extent 0 results in infinite or NaN elements.

    Args:
        targets: see `Targets`.
        corners: start and end of the source box, start and end of the target box: [N, k or 1] or [N, F, k or 1].
        absolute: whether to swap start and end if start is larger.
    """
    size = targets[0].shape[-2]
    low, high, target, end = (entries(corner, size) for corner in corners)
    _crops(*targets, low, high, target, end, absolute)


def fill_joined(out: np.ndarray, inputs: tuple[np.ndarray, ...]) -> None:
    """Fill `out` with the composition of transforms, the first of which is applied first; frames are broadcast."""
    inner = _read_only(inputs[0])
    rows = _by_frame(out)
    for index, x in enumerate(inputs[1:], 2):
        # Intermediate results are float64, so that the result is rounded once.
        target = rows if index == len(inputs) else np.empty(rows.shape)
        _joined(target, _read_only(x), inner)
        inner = _read_only(target)


def fill_transforms(out: Any, x: Any, reverse_order: bool, fill: Callable[..., None], *arguments: Any) -> None:
    """Fill an array or a tensor with transforms, which are computed on the CPU, because their arguments are there.

    Args:
        out: float32 [N, k, k + 1] or [N, F, k, k + 1].
        x: transforms to compose with, with the shape of `out` or without F; None for none.
        reverse_order: False to apply `x` first; True to apply the new transforms first.
        fill: function that computes transforms, such as ``fill_translations``.
        arguments: its arguments after the targets.
    """
    if isinstance(out, np.ndarray):
        fill((_by_frame(out), _read_only(out if x is None else x), x is not None, reverse_order), *arguments)
        return
    host = _by_frame(np.empty(tuple(out.shape), np.float32))
    fill((host, _read_only(host), False, False), *arguments)
    made = uploaded(host.reshape(tuple(out.shape)), out.device)
    if x is None:
        out.copy_(made)
        return
    made, given = widened(made), widened(x)
    if given.ndim < made.ndim:
        given = given[:, None]
    out.copy_(compose(given, made) if reverse_order else compose(made, given))
