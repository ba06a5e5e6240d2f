"""Linear color operations: every output channel is a weighted sum of the input channels plus a constant.

Hue, saturation, value, brightness, contrast, gray and YCbCr are this operation with different matrices.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.array_at import flat_at
from dalify.base.compiling import njit
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.kernels.arrays.convert import in_float32, saturate_cast, saturate_cast_torch, to_uint8
from dalify.kernels.arrays.grid_torch import Grid
from dalify.kernels.arrays.simd import mix_sixteen_pixels
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.windows_torch import moved_torch, window_samples_torch
from dalify.kernels.dispatch import prefer_triton

if TYPE_CHECKING:
    from torch import Tensor

_PIXELS = 16

# NTSC luma and chroma with the three decimals of the standard, and DALI's inverse, which differs from the exact one in
# the last bit of three numbers. The rows I and Q do not sum to 0, so a fully desaturated image is not exactly gray.
_RGB_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]], np.float32)
_YIQ_TO_RGB = np.array(
    [
        [0.99966437, 0.95654118, 0.62086171],
        [0.99962485, -0.27227446, -0.64745128],
        [1.00281227, -1.10684800, 1.70540559],
    ],
    np.float32,
)


def twist_matrix(
    hue: np.ndarray,
    saturation: np.ndarray,
    value: np.ndarray,
    brightness: np.ndarray,
    contrast: np.ndarray,
    half_range: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrices that rotate hue, scale saturation and value, apply contrast, then brightness.

    In YIQ space hue rotates the chroma plane (I, Q), saturation scales it and value scales everything; afterwards
    ``out = brightness * (contrast * v + half_range * (1 - contrast))``.

    Args:
        hue: float32 [N], degrees.
        saturation: float32 [N], factor of the chroma.
        value: float32 [N], factor of all three channels.
        brightness: float32 [N], factor of the result.
        contrast: float32 [N], factor of the distance to `half_range`.
        half_range: the gray value that contrast does not change: 128 for integer images, 0.5 for float images.

    Returns:
        matrices float32 [N, 3, 3] and constants float32 [N, 3].
    """
    matrix, offset = np.empty((hue.size, 3, 3), np.float32), np.empty((hue.size, 3), np.float32)
    _twist(matrix, offset, hue, saturation, value, brightness, contrast, float(half_range))
    return matrix, offset


# Compiled, because a dozen NumPy calls would take as long as the image. Keeps the GIL, because releasing it takes
# longer than the computation.
@njit(cache=True)
def _twist(
    matrix: np.ndarray,
    offset: np.ndarray,
    hue: np.ndarray,
    saturation: np.ndarray,
    value: np.ndarray,
    brightness: np.ndarray,
    contrast: np.ndarray,
    half_range: float,
) -> None:
    # In float32 and in DALI's order, because results are often halfway between integers, and would be rounded
    # differently.
    for n in range(hue.size):
        angle = np.float32(np.float64(hue[n]) * math.pi / 180)
        cosine, sine = math.cos(angle), math.sin(angle)
        factor = brightness[n] * contrast[n] * value[n]
        for k in range(3):
            to_y, to_i, to_q = _YIQ_TO_RGB[k, 0] * factor, _YIQ_TO_RGB[k, 1] * factor, _YIQ_TO_RGB[k, 2] * factor
            from_i = (to_i * cosine - to_q * sine) * saturation[n]
            from_q = (to_i * sine + to_q * cosine) * saturation[n]
            for c in range(3):
                matrix[n, k, c] = to_y * _RGB_TO_YIQ[0, c] + from_i * _RGB_TO_YIQ[1, c] + from_q * _RGB_TO_YIQ[2, c]
            offset[n, k] = brightness[n] * (half_range - half_range * np.float64(contrast[n]))


