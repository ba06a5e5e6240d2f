"""JPEG compression artifacts on tensors: all steps except entropy coding, which is lossless.

The steps are those of libjpeg in integers, with equal results: baseline, chroma 4:2:0, the accurate integer transforms
of Loeffler, Ligtenberg and Moschytz (ICASSP 1989), and smooth chroma upsampling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalify.base.optional import torch
from dalify.kernels.arrays.upload_torch import uploaded

if TYPE_CHECKING:
    from torch import Tensor

# Tables K.1 and K.2 of ITU-T T.81, row by row.
_LUMA = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
_CHROMA = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *[(99,) * 8] * 4,
)
_BLOCK = 8
_HALF = 1 << 15  # half a unit with 16 fraction bits, for color conversion
_BITS = 13  # fraction bits of the transforms' factors
_EXTRA = 2  # extra bits kept by the first of the two passes
_MIN_SMOOTH_WIDTH = 3  # narrower chroma is repeated, not interpolated


def _fixed(value: float, bits: int = _BITS) -> int:
    return round(value * (1 << bits))


def _quantization_tables(qualities: np.ndarray) -> np.ndarray:
    """Return the tables for luma and chroma, int32 [N, 2, 8, 8], for qualities 1 to 100."""
    quality = qualities.astype(np.int64)
    percent = np.where(quality < 50, 5000 // np.maximum(quality, 1), 200 - 2 * quality)[:, None, None, None]
    return np.clip((np.array([_LUMA, _CHROMA]) * percent + 50) // 100, 1, 255).astype(np.int32)


def jpeg_artifacts_torch(out: Tensor, x: Tensor, qualities: np.ndarray, extents: np.ndarray) -> None:
    """Fill `out` with `x` after compression and decompression.

    Args:
        out: uint8 [N, H, W, 3], output.
        x: uint8 [N, H, W, 3]: R, G, B; no extent is 0.
        qualities: [N], 1 to 100.
        extents: shapes of the images, int64 [N, 3]; elements of `x` outside of them have no effect.
    """
    height, width = x.shape[1:3]
    red, green, blue = x.int().unbind(-1)
    luma = (19595 * red + 38470 * green + 7471 * blue + _HALF) >> 16
    offset = (128 << 16) + _HALF - 1
    blueness = (-11059 * red - 21709 * green + 32768 * blue + offset) >> 16
    redness = (32768 * red - 27439 * green - 5329 * blue + offset) >> 16
    tables = uploaded(_quantization_tables(qualities), x.device)
    size = extents[:, :2]
    half = (size + 1) // 2
    luma = _through_blocks(_continued(luma, size, *_whole_blocks(height, width)), tables[:, 0])[:, :height, :width]
    rows, columns = (height + 1) // 2, (width + 1) // 2
    chroma = []
    for plane in (blueness, redness):
        block_rows, block_columns = _whole_blocks(rows, columns)
        # Columns are padded before chroma downsampling, rows afterwards.
        small = _halved(_continued(plane, size, 2 * rows, 2 * block_columns))
        # Columns after the last block of an image, which only wider images have, have no effect.
        last = np.stack([half[:, 0], np.full(len(half), small.shape[2])], 1)
        coded = _through_blocks(_continued(small, last, block_rows, block_columns), tables[:, 1])
        chroma.append(_doubled(coded, half)[:, :height, :width] - 128)
    blueness, redness = chroma
    red = luma + ((_fixed(1.402, 16) * redness + _HALF) >> 16)
    green = luma + ((-_fixed(0.34414, 16) * blueness - _fixed(0.71414, 16) * redness + _HALF) >> 16)
    blue = luma + ((_fixed(1.772, 16) * blueness + _HALF) >> 16)
    out.copy_(torch.stack([red, green, blue], dim=-1).clamp(0, 255))


def _whole_blocks(height: int, width: int) -> tuple[int, int]:
    return -(-height // _BLOCK) * _BLOCK, -(-width // _BLOCK) * _BLOCK


def _continued(plane: Tensor, extents: np.ndarray, height: int, width: int) -> Tensor:
    """Return planes [N, height, width], in which the last row and column of each plane are repeated.

    Args:
        plane: planes [N, h, w].
        extents: rows and columns of each plane, int64 [N, 2].
        height: rows of the result.
        width: columns of the result.
    """
    for axis, extent in ((1, height), (2, width)):
        limits = extents[:, axis - 1] - 1
        form = [1, 1, 1]
        form[axis] = extent
        index = torch.arange(extent, device=plane.device).reshape(form)
        if (limits == limits[0]).all():
            plane = plane.index_select(axis, index.reshape(-1).clamp(max=int(limits[0])))
        else:
            places = torch.minimum(index, uploaded(limits, plane.device).reshape(-1, 1, 1))
            shape = [*plane.shape]
            shape[axis] = extent
            plane = plane.gather(axis, places.expand(shape))
    return plane


def _halved(plane: Tensor) -> Tensor:
    """Return the means of 2 x 2 pixels; halves are rounded down and up in alternating columns."""
    total = plane[:, ::2, ::2] + plane[:, 1::2, ::2] + plane[:, ::2, 1::2] + plane[:, 1::2, 1::2]
    return (total + 1 + torch.arange(total.shape[2], device=plane.device, dtype=torch.int32) % 2) >> 2


def _doubled(plane: Tensor, extents: np.ndarray) -> Tensor:
    """Upsample by 2: each pixel is 3/4 of the nearest and 1/4 of the next one, along rows and columns.

    Args:
        plane: [N, h, w].
        extents: rows and columns of each plane, int64 [N, 2]; its edges are repeated outside.
    """
    rows, columns = extents.max(0).tolist()
    plane = _continued(plane, extents, rows + 1, columns + 1)
    repeated = plane[:, :rows, :columns].repeat_interleave(2, 1).repeat_interleave(2, 2)
    is_narrow = extents[:, 1] < _MIN_SMOOTH_WIDTH
    if is_narrow.all():
        return repeated
    above = torch.cat([plane[:, :1], plane[:, :-2]], dim=1)
    below, plane = plane[:, 1:], plane[:, :-1]
    sums = torch.stack([3 * plane + above, 3 * plane + below], dim=2).flatten(1, 2)
    left = torch.cat([sums[:, :, :1], sums[:, :, :-2]], dim=2)
    right, sums = sums[:, :, 1:], sums[:, :, :-1]
    smooth = torch.stack([(3 * sums + left + 8) >> 4, (3 * sums + right + 7) >> 4], dim=3).flatten(2, 3)
    if not is_narrow.any():
        return smooth
    return torch.where(uploaded(is_narrow, plane.device).reshape(-1, 1, 1), repeated, smooth)


def _through_blocks(plane: Tensor, table: Tensor) -> Tensor:
    """Transform, quantize and restore the 8 x 8 blocks of a plane [N, 8 r, 8 c] with tables [N, 8, 8]."""
    count, height, width = plane.shape
    blocks = plane.reshape(count, height // _BLOCK, _BLOCK, width // _BLOCK, _BLOCK).transpose(2, 3) - 128
    coefficients = _forward(_forward(blocks, _BITS - _EXTRA, -_EXTRA).mT, _BITS + _EXTRA, _EXTRA).mT
    # The results of the transform are 8 times the coefficients. Halves are rounded away from zero.
    step = 8 * table[:, None, None]
    levels = coefficients.sign() * ((coefficients.abs() + step // 2) // step)
    restored = levels * table[:, None, None]
    restored = _backward(_backward(restored.mT, _BITS - _EXTRA).mT, _BITS + _EXTRA + 3)
    pixels = (restored + 128).clamp(0, 255)
    return pixels.transpose(2, 3).reshape(count, height, width)


def _descaled(value: Tensor, bits: int) -> Tensor:
    """Divide by ``2 ** bits`` and round; multiply if the exponent is negative."""
    return value << -bits if bits < 0 else (value + (1 << (bits - 1))) >> bits


def _odd_half(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the rotations of the odd half, which are the same in both directions."""
    z1, z2, z3, z4 = a + d, b + c, a + c, b + d
    z5 = (z3 + z4) * _fixed(1.175875602)
    z1, z2 = z1 * -_fixed(0.899976223), z2 * -_fixed(2.562915447)
    z3, z4 = z3 * -_fixed(1.961570560) + z5, z4 * -_fixed(0.390180644) + z5
    return (
        a * _fixed(0.298631336) + z1 + z3,
        b * _fixed(2.053119869) + z2 + z4,
        c * _fixed(3.072711026) + z2 + z3,
        d * _fixed(1.501321110) + z1 + z4,
    )


