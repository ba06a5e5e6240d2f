"""Mirror points about a center."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.registry import PerSample, Spec, operator


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
    """Mirror points about a center: ``out = 2 * center - x`` in the axes that are flipped.

    Args:
        x: float32 points [n, k], k = 1, 2 or 3.
        center_x: where the mirror stands, in units of the points; 0.5 suits relative coordinates.
        center_y: likewise.
        center_z: likewise.
        flip_x: non-zero mirrors the axis; x is mirrored by default.
        flip_y: likewise.
        flip_z: likewise.
        layout: order of the coordinates, of the letters x, y, z; by default "x", "xy" or "xyz".

    Returns:
        Same shape and layout.

    Raises:
        DTypeError: elements are not float32.
        ShapeError: not two axes, or more than 3 coordinates.
        ArgumentValueError: `layout` does not name the coordinates.

    Example:
        >>> points = fn.coord_flip(points, flip_x=fn.random.coin_flip())  # doctest: +SKIP
    """
    if x.dtype != DALIDataType.FLOAT:
        raise DTypeError(f"points must be float32; got {x.dtype!s}.", hint="fn.cast(points, dtype=types.FLOAT)")
    if x.ndim != 2:
        raise ShapeError(f"points must be [n, k]; got {x.ndim} dimensions.")
    if set(layout) - set("xyz"):
        raise ArgumentValueError(f"layout must consist of the letters x, y and z; got {layout!r}.")
    if x.shape is not None:
        if not 1 <= x.shape[1] <= 3:
            raise ShapeError(f"points have 1 to 3 coordinates; got {x.shape[1]}.")
        if layout and len(layout) != x.shape[1]:
            raise ArgumentValueError(
                f"layout {layout!r} names {len(layout)} coordinates; the points have {x.shape[1]}."
            )
    return x


def _line(flips: dict[str, np.ndarray], centers: dict[str, np.ndarray], letters: str) -> tuple[np.ndarray, np.ndarray]:
    """Return factor and summand [N, 1, k] of every coordinate."""
    factor = np.stack([np.where(flips[letter] != 0, -1, 1) for letter in letters], axis=1)
    summand = np.stack([np.where(flips[letter] != 0, 2 * centers[letter], 0) for letter in letters], axis=1)
    return factor[:, None].astype(np.float32), summand[:, None].astype(np.float32)


def _parameters(x: Any, layout: str, values: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
    letters = layout or "xyz"[: x.shape[-1]]
    return _line(dict(zip("xyz", values[:3], strict=True)), dict(zip("xyz", values[3:], strict=True)), letters)


@coord_flip.cpu
def _(out, x, *, flip_x, flip_y, flip_z, center_x, center_y, center_z, layout):
    factor, summand = _parameters(x, layout, (flip_x, flip_y, flip_z, center_x, center_y, center_z))
    np.add(summand, x * factor, out=out)


@coord_flip.gpu
def _(out, x, *, flip_x, flip_y, flip_z, center_x, center_y, center_z, layout):
    factor, summand = _parameters(x, layout, (flip_x, flip_y, flip_z, center_x, center_y, center_z))
    out.copy_(torch.as_tensor(summand, device=x.device) + x * torch.as_tensor(factor, device=x.device))
