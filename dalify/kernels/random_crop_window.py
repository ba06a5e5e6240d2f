"""Random windows of random area and aspect ratio: the "inception" crop, by DALI's rules.

Alone because the random-crop decoder, ``random_resized_crop`` and ``random_crop_generator`` must draw the same windows
from the same random numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.compiling import njit
from dalify.base.deprecation import warn_deprecated
from dalify.base.errors import ArgumentValueError, ShapeError

__all__ = ["check_random_crop", "draws_per_sample", "random_crop_windows"]

_MOST_ATTEMPTS = 100_000


def check_random_crop(random_area: Any, random_aspect_ratio: Any, num_attempts: int) -> None:
    """Refuse ranges that cannot be meant.

    Args:
        random_area: two positive numbers, least and largest part of the image's area. The largest may exceed 1, as
            programs for old releases of DALI have it; such windows never fit.
        random_aspect_ratio: two positive numbers, least and largest width / height.
        num_attempts: at least 1.

    Raises:
        ArgumentValueError: one of them is out of its range.
    """
    if num_attempts > _MOST_ATTEMPTS:
        raise ArgumentValueError(f"num_attempts must be {_MOST_ATTEMPTS} at most; got {num_attempts}.")
    if len(random_area) != 2 or not 0 < random_area[0] <= random_area[1] or random_area[0] > 1:
        raise ArgumentValueError(
            "random_area must be two numbers, the least and the largest part of the area, 0 < least <= largest, "
            "least <= 1; "
            f"got {list(random_area)}."
        )
    if random_area[1] > 1:
        modern = [random_area[0], 1.0]
        warn_deprecated(f"random_area={list(random_area)}: no window is larger than the image; write {modern}.")
    if len(random_aspect_ratio) != 2 or not 0 < random_aspect_ratio[0] <= random_aspect_ratio[1]:
        raise ArgumentValueError(
            f"random_aspect_ratio must be two numbers, the least and the largest width / height, 0 < least <= largest; "
            f"got {list(random_aspect_ratio)}."
        )
    if num_attempts < 1:
        raise ArgumentValueError(f"num_attempts must be at least 1; got {num_attempts}.")


def draws_per_sample(num_attempts: int) -> int:
    """Return how many uniform numbers a window needs: area and ratio of each attempt, and its two coordinates."""
    return 2 * num_attempts + 2


def random_crop_windows(
    extents: np.ndarray[Any, Any], uniforms: np.ndarray[Any, Any], random_area: Any, random_aspect_ratio: Any
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Choose one window per sample.

    The area is uniform, the aspect ratio log-uniform. A window counts if it fits and if its ratio, after rounding to
    pixels, is still within the range; the first that counts is placed uniformly. Where no window can reach the least
    area, and where no attempt counted, a largest window of an allowed ratio is taken (cut down to the largest area in
    the second case), placed at random as well.

    Args:
        extents: ``[N, 2]`` heights and widths in pixels, at least 1.
        uniforms: ``[N, draws_per_sample(num_attempts)]`` numbers in [0, 1).
        random_area: least and largest part of the image's area.
        random_aspect_ratio: least and largest width / height.

    Returns:
        int64 ``[N, 4]``: y, x, height, width.

    Raises:
        ShapeError: an image without pixels; with the sample.
    """
    empty = (np.asarray(extents) < 1).any(axis=1)
    if empty.any():
        first = int(empty.argmax())
        raise ShapeError(
            f"an image of {extents[first][0]} x {extents[first][1]} pixels has no window to crop.", sample=first
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


# It holds the lock, because it takes less time than handing the lock over.
@njit(cache=True, error_model="numpy")
def _choose_windows(
    extents: Any,
    uniforms: Any,
    least_area: float,
    largest_area: float,
    least_ratio: float,
    largest_ratio: float,
    windows: Any,
) -> None:
    last = uniforms.shape[1] - 2
    log_least, log_largest = math.log(least_ratio), math.log(largest_ratio)
    for n in range(extents.shape[0]):
        height, width = extents[n, 0], extents[n, 1]
        area = float(height) * float(width)
        widest = max(1, int(height * largest_ratio))  # of a window of full height
        tallest = max(1, int(width / least_ratio))  # of a window of full width
        rows, columns = 0, 0
        if height * widest < least_area * area:
            rows, columns = height, widest
        elif width * tallest < least_area * area:
            rows, columns = tallest, width
        else:
            for k in range(0, last, 2):
                wanted = area * (least_area + uniforms[n, k] * (largest_area - least_area))
                ratio = math.exp(log_least + uniforms[n, k + 1] * (log_largest - log_least))
                columns = max(1, int(math.sqrt(wanted * ratio) + 0.5))
                rows = max(1, int(math.sqrt(wanted / ratio) + 0.5))
                rounded = columns / rows
                if columns <= width and rows <= height and least_ratio <= rounded <= largest_ratio:
                    break
                rows = 0
            if rows == 0:
                if width > largest_ratio * height:
                    rows, columns = height, widest
                elif width < least_ratio * height:
                    rows, columns = tallest, width
                else:
                    rows, columns = height, width
                side = math.sqrt(min(1.0, largest_area * area / (rows * columns)))
                rows, columns = max(1, int(rows * side)), max(1, int(columns * side))
        rows, columns = min(rows, height), min(columns, width)
        windows[n, 0] = min(int(uniforms[n, last] * (height - rows + 1)), height - rows)
        windows[n, 1] = min(int(uniforms[n, last + 1] * (width - columns + 1)), width - columns)
        windows[n, 2] = rows
        windows[n, 3] = columns
