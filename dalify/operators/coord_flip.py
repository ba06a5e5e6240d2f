"""Mirror points about a center."""

from __future__ import annotations

from functools import cache

import numpy as np

from dalify.base.compiling import njit
from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from dalify.base.narrow import is_array
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.data import DALIDataType, Rows
from dalify.kernels.arrays.frozen import read_only
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.registry import PerSample, Spec, operator

_PERIOD = 48  # a multiple of 1, 2 and 3 coordinates, and of the elements in a vector


@operator
def coord_flip(
    x: Spec,
    /,
    *,
    center_x: PerSample[float] = 0.5,
    center_y: PerSample[float] = 0.5,
    center_z: PerSample[float] = 0.5,
    flip_x: PerSample[int] = 1,
    flip_y: PerSample[int] = 0,
    flip_z: PerSample[int] = 0,
    layout: str = "",
) -> Spec:
    """Mirror points about a center: ``out = 2 * center - x`` along the flipped axes.

    Args:
        x: float32 points [n, k], k = 1, 2 or 3.
        center_x: position of the mirror, in units of the points; 0.5 suits relative coordinates.
        center_y: as `center_x`, for y.
        center_z: as `center_x`, for z.
        flip_x: non-zero mirrors x; the default.
        flip_y: non-zero mirrors y.
        flip_z: non-zero mirrors z.
        layout: order of the coordinates, of the letters x, y, z; by default "x", "xy" or "xyz".

    Returns:
        Same shape and layout.

    Raises:
        DTypeError: elements are not float32.
        ShapeError: not two axes, or not 1 to 3 coordinates.
        ArgumentValueError: `layout` does not match the coordinates.

    Example:
        >>> points = fn.coord_flip(points, flip_x=fn.random.coin_flip())  # doctest: +SKIP
    """
    if x.dtype != DALIDataType.FLOAT:
        raise DTypeError(
            f"points must be float32; got {x.dtype_text}.", hint="Convert them: fn.cast(points, dtype=types.FLOAT)."
        )
    if x.ndim != 2:
        raise ShapeError(f"points must be [n, k]; got {counted(x.ndim, 'dimension')}.")
    if set(layout) - set("xyz"):
        raise ArgumentValueError(f"layout must consist of the letters x, y and z; got {layout!r}.")
    if x.shape is not None:
        if not 1 <= x.shape[1] <= 3:
            raise ShapeError(f"points must have 1 to 3 coordinates; got {x.shape[1]}.")
        if layout and len(layout) != x.shape[1]:
            raise ArgumentValueError(
                f"layout {layout!r} names {counted(len(layout), 'coordinate')}; the points have {x.shape[1]}."
            )
    return x


@cache
def _columns(layout: str, count: int) -> np.ndarray:
    """Return the axis, 0 to 2, of each coordinate."""
    return np.array(["xyz".index(letter) for letter in (layout or "xyz"[:count])], np.int64)


@njit(nogil=True, cache=True)
def _mirror(out, x, starts, axes, flips_x, flips_y, flips_z, x_center, y_center, z_center):
    # Flips and centers depend only on the column. A table for several rows allows the compiler to vectorize the loop.
    is_mirrored, doubled = np.empty(_PERIOD, np.bool_), np.empty(_PERIOD, np.float32)
    for n in range(starts.size - 1):
        flips, centers = (flips_x[n], flips_y[n], flips_z[n]), (x_center[n], y_center[n], z_center[n])
        for k in range(_PERIOD):
            axis = axes[k % axes.size]
            is_mirrored[k], doubled[k] = flips[axis], np.float32(2) * centers[axis]
        source, target = x[starts[n] : starts[n + 1]].reshape(-1), out[starts[n] : starts[n + 1]].reshape(-1)
        whole = source.size - source.size % _PERIOD
        for first in range(0, whole, _PERIOD):
            values, results = source[first : first + _PERIOD], target[first : first + _PERIOD]
            for k in range(_PERIOD):
                results[k] = doubled[k] - values[k] if is_mirrored[k] else values[k]
        for k in range(source.size - whole):
            value = source[whole + k]
            target[whole + k] = doubled[k] - value if is_mirrored[k] else value


@coord_flip.cpu_rows
@coord_flip.gpu_rows
def _(
    out: Rows,
    x: Rows,
    *,
    flip_x: np.ndarray,
    flip_y: np.ndarray,
    flip_z: np.ndarray,
    center_x: np.ndarray,
    center_y: np.ndarray,
    center_z: np.ndarray,
    layout: str,
) -> None:
    values, axes = x.values, _columns(layout, x.values.shape[1])
    if is_array(values):
        arguments = [read_only(item) for item in (flip_x, flip_y, flip_z, center_x, center_y, center_z)]
        _mirror(out.values, read_only(values), x.starts, axes, *arguments)
        return
    flips = np.stack([flip_x, flip_y, flip_z], axis=1)[:, axes] != 0
    doubled = 2 * np.stack([center_x, center_y, center_z], axis=1)[:, axes]
    row = uploaded(x.sample_of_row(), values.device)
    flipped = uploaded(doubled, values.device)[row] - values
    out.values.copy_(torch.where(uploaded(flips, values.device)[row], flipped, values))
