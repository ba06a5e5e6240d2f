"""Equalize the histogram of each channel."""

from __future__ import annotations

import cv2
import numpy as np

from dalify.base.array_at import array_at
from dalify.base.compiling import njit
from dalify.base.optional import torch
from dalify.data import DALIDataType, Samples
from dalify.kernels.arrays.padding_torch import inside_torch, on_padded
from dalify.kernels.images.frames import visual_layout
from dalify.registry import Spec, operator

_LAYOUTS = ("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW")
_MAX_CHANNELS = 128  # OpenCV's limit per call


@operator
def equalize(x: Spec, /) -> Spec:
    """Equalize the histogram of each channel, so that all levels become about equally frequent.

    A level is mapped to ``255 * (cumulative count - count of the lowest level) / (total count - count of the lowest
    level)``, as in OpenCV's equalizeHist. A channel with a single level is unchanged.

    Args:
        x: uint8 images HW, HWC, CHW or sequences of them.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        DTypeError: elements are not uint8.

    Example:
        >>> images = fn.equalize(images)  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, _LAYOUTS))
    x.check_dtype(DALIDataType.UINT8)
    return x


@njit(nogil=True, cache=True)
def _fill_table(table: np.ndarray, counts: np.ndarray, pixels: int) -> None:
    """Fill the lookup table of one channel from its histogram."""
    first = 0
    while counts[first] == 0:
        first += 1
    if counts[first] == pixels:
        for level in range(256):
            table[level] = level
        return
    scale = np.float32(255) / np.float32(pixels - counts[first])
    total = 0
    for level in range(256):
        total += counts[level] if level > first else 0
        table[level] = np.uint8(np.rint(np.float32(total) * scale))


@njit(nogil=True, cache=True)
def _equalize_rgb(out_at, x_at, sizes, like):
    """Equalize three interleaved channels of images without splitting them; `sizes` are the numbers of pixels."""
    # Two histograms per channel, for the two halves of the image: increments depend less on the previous store.
    counts = np.empty((6, 256), np.int64)
    table = np.empty((3, 256), np.uint8)
    red, green, blue = table[0], table[1], table[2]
    a, b, c, d, e, f = counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]
    for n in range(len(x_at)):
        pixels = sizes[n]
        half = pixels // 2
        source, target = array_at(x_at[n], (pixels, 3), like), array_at(out_at[n], (pixels, 3), like)
        counts[:] = 0
        for i in range(half):
            a[source[i, 0]] += 1
            b[source[i, 1]] += 1
            c[source[i, 2]] += 1
            d[source[half + i, 0]] += 1
            e[source[half + i, 1]] += 1
            f[source[half + i, 2]] += 1
        if pixels % 2:
            a[source[pixels - 1, 0]] += 1
            b[source[pixels - 1, 1]] += 1
            c[source[pixels - 1, 2]] += 1
        for channel in range(3):
            for level in range(256):
                counts[channel, level] += counts[channel + 3, level]
            _fill_table(table[channel], counts[channel], pixels)
        for i in range(pixels):
            target[i, 0] = red[source[i, 0]]
            target[i, 1] = green[source[i, 1]]
            target[i, 2] = blue[source[i, 2]]


@equalize.cpu_samples
def _(out: Samples, x: Samples, *, spec: Spec) -> None:
    leading = visual_layout(spec, _LAYOUTS).index("H")
    target, source = out.folded(leading)[0], x.folded(leading)[0]
    if source.ndim == 3:
        is_rgb = source.extents(2) == 3
        three, others = np.flatnonzero(is_rgb), np.flatnonzero(~is_rgb)
        sizes = source.shapes[:, :2].prod(1)
        _equalize_rgb(target.addresses[three], source.addresses[three], sizes[three], x.like)
        target, source = target.take(others), source.take(others)
    for image, result in zip(source.arrays(), target.arrays(), strict=True):
        channels = 1 if image.ndim == 2 else image.shape[2]
        if channels == 1:
            cv2.equalizeHist(image, dst=result)
        elif channels <= _MAX_CHANNELS:
            cv2.merge([cv2.equalizeHist(channel) for channel in cv2.split(image)], dst=result)
        else:
            for channel in range(channels):
                result[..., channel] = cv2.equalizeHist(np.ascontiguousarray(image[..., channel]))


@equalize.gpu_samples
@on_padded
def _(out: torch.Tensor, x: torch.Tensor, *, spec: Spec, extents: np.ndarray) -> None:
    layout = visual_layout(spec, _LAYOUTS)
    inside = inside_torch(x, extents, (layout.index("H"), layout.index("W")))
    weights = torch.ones_like(x) if inside is None else inside.expand(x.shape)
    # Channels in front, then one row per image and channel.
    planar = x.movedim(-1, -3) if layout[-1] == "C" else x
    rows = planar.reshape(-1, planar.shape[-2] * planar.shape[-1]).long()
    used = (weights.movedim(-1, -3) if layout[-1] == "C" else weights).reshape(rows.shape).long()
    counts = torch.zeros((rows.shape[0], 256), dtype=torch.long, device=x.device)
    counts.scatter_add_(1, rows, used)
    total = counts.sum(1, keepdim=True)
    lowest = rows.amin(1, keepdim=True)  # repeated edges do not change it
    first = counts.gather(1, lowest)
    scale = 255.0 / (total - first).clamp(min=1).float()
    table = ((counts.cumsum(1) - first).float() * scale).round().clamp(0, 255)
    table = torch.where(first == total, torch.arange(256, device=x.device), table)
    result = table.gather(1, rows).reshape(planar.shape).to(torch.uint8)
    out.copy_(result.movedim(-3, -1) if layout[-1] == "C" else result)
