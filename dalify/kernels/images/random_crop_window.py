"""Random windows with random area and aspect ratio (the "inception" crop), by DALI's rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.deprecation import warn_deprecated
from dalify.base.errors import ArgumentValueError, ShapeError
from dalify.base.extremes import larger_of, smaller_of

_MAX_ATTEMPTS = 100_000


def check_random_crop(random_area: Any, random_aspect_ratio: Any, num_attempts: int) -> None:
    """Check the ranges of the arguments.

    Args:
        random_area: minimum and maximum fraction of the image's area, positive. The maximum may exceed 1, as in
            programs for old releases of DALI; such windows never fit.
        random_aspect_ratio: minimum and maximum width / height, positive.
        num_attempts: at least 1.

    Raises:
        ArgumentValueError: an argument is out of range.
    """
    if num_attempts > _MAX_ATTEMPTS:
        raise ArgumentValueError(
            f"num_attempts must be at most {_MAX_ATTEMPTS}; got {num_attempts}.", argument="num_attempts"
        )
    if len(random_area) != 2 or not 0 < random_area[0] <= random_area[1] or random_area[0] > 1:
        raise ArgumentValueError(
            "random_area must be the minimum and maximum fraction of the area, 0 < minimum <= maximum, minimum <= 1; "
            f"got {list(random_area)}.",
            argument="random_area",
        )
    if random_area[1] > 1:
        modern = [random_area[0], 1.0]
        warn_deprecated(f"random_area={list(random_area)}: no window is larger than the image; use {modern}.")
    if len(random_aspect_ratio) != 2 or not 0 < random_aspect_ratio[0] <= random_aspect_ratio[1]:
        raise ArgumentValueError(
            f"random_aspect_ratio must be the minimum and maximum width / height, 0 < minimum <= maximum; "
            f"got {list(random_aspect_ratio)}.",
            argument="random_aspect_ratio",
        )
    if num_attempts < 1:
        raise ArgumentValueError(f"num_attempts must be at least 1; got {num_attempts}.", argument="num_attempts")


def draws_per_sample(num_attempts: int) -> int:
    """Return the number of uniform numbers per window: area and ratio of each attempt, and two coordinates."""
    return 2 * num_attempts + 2


def random_crop_windows(
    extents: np.ndarray[Any, Any], uniforms: np.ndarray[Any, Any], random_area: Any, random_aspect_ratio: Any
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Choose one window per sample.

    The area is uniform, the aspect ratio log-uniform. An attempt is valid if it fits and its ratio, after rounding to
    pixels, is in the range; the first valid one is used. If no window can reach the minimum area, or no attempt is
    valid, the largest window with an allowed ratio is used, in the second case limited to the maximum area. Positions
    are uniform.

    Args:
        extents: ``[N, 2]`` heights and widths in pixels, at least 1.
        uniforms: ``[N, draws_per_sample(num_attempts)]`` numbers in [0, 1).
        random_area: minimum and maximum fraction of the image's area.
        random_aspect_ratio: minimum and maximum width / height.

    Returns:
        int64 ``[N, 4]``: y, x, height, width.

    Raises:
        ShapeError: an image has no pixels; with the sample.
    """
    empty = (np.asarray(extents) < 1).any(axis=1)
    if empty.any():
        first = int(empty.argmax())
        raise ShapeError(
            f"an image of {extents[first][0]} x {extents[first][1]} pixels cannot be cropped.", sample=first
        )
    windows = np.empty((len(extents), 4), np.int64)
    _choose_windows(
        np.ascontiguousarray(extents, np.int64),
        np.ascontiguousarray(uniforms, np.float64),
        float(random_area[0]),
        float(random_area[1]),
        float(random_aspect_ratio[0]),
        float(random_aspect_ratio[1]),
        windows,
    )
    return windows


# Keeps the GIL, because releasing it takes longer than the computation.
@njit(cache=True, error_model="numpy")
def _choose_windows(
    extents: Any,
    uniforms: Any,
    min_area: float,
    max_area: float,
    min_ratio: float,
    max_ratio: float,
    windows: Any,
) -> None:
    last = uniforms.shape[1] - 2
    log_min, log_max = math.log(min_ratio), math.log(max_ratio)
    for n in range(extents.shape[0]):
        height, width = extents[n, 0], extents[n, 1]
        area = float(height) * float(width)
        max_width = larger_of(np.int64(height * max_ratio), 1)  # of a window of full height
        max_height = larger_of(np.int64(width / min_ratio), 1)  # of a window of full width
        rows, columns = np.int64(0), np.int64(0)
        if height * max_width < min_area * area:
            rows, columns = height, max_width
        elif width * max_height < min_area * area:
            rows, columns = max_height, width
        else:
            for k in range(0, last, 2):
                wanted = area * (min_area + uniforms[n, k] * (max_area - min_area))
                ratio = math.exp(log_min + uniforms[n, k + 1] * (log_max - log_min))
                columns = larger_of(np.int64(math.sqrt(wanted * ratio) + 0.5), 1)
                rows = larger_of(np.int64(math.sqrt(wanted / ratio) + 0.5), 1)
                rounded = columns / rows
                if columns <= width and rows <= height and min_ratio <= rounded <= max_ratio:
                    break
                rows = np.int64(0)
            if rows == 0:
                if width > max_ratio * height:
                    rows, columns = height, max_width
                elif width < min_ratio * height:
                    rows, columns = max_height, width
                else:
                    rows, columns = height, width
                fraction = max_area * area / (rows * columns)
                side = math.sqrt(smaller_of(fraction, 1.0))
                rows, columns = larger_of(np.int64(rows * side), 1), larger_of(np.int64(columns * side), 1)
        rows, columns = smaller_of(rows, height), smaller_of(columns, width)
        down, right = height - rows, width - columns  # largest y and x
        windows[n, 0] = smaller_of(np.int64(uniforms[n, last] * (down + 1)), down)
        windows[n, 1] = smaller_of(np.int64(uniforms[n, last + 1] * (right + 1)), right)
        windows[n, 2] = rows
        windows[n, 3] = columns
