"""Rotation matrices, and the canvas of a rotated image or volume.

Shared by fn.rotate, fn.transforms.rotation and the rotation of boxes. Points are (x, y) or (x, y, z).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dalify.base.errors import ArgumentValueError

__all__ = ["about_centers", "canvas_size", "rotation_matrix"]

_RADIANS = np.float32(math.pi / 180)
_TOLERANCE = 0.01  # pixels by which a rotated image may exceed its canvas: so that rounding errors do not add a pixel


def _radians(angle: float) -> float:
    # In float32 as in DALI: at 45 degrees the last bit decides which axis is the dominant one.
    return float(np.float32(angle) * _RADIANS)


def rotation_matrix(angle: float, axis: Sequence[float] | None = None) -> np.ndarray:
    """Return a rotation matrix, float64 [2, 2] or, with an axis, [3, 3] with float32 precision.

    Args:
        angle: degrees; positive from x to y, which is clockwise if y points down.
        axis: the axis (x, y, z) to rotate about, of any length except 0 (Rodrigues' formula).

    Returns:
        The matrix; all NaN for an axis of length 0.

    Raises:
        ArgumentValueError: the angle is not finite.
    """
    if not math.isfinite(_radians(angle)):
        raise ArgumentValueError(f"an angle must be a finite number of degrees; got {angle:g}.")
    cosine, sine = math.cos(_radians(angle)), math.sin(_radians(angle))
    if axis is None:
        return np.array([[cosine, -sine], [sine, cosine]])
    # In float32 and in this order, as in DALI: the last bit selects one of two voxels at equal distance.
    x, y, z = np.asarray(axis, np.float32)
    length = np.sqrt(x * x + y * y + z * z)
    if length == 0:
        return np.full((3, 3), np.nan)
    x, y, z = x / length, y / length, z / length
    c, s = np.float32(cosine), np.float32(sine)
    rest = np.float32(1) - c
    xy, xz, yz = x * y * rest, x * z * rest, y * z * rest
    rows = [
        [x * x + c * (y * y + z * z), xy - z * s, xz + y * s],
        [xy + z * s, y * y + c * (x * x + z * z), yz - x * s],
        [xz - y * s, yz + x * s, z * z + c * (x * x + y * y)],
    ]
    return np.array(rows, np.float64)


def canvas_size(size: Sequence[int], matrices: Sequence[np.ndarray]) -> tuple[int, ...]:
    """Return the smallest canvas that contains the rotated image; each axis has the parity of its dominant source axis.

    Keeping the parity keeps the center on a pixel or between two, so that rotations by 90 degrees are exact.

    Args:
        size: extents of the image or volume, outermost first (H, W or D, H, W).
        matrices: rotations of all frames; the canvas contains each of them, and the majority determines the parity.

    Returns:
        Extents, outermost first.
    """
    source = [int(extent) for extent in reversed(size)]
    shares = [np.abs(matrix) for matrix in matrices]
    result: list[int] = []
    for row in range(len(source)):
        extent = max(math.ceil(float(share[row] @ source) - _TOLERANCE) for share in shares)
        odd = sum(source[_dominant(share, row)] % 2 for share in shares)
        result.append(extent + (extent - int(2 * odd > len(shares))) % 2)
    return tuple(reversed(result))


def _dominant(share: np.ndarray, row: int) -> int:
    """Return the source axis with the largest share in an output axis.

    A tie selects the axis itself in a volume, and the other one in an image.
    """
    if len(share) == 3:
        return row if share[row, row] == share[row].max() else int(np.argmax(share[row]))
    return row if share[row, row] > share[row, 1 - row] else 1 - row


def about_centers(matrices: np.ndarray, sizes: np.ndarray, out_sizes: np.ndarray) -> np.ndarray:
    """Return affine transforms that apply matrices about the centers of canvases and map them to those of the sources.

    Args:
        matrices: [N, k, k], from canvas to source directions.
        sizes: [N, k], extents of the sources, outermost first.
        out_sizes: [N, k], extents of the canvases, outermost first.

    Returns:
        [N, k, k + 1] in the dtype of the matrices, in which the products are also computed.
    """
    centers, out_centers = (np.asarray(sizes)[:, ::-1].astype(matrices.dtype) / 2 for sizes in (sizes, out_sizes))
    shifts = centers - (matrices * out_centers[:, None, :]).sum(axis=2)
    return np.concatenate([matrices, shifts[:, :, None]], axis=2)