def _forward(x: Tensor, bits: int, even_bits: int) -> Tensor:
    """Transform along the last axis; `bits` and `even_bits` descale the terms with and without multiplications."""
    v = x.unbind(-1)
    s0, s1, s2, s3 = (v[i] + v[7 - i] for i in range(4))
    d0, d1, d2, d3 = (v[i] - v[7 - i] for i in range(4))
    e0, e1, o0, o1 = s0 + s3, s1 + s2, s0 - s3, s1 - s2
    z = (o1 + o0) * _fixed(0.541196100)
    y7, y5, y3, y1 = _odd_half(d3, d2, d1, d0)
    return torch.stack(
        [
            _descaled(e0 + e1, even_bits),
            _descaled(y1, bits),
            _descaled(z + o0 * _fixed(0.765366865), bits),
            _descaled(y3, bits),
            _descaled(e0 - e1, even_bits),
            _descaled(y5, bits),
            _descaled(z - o1 * _fixed(1.847759065), bits),
            _descaled(y7, bits),
        ],
        dim=-1,
    )


def _backward(x: Tensor, bits: int) -> Tensor:
    """Inverse of `_forward` along the last axis."""
    v = x.unbind(-1)
    z = (v[2] + v[6]) * _fixed(0.541196100)
    o0, o1 = z + v[2] * _fixed(0.765366865), z - v[6] * _fixed(1.847759065)
    e0, e1 = (v[0] + v[4]) << _BITS, (v[0] - v[4]) << _BITS
    s0, s3, s1, s2 = e0 + o0, e0 - o0, e1 + o1, e1 - o1
    d3, d2, d1, d0 = _odd_half(v[7], v[5], v[3], v[1])
    pairs = [(s0, d0), (s1, d1), (s2, d2), (s3, d3)]
    rows = [s + d for s, d in pairs] + [s - d for s, d in reversed(pairs)]
    return torch.stack([_descaled(row, bits) for row in rows], dim=-1)