@njit(nogil=True, cache=True)
def _mix_bytes(out_at, out_shapes, out_like, x_at, x_shapes, x_like, matrix, offset):
    """Mix three channels of uint8."""
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for n in range(len(x_at)):
        source, target = flat_at(x_at[n], x_shapes[n], x_like), flat_at(out_at[n], out_shapes[n], out_like)
        m, c = matrix[n], offset[n]
        m00, m01, m02, c0 = m[0, 0], m[0, 1], m[0, 2], c[0]
        m10, m11, m12, c1 = m[1, 0], m[1, 1], m[1, 2], c[1]
        m20, m21, m22, c2 = m[2, 0], m[2, 1], m[2, 2], c[2]
        numbers = m00, m01, m02, c0, m10, m11, m12, c1, m20, m21, m22, c2
        pixels = source.size // 3
        blocks = pixels // _PIXELS
        for block in range(blocks):
            at = np.uintp(block) * np.uintp(3 * _PIXELS)
            mix_sixteen_pixels(np.uintp(x_at[n]) + at, numbers, np.uintp(out_at[n]) + at)
        for i in range(blocks * _PIXELS, pixels):
            r = np.uint64(i) * three
            red, green, blue = np.float32(source[r]), np.float32(source[r + one]), np.float32(source[r + two])
            target[r] = to_uint8(m00 * red + m01 * green + m02 * blue + c0)
            target[r + one] = to_uint8(m10 * red + m11 * green + m12 * blue + c1)
            target[r + two] = to_uint8(m20 * red + m21 * green + m22 * blue + c2)


