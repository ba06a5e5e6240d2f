"""Normalizes RGB images of uint8 into planes on the CPU, with the images stored in the memory of the results.

Operators that are fused with `crop_mirror_normalize` need no other memory for its input.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base import scratch
from dalify.base.small_arrays import counting, zeros
from dalify.data.samples import Samples
from dalify.kernels.images.color_matrix import apply_matrix
from dalify.kernels.images.crop_mirror_normalize import PIXELS, normalize_rgb
from dalify.kernels.images.normalize_axes import channel_values, normalize_axes

_CHANNELS = 3
_BYTE, _FLOAT = np.dtype(np.uint8), np.dtype(np.float32)


def planes_of(out: Samples, normalization: Mapping[str, Any]) -> tuple[Samples, Any] | None:
    """Return memory for images, N samples [h, w, 3] of uint8, and arguments of `normalize_rgb` that reads them.

    The images are stored at the end of the results, so that each image is read before it is overwritten. The last image
    has its own memory.

    Args:
        out: N samples [3, h, w], the results.
        normalization: arguments of `normalize_axes` by name.

    Returns:
        memory and arguments; None for results of different sizes, with other channels or element types, and for narrow
        images.
    """
    dense = out.dense
    if dense is None or dense.dtype != _FLOAT:
        return None
    count, channels, height, width = dense.shape
    if channels != _CHANNELS or width < PIXELS or not height:
        return None
    shapes, volumes, planes, offsets, start = _tables(count, height, width)
    last = scratch.borrow("image before its planes", (height * width * channels,))
    out_at, addresses = offsets + dense.__array_interface__["data"][0]
    addresses[-1:] = last.__array_interface__["data"][0]
    mean, multiplier = channel_values(
        normalization["mean"], normalization["std"], normalization["scale"], (count, _CHANNELS)
    )
    mirror, shift = np.array(normalization["mirror"], np.bool_), np.float32(normalization["shift"])
    images = Samples(addresses, shapes, _BYTE, (dense, last))
    return images, (out_at, planes, addresses, volumes, start, mirror, mean, multiplier, shift)


@lru_cache(64)
def _tables(count: int, height: int, width: int) -> tuple[np.ndarray, ...]:
    """Return shapes of images, of images as volumes, and of planes; offsets of results and images; starts of windows.

    The offsets, [2, N], are in bytes from the start of all results. Do not modify the arrays: they are cached.
    """
    rows = [(height, width, _CHANNELS), (1, height, width, _CHANNELS), (_CHANNELS, 1, height, width)]
    shapes = [np.array([row] * count, np.int64).reshape(count, len(row)) for row in rows]
    size_bytes = height * width * _CHANNELS
    offsets = np.empty((2, count), np.int64)
    offsets[0] = counting(count) * (size_bytes * _FLOAT.itemsize)
    offsets[1] = counting(count) * size_bytes + (count * size_bytes * _FLOAT.itemsize - (count - 1) * size_bytes)
    return (*shapes, offsets, np.zeros((count, 3), np.int64))


def normalize_mixed(
    out: Samples, x: Samples, matrix: np.ndarray, offset: np.ndarray, normalization: Mapping[str, Any]
) -> None:
    """Set ``out = scale * (mixed - mean) / std + shift``, where `mixed` is the rounded result of `apply_matrix`.

    Args:
        out: N samples [3, H, W], output, float32.
        x: N images [H, W, 3], uint8.
        matrix: float32 [N, 3, 3].
        offset: float32 [N, 3].
        normalization: arguments of `normalize_axes` by name.
    """
    found = planes_of(out, normalization)
    if found is not None:
        images, normalizing = found
        apply_matrix(images, x, matrix, offset)
        normalize_rgb(*normalizing)
        return
    mixed = Samples.empty(x.shapes, x.dtype)
    apply_matrix(mixed, x, matrix, offset)
    normalize_axes(out, mixed, "HWC", "CHW", zeros(x.shapes.shape, np.int64), fill_values=[0.0], **normalization)