@njit(nogil=True, cache=True)
def _three_to_three(out_at, out_shapes, out_like, x_at, x_shapes, x_like, matrix, offset):
    # Indices are unsigned: numba then omits the test for negative indices, and the loop is vectorized.
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for n in range(len(x_at)):
        source, target = flat_at(x_at[n], x_shapes[n], x_like), flat_at(out_at[n], out_shapes[n], out_like)
        m, c = matrix[n], offset[n]
        m00, m01, m02, c0 = m[0, 0], m[0, 1], m[0, 2], c[0]
        m10, m11, m12, c1 = m[1, 0], m[1, 1], m[1, 2], c[1]
        m20, m21, m22, c2 = m[2, 0], m[2, 1], m[2, 2], c[2]
        for i in range(source.size // 3):
            r = np.uint64(i) * three
            red, green, blue = np.float32(source[r]), np.float32(source[r + one]), np.float32(source[r + two])
            target[r] = m00 * red + m01 * green + m02 * blue + c0
            target[r + one] = m10 * red + m11 * green + m12 * blue + c1
            target[r + two] = m20 * red + m21 * green + m22 * blue + c2


@njit(nogil=True, cache=True)
def _three_to_one(out_at, out_shapes, out_like, x_at, x_shapes, x_like, matrix, offset, to_byte):
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for n in range(len(x_at)):
        source, target = flat_at(x_at[n], x_shapes[n], x_like), flat_at(out_at[n], out_shapes[n], out_like)
        m0, m1, m2, c0 = matrix[n, 0, 0], matrix[n, 0, 1], matrix[n, 0, 2], offset[n, 0]
        for i in range(source.size // 3):
            r = np.uint64(i) * three
            value = m0 * np.float32(source[r]) + m1 * np.float32(source[r + one]) + m2 * np.float32(source[r + two])
            if to_byte:
                target[np.uint64(i)] = to_uint8(value + c0)
            else:
                target[np.uint64(i)] = value + c0


@njit(nogil=True, cache=True)
def _one_to_three(out_at, out_shapes, out_like, x_at, x_shapes, x_like, matrix, offset):
    """Compute three channels of uint8 from one."""
    for n in range(len(x_at)):
        source, target = flat_at(x_at[n], x_shapes[n], x_like), flat_at(out_at[n], out_shapes[n], out_like)
        for i in range(source.size):
            value = np.float32(source[i])
            for k in range(3):
                target[3 * i + k] = to_uint8(matrix[n, k, 0] * value + offset[n, k])


@njit(nogil=True, cache=True)
def _two_to_two(out_at, out_shapes, out_like, x_at, x_shapes, x_like, matrix, offset):
    one, two = np.uint64(1), np.uint64(2)
    for n in range(len(x_at)):
        source, target = flat_at(x_at[n], x_shapes[n], x_like), flat_at(out_at[n], out_shapes[n], out_like)
        m00, m01, c0 = matrix[n, 0, 0], matrix[n, 0, 1], offset[n, 0]
        m10, m11, c1 = matrix[n, 1, 0], matrix[n, 1, 1], offset[n, 1]
        for i in range(source.size // 2):
            first = np.uint64(i) * two
            left, right = source[first], source[first + one]
            target[first] = m00 * left + m01 * right + c0
            target[first + one] = m10 * left + m11 * right + c1


def _mix_floats(out: Samples, x: Samples, matrix: np.ndarray, offset: np.ndarray) -> None:
    """Mix three channels of float32 to three or one."""
    if matrix.shape[1] == 3:
        _three_to_three(*out.compiled, *x.compiled, matrix, offset)
    else:
        _three_to_one(*out.compiled, *x.compiled, matrix, offset, False)


def apply_matrix(out: Samples, x: Samples, matrix: np.ndarray, offset: np.ndarray) -> None:
    """Compute ``out[..., k] = sum_c matrix[k, c] * x[..., c] + offset[k]``, rounded and saturated.

    Args:
        out: N samples [..., K], any dtype, output.
        x: N samples [..., C], any dtype. Fastest for uint8 to uint8 with C = 3 and K = 1 or 3.
        matrix: float32 [N, K, C].
        offset: float32 [N, K], in units of `x`.
    """
    matrix = np.ascontiguousarray(matrix, np.float32)
    offset = np.ascontiguousarray(offset, np.float32)
    outputs, inputs = matrix.shape[1:]
    if inputs == outputs == 2 and x.dtype == out.dtype == np.float32:  # points
        _two_to_two(*out.compiled, *x.compiled, matrix, offset)
    elif inputs == 1 and outputs == 3 and x.dtype == out.dtype == np.uint8:
        _one_to_three(*out.compiled, *x.compiled, matrix, offset)
    elif inputs == 3 and outputs in (1, 3):
        if x.dtype == np.uint8 and out.dtype == np.uint8:
            if outputs == 3:
                _mix_bytes(*out.compiled, *x.compiled, matrix, offset)
            else:
                _three_to_one(*out.compiled, *x.compiled, matrix, offset, True)
            return

        def fill(target: Samples, source: Samples, numbers: np.ndarray) -> None:
            _mix_floats(target, source, matrix[numbers], offset[numbers])

        in_float32(out, x, fill)
    else:
        with np.errstate(invalid="ignore"):  # infinities in the data result in NaN
            for n, (target, values) in enumerate(zip(out.arrays(), x.arrays(), strict=True)):
                flat = values.reshape(-1, inputs).astype(np.float32, copy=False)
                result = flat @ matrix[n].T + offset[n]
                saturate_cast(target, result.reshape(target.shape))


@prefer_triton("pointwise", "apply_matrix")
def apply_matrix_torch(out: Any, x: Any, matrix: np.ndarray, offset: np.ndarray) -> None:
    """`apply_matrix` for torch tensors.

    Args:
        out: [N, ..., K], a tensor, or `DeviceSamples`.
        x: [N, ..., C], on `out`'s device, of the same type.
        matrix: float32 [N, K, C], NumPy.
        offset: float32 [N, K], NumPy.
    """
    sample = None
    if isinstance(x, DeviceSamples):
        if x.dense is not None and out.dense is not None:
            out, x = out.dense, x.dense
        else:
            out = out.ragged()  # pixels of all samples along one axis
            outputs, inputs = matrix.shape[1:]
            if (out.offsets % outputs).any() or out.block.numel() % outputs:
                tight = DeviceSamples.empty(out.shapes, out.dtype, out.device).ragged()
                apply_matrix_torch(tight, x, matrix, offset)
                window_samples_torch(out, tight, np.zeros_like(out.shapes))
                return
            # Moved, so that pixels of the results have the same indices as pixels of the input.
            sample = Grid(out, x, 1, outputs).sample
            places = out.offsets // outputs * inputs
            x = moved_torch(x, places, out.block.numel() // outputs * inputs).view(-1, inputs)
            out = out.block.view(-1, outputs)

    def parameter(values: Any) -> Tensor:
        table = uploaded(values, x.device, np.float32)
        if sample is not None:
            return table.index_select(0, sample)
        return table.reshape(-1, *[1] * (x.ndim - 2), table.shape[-1])

    source = x.float()
    result = parameter(offset).expand(*x.shape[:-1], matrix.shape[1])
    # Channel by channel, because a matrix product may have reduced precision on an accelerator.
    for channel in range(x.shape[-1]):
        result = result + source[..., channel : channel + 1] * parameter(matrix[:, :, channel])
    saturate_cast_torch(out, result)
