"""What operators compute, by other means: Pillow, OpenCV, SciPy, or the formula in float64.

Alone because DALI is one oracle and this is the other, which also reaches operators that DALI has for GPUs only. Each
function gets the inputs of one sample and the arguments of its case with the sample's values, and returns the output.
"""

from __future__ import annotations

import io
import math
import wave
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import scipy.fft
import scipy.ndimage
import scipy.spatial.transform
from PIL import Image

__all__ = ["REFERENCES", "Reference"]


@dataclass(frozen=True)
class Reference:
    """One operator by other means.

    Attributes:
        what: the other means, in a word.
        function: ``f(*inputs, **arguments) -> output``.
        atol: largest difference of integers.
        rtol: largest difference of floats relative to the largest value.
        share: part of the elements that may differ by more.
    """

    what: str
    function: Callable[..., Any]
    atol: float = 0
    rtol: float = 0
    share: float = 0


def _bytes(values: np.ndarray) -> np.ndarray:
    """Round half away from zero and saturate."""
    return np.clip(np.trunc(values + np.copysign(0.5, values)), 0, 255).astype(np.uint8)


def _levels(x: np.ndarray, *, brightness: float = 1, brightness_shift: float = 0, contrast: float = 1) -> np.ndarray:
    return _bytes(brightness_shift * 255 + brightness * (128 + contrast * (x.astype(np.float64) - 128)))


_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.311]])


def _twist(
    x: np.ndarray,
    *,
    hue: float = 0,
    saturation: float = 1,
    value: float = 1,
    brightness: float = 1,
    contrast: float = 1,
) -> np.ndarray:
    angle = math.radians(hue)
    turn = np.array([[1, 0, 0], [0, math.cos(angle), math.sin(angle)], [0, -math.sin(angle), math.cos(angle)]])
    matrix = np.linalg.inv(_YIQ) @ turn @ np.diag([1.0, saturation, saturation]) @ _YIQ * value
    colours = x.astype(np.float64) @ matrix.T
    return _bytes(brightness * (128 + contrast * (colours - 128)))


_YCBCR = np.array([[0.257, 0.504, 0.098], [-0.148, -0.291, 0.439], [0.439, -0.368, -0.071]])


def _looked_up(x: np.ndarray, *, keys: list[int], values: list[float], default_value: float) -> np.ndarray:
    table = dict(zip(keys, values, strict=True))
    return np.array([table.get(int(item), default_value) for item in x.reshape(-1)], np.float32).reshape(x.shape)


def _seen(x: np.ndarray, row: np.ndarray, column: np.ndarray, fill: float, *, nearest: bool) -> np.ndarray:
    """Look at an image at points that count from the corner of the first pixel."""
    bordered = np.pad(x.astype(np.float64), ((1, 1), (1, 1), (0, 0)), constant_values=fill)

    def at(y: np.ndarray, i: np.ndarray) -> np.ndarray:
        height, width = x.shape[:2]
        return bordered[np.clip(y + 1, 0, height + 1).astype(int), np.clip(i + 1, 0, width + 1).astype(int)]

    if nearest:
        return _bytes(at(np.floor(row), np.floor(column)))
    y, i = np.floor(row - 0.5), np.floor(column - 0.5)
    down, right = (row - 0.5 - y)[..., None], (column - 0.5 - i)[..., None]
    upper = at(y, i) * (1 - right) + at(y, i + 1) * right
    lower = at(y + 1, i) * (1 - right) + at(y + 1, i + 1) * right
    return _bytes(upper * (1 - down) + lower * down)


def _warped(x: np.ndarray, matrix: np.ndarray, height: int, width: int, fill: float) -> np.ndarray:
    rows, columns = np.mgrid[0:height, 0:width] + 0.5
    points = np.einsum("ij,jyx->iyx", matrix, np.stack([columns, rows, np.ones_like(rows)]))
    if len(matrix) == 3:
        points = points[:2] / points[2]
    return _seen(x, points[1], points[0], fill, nearest=False)


def _rotated(x: np.ndarray, *, angle: float, fill_value: float) -> np.ndarray:
    height, width = x.shape[:2]
    turn = math.radians(angle)
    cosine, sine = abs(math.cos(turn)), abs(math.sin(turn))
    wide = math.ceil(cosine * width + sine * height - 1e-2)
    high = math.ceil(sine * width + cosine * height - 1e-2)
    # As an even canvas has no middle pixel, the parity of the larger source extent decides.
    if wide % 2 != (width if cosine > sine else height) % 2:
        wide += 1
    if high % 2 != (height if cosine > sine else width) % 2:
        high += 1
    back = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    shift = np.array([width / 2, height / 2]) - back @ np.array([wide / 2, high / 2])
    return _warped(x, np.column_stack([back, shift]), high, wide, fill_value)


def _window(x: np.ndarray, crop: list[int], pos_y: float = 0.5, pos_x: float = 0.5) -> np.ndarray:
    y, i = (math.floor((x.shape[a] - crop[a]) * p + 0.5) for a, p in ((0, pos_y), (1, pos_x)))
    return x[y : y + crop[0], i : i + crop[1]]


def _part(x: np.ndarray, *, rel_start: list[float], rel_end: list[float], axis_names: str) -> np.ndarray:
    window = [
        slice(math.floor(a * n + 0.5), math.floor(b * n + 0.5))
        for a, b, n in zip(rel_start, rel_end, x.shape, strict=False)
    ]
    return x[tuple(window)]


def _resized(x: np.ndarray, *, size: list[float]) -> np.ndarray:
    """Pillow leaves out weights beyond the border, where DALI repeats the last pixel: hence a share that differs."""
    return np.asarray(Image.fromarray(x).resize((int(size[1]), int(size[0])), Image.Resampling.BILINEAR))


def _blurred(x: np.ndarray, *, sigma: float) -> np.ndarray:
    radius = math.ceil(3 * sigma)
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    result = x.astype(np.float64)
    for axis in (0, 1):
        result = scipy.ndimage.correlate1d(result, weights / weights.sum(), axis, mode="mirror")
    return _bytes(result)


def _laplacian(x: np.ndarray, *, window_size: int, normalized_kernel: bool) -> np.ndarray:
    assert normalized_kernel
    second, smooth = (part.reshape(-1).astype(np.float64) for part in cv2.getDerivKernels(2, 0, window_size))
    total = np.zeros(x.shape)
    for along, across in ((0, 1), (1, 0)):
        one = scipy.ndimage.correlate1d(x.astype(np.float64), second, along, mode="mirror")
        total += scipy.ndimage.correlate1d(one, smooth, across, mode="mirror")
    return _bytes(total * 2.0 ** (4 - 2 * window_size))


def _erased(x: np.ndarray, *, anchor: list[float], shape: list[float], axis_names: str, fill_value: Any) -> np.ndarray:
    out = x.copy()
    y, i, height, width = (int(value) for value in (*anchor, *shape))
    out[y : y + height, i : i + width] = fill_value
    return out


def _pasted(x: np.ndarray, *, ratio: float, paste_x: float, fill_value: Any) -> np.ndarray:
    height, width = (int(extent * ratio) for extent in x.shape[:2])
    out = np.empty((height, width, 3), np.uint8)
    out[:] = fill_value
    y, i = int(0.5 * (height - x.shape[0])), int(paste_x * (width - x.shape[1]))
    out[y : y + x.shape[0], i : i + x.shape[1]] = x
    return out


def _mosaic(one: np.ndarray, other: np.ndarray, *, output_size: Any, out_anchors: Any, shapes: Any) -> np.ndarray:
    out = np.zeros((*output_size, 3), np.uint8)
    for x, (y, i), (height, width) in zip((one, other), out_anchors, shapes, strict=True):
        out[y : y + height, i : i + width] = x[:height, :width]
    return out


def _grid(x: np.ndarray, *, tile: int, ratio: float, angle: float) -> np.ndarray:
    y, i = np.mgrid[0 : x.shape[0], 0 : x.shape[1]] / tile
    u, v = i * math.cos(angle) - y * math.sin(angle), i * math.sin(angle) + y * math.cos(angle)
    return np.where(((u % 1 < ratio) & (v % 1 < ratio))[..., None], 0, x).astype(x.dtype)


def _waves(x: np.ndarray, *, ampl_x: float, freq_y: float, mask: int) -> np.ndarray:
    if not mask:
        return x
    rows, columns = np.mgrid[0 : x.shape[0], 0 : x.shape[1]].astype(np.float64)
    seen_columns = columns + ampl_x * np.sin(0.049087 * rows)
    return _seen(x, rows + 10 * np.cos(freq_y * columns), seen_columns, 0, nearest=True)


def _ball(x: np.ndarray, *, mask: int, fill_value: float) -> np.ndarray:
    if not mask:
        return x
    height, width = x.shape[:2]
    y, i = np.mgrid[0:height, 0:width] + 0.5
    y, i = y - height / 2, i - width / 2
    radius = np.hypot(y, i) / max(width // 2, height // 2)
    return _seen(x, y * radius + height / 2, i * radius + width / 2, fill_value, nearest=True)


def _opened(data: np.ndarray) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data.tobytes())).convert("RGB"))


def _sound(data: np.ndarray) -> tuple[np.ndarray, np.float32]:
    with wave.open(io.BytesIO(data.tobytes())) as file:
        sound = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
        return sound[:, None], np.float32(file.getframerate())


def _emphasised(x: np.ndarray, *, preemph_coeff: float) -> np.ndarray:
    shifted = np.concatenate([x[:1], x[:-1]]).astype(np.float64)
    return (x - preemph_coeff * shifted).astype(np.float32)


def _spectrogram(x: np.ndarray, *, nfft: int, window_length: int, window_step: int) -> np.ndarray:
    half = window_length // 2
    padded = np.pad(x.astype(np.float64), half, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(window_length) + 0.5) / window_length)
    starts = range(0, len(x) // window_step * window_step + 1, window_step)
    frames = np.stack([padded[start : start + window_length] * window for start in starts])
    return (np.abs(np.fft.rfft(frames, nfft)) ** 2).T.astype(np.float32)


def _mel_filters(x: np.ndarray, *, nfilter: int, sample_rate: float) -> np.ndarray:
    def mel(hertz: Any) -> Any:
        return np.where(hertz < 1000, hertz * 3 / 200, 15 + 27 * np.log(np.maximum(hertz, 1) / 1000) / np.log(6.4))

    edges = np.linspace(mel(0.0), mel(sample_rate / 2), nfilter + 2)
    hertz = np.where(edges < 15, edges * 200 / 3, 1000 * np.exp((edges - 15) * np.log(6.4) / 27))
    bins = np.arange(len(x)) * sample_rate / 2 / (len(x) - 1)
    rows = []
    for left, middle, right in zip(hertz[:-2], hertz[1:-1], hertz[2:], strict=True):
        slope = np.minimum((bins - left) / (middle - left), (right - bins) / (right - middle))
        rows.append(np.maximum(slope, 0) * 2 / (right - left))
    return (np.stack(rows) @ x.astype(np.float64)).astype(np.float32)


def _cepstrum(x: np.ndarray, *, n_mfcc: int, lifter: float) -> np.ndarray:
    result = scipy.fft.dct(x.astype(np.float64), type=2, axis=0)[:n_mfcc] / 2  # SciPy's has twice the sum
    weights = 1 + lifter / 2 * np.sin(np.pi * np.arange(1, n_mfcc + 1) / lifter)
    return (result * weights[:, None]).astype(np.float32)


def _decibels(x: np.ndarray, *, cutoff_db: float) -> np.ndarray:
    ratio = x.astype(np.float64) / x.max()
    return (10 * np.log10(np.maximum(ratio, 10 ** (cutoff_db / 10)))).astype(np.float32)


def _mirrored_boxes(x: np.ndarray, *, horizontal: int, vertical: int, ltrb: bool) -> np.ndarray:
    out = x.copy()
    for axis, flag in ((0, horizontal), (1, vertical)):
        if flag:
            out[:, axis], out[:, axis + 2] = 1 - x[:, axis + 2], 1 - x[:, axis]
    return out


def _moved_boxes(x: np.ndarray, *, ratio: float, paste_x: float, ltrb: bool) -> np.ndarray:
    margin = 1 - 1 / ratio
    return (x / ratio + np.array([paste_x, 0.5, paste_x, 0.5]) * margin).astype(np.float32)


def _about(matrix: np.ndarray, center: Any) -> np.ndarray:
    """Return a linear map that leaves a point where it is, with its translation."""
    middle = np.asarray(center, np.float64)
    return np.column_stack([matrix, middle - matrix @ middle]).astype(np.float32)


def _turned(*, angle: float, center: Any) -> np.ndarray:
    turn = scipy.spatial.transform.Rotation.from_euler("z", angle, degrees=True).as_matrix()[:2, :2]
    return _about(turn, center)


def _taken(*, from_start: Any, from_end: Any, to_start: Any, to_end: Any) -> np.ndarray:
    a, b, c, d = (np.asarray(value, np.float64) for value in (from_start, from_end, to_start, to_end))
    scale = (d - c) / (b - a)
    return np.column_stack([np.diag(scale), c - scale * a]).astype(np.float32)


def _combined(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    square = [np.vstack([matrix, [0, 0, 1]]).astype(np.float64) for matrix in (one, other)]
    return (square[1] @ square[0])[:2].astype(np.float32)


def _standardised(x: np.ndarray, *, axis_names: str, shift: float, scale: float) -> np.ndarray:
    values = x.astype(np.float64)
    spread = values.std(axis=(0, 1), keepdims=True)
    return ((values - values.mean(axis=(0, 1), keepdims=True)) / spread * scale + shift).astype(np.float32)


def _prepared(x: np.ndarray, *, crop: Any, mirror: int, mean: Any, std: Any) -> np.ndarray:
    window = _window(x, crop)[:, :: -1 if mirror else 1]
    return ((window - np.array(mean)) / np.array(std)).transpose(2, 0, 1).astype(np.float32)


def _tensor_cast(x: np.ndarray, *, dtype: Any) -> np.ndarray:
    limits = np.iinfo(dtype.numpy)
    values = np.trunc(x + np.copysign(0.5, x).astype(x.dtype))
    return np.clip(values, limits.min, limits.max).astype(dtype.numpy)


def _reduced(function: Callable[..., Any], dtype: Any = np.float32) -> Callable[..., np.ndarray]:
    return lambda x, axis_names: np.asarray(function(x.astype(np.float64), axis=(0, 1))).astype(dtype)


_BY_NUMPY, _FORMULA, _PILLOW, _OPENCV, _SCIPY = "NumPy", "float64 formula", "Pillow", "OpenCV", "SciPy"


def _exact(function: Callable[..., Any]) -> Reference:
    return Reference(_BY_NUMPY, function)


def _rounded(function: Callable[..., Any], what: str = _FORMULA, share: float = 0) -> Reference:
    return Reference(what, function, atol=1, share=share)


def _close(function: Callable[..., Any], what: str = _FORMULA, rtol: float = 1e-5) -> Reference:
    return Reference(what, function, rtol=rtol)


REFERENCES: dict[str, Reference] = {
    # decoders; the colours of a JPEG depend on its decoder
    "decoders.image": _rounded(_opened, _PILLOW, share=0.05),
    "decoders.image_crop": _rounded(lambda x, crop: _window(_opened(x), crop), _PILLOW, share=0.05),
    "decoders.image_slice": _rounded(lambda x, **given: _part(_opened(x), **given), _PILLOW, share=0.05),
    "decoders.audio": _close(_sound, "wave"),
    "decoders.numpy": _exact(lambda x, dtype: np.load(io.BytesIO(x.tobytes()))),
    "io.file.read": _exact(lambda x: np.frombuffer(Path(x.tobytes().decode()).read_bytes(), np.uint8)),
    "peek_image_shape": Reference(_PILLOW, lambda x: np.array(_opened(x).shape, np.int64)),
    # audio
    "mel_filter_bank": _close(_mel_filters),
    "mfcc": _close(_cepstrum, _SCIPY),
    "power_spectrum": _close(lambda x, nfft: (np.abs(np.fft.rfft(x, nfft)) ** 2).astype(np.float32), _BY_NUMPY),
    "preemphasis_filter": _close(_emphasised),
    "spectrogram": _close(_spectrogram, _BY_NUMPY),
    "to_decibels": _close(_decibels),
    # boxes, points, matrices
    "bb_flip": _close(_mirrored_boxes),
    "bbox_paste": _close(_moved_boxes),
    "coord_flip": _close(lambda x, layout: np.stack([1 - x[:, 0], x[:, 1]], axis=1)),
    "coord_transform": _close(
        lambda x, **given: (x @ np.reshape(given["M"], (2, 2)).T + given["T"]).astype(np.float32)
    ),
    "transforms.combine": _close(_combined, _BY_NUMPY),
    "transforms.crop": _close(_taken),
    "transforms.rotation": _close(_turned, _SCIPY),
    "transforms.scale": _close(lambda scale, center: _about(np.diag(scale), center)),
    "transforms.shear": _close(lambda shear, center: _about(np.array([[1, shear[0]], [shear[1], 1]]), center)),
    "transforms.translation": _close(lambda offset: np.column_stack([np.eye(2), offset]).astype(np.float32)),
    # colour
    "brightness": _rounded(_levels),
    "brightness_contrast": _rounded(_levels),
    "contrast": _rounded(_levels),
    "color_twist": _rounded(_twist),
    "hsv": _rounded(_twist),
    "hue": _rounded(_twist),
    "saturation": _rounded(_twist),
    "color_space_conversion": _rounded(lambda x, **_: _bytes(x @ _YCBCR.T + [16, 128, 128])),
    "equalize": Reference(_OPENCV, lambda x: np.stack([cv2.equalizeHist(x[..., c].copy()) for c in range(3)], axis=-1)),
    "lookup_table": _close(_looked_up),
    # geometry
    "crop": _exact(lambda x, crop, crop_pos_x, crop_pos_y: _window(x, crop, crop_pos_y, crop_pos_x)),
    "crop_mirror_normalize": _close(_prepared),
    "flip": _exact(lambda x, horizontal, vertical: x[::-1, :: -1 if horizontal else 1]),
    "experimental.remap": _rounded(
        lambda x, columns, rows: cv2.remap(
            x, columns - 0.5, rows - 0.5, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT
        ),
        _OPENCV,
        share=0.2,
    ),
    "experimental.resize": _rounded(_resized, _PILLOW, share=0.02),
    "experimental.warp_perspective": _rounded(
        lambda x, matrix, fill_value: _warped(x, np.reshape(matrix, (3, 3)), *x.shape[:2], fill_value[0]), share=0.05
    ),
    "multi_paste": _exact(_mosaic),
    "paste": _exact(_pasted),
    "resize": _rounded(_resized, _PILLOW, share=0.02),
    "rotate": _rounded(_rotated),
    "slice": _exact(_part),
    "tensor_resize": _rounded(lambda x, sizes, axes: _resized(x, size=sizes), _PILLOW, share=0.02),
    "warp_affine": _rounded(
        lambda x, matrix, fill_value: _warped(x, np.reshape(matrix, (2, 3)), *x.shape[:2], fill_value)
    ),
    # filters
    "erase": _exact(_erased),
    "experimental.dilate": Reference(
        _SCIPY, lambda x, mask_size: scipy.ndimage.grey_dilation(x, (*mask_size[::-1], 1), mode="constant")
    ),
    "experimental.erode": Reference(
        _SCIPY,
        lambda x, mask_size: scipy.ndimage.grey_erosion(x, (*mask_size[::-1], 1), mode="constant", cval=255),
    ),
    "experimental.median_blur": Reference(
        _SCIPY, lambda x, window_size: scipy.ndimage.median_filter(x, (*window_size[::-1], 1), mode="nearest")
    ),
    "filter": _rounded(
        lambda x, window: _bytes(scipy.ndimage.correlate(x.astype(np.float64), window[..., None], mode="mirror")),
        _SCIPY,
    ),
    "gaussian_blur": _rounded(_blurred, _SCIPY),
    "grid_mask": Reference(_FORMULA, _grid, share=0.01),
    "laplacian": _rounded(_laplacian, _SCIPY),
    "sphere": Reference(_FORMULA, _ball, share=0.01),
    "water": Reference(_FORMULA, _waves, share=0.02),
    # tensors
    "cast": _exact(_tensor_cast),
    "cast_like": _exact(lambda x, like: np.trunc(x + np.copysign(np.float32(0.5), x)).astype(like.dtype)),
    "cat": _exact(lambda one, other, axis_name: np.concatenate([one, other], axis=1)),
    "constant": _exact(lambda fdata, shape, layout: np.array(fdata, np.float32)),
    "copy": _exact(lambda x: x),
    "element_extract": Reference(_BY_NUMPY, lambda x, element_map: tuple(x[index] for index in element_map)),
    "expand_dims": _exact(lambda x, axes, new_axis_names: x[None]),
    "full": _exact(lambda x, shape: np.full(shape, x)),
    "full_like": _exact(lambda x, value: np.full(x.shape, _bytes(value))),
    "normalize": _close(_standardised),
    "one_hot": _exact(lambda x, num_classes, on_value: np.eye(num_classes, dtype=np.float32)[x] * np.float32(on_value)),
    "ones": _exact(lambda shape, layout: np.ones(shape, np.int32)),
    "ones_like": _exact(lambda x, dtype: np.ones(x.shape, dtype.numpy)),
    "reductions.max": _exact(lambda x, axis_names: x.max(axis=(0, 1))),
    "reductions.mean": _close(_reduced(np.mean)),
    "reductions.mean_square": _close(_reduced(lambda x, axis: np.mean(x**2, axis))),
    "reductions.min": _exact(lambda x, axes, keep_dims: x.min(axis=1, keepdims=True)),
    "reductions.rms": _close(_reduced(lambda x, axis: np.sqrt(np.mean(x**2, axis)))),
    "reductions.std_dev": _close(lambda x, mean: np.float32(np.sqrt(np.mean((x.astype(np.float64) - mean) ** 2)))),
    "reductions.sum": _exact(_reduced(np.sum, np.uint64)),
    "reductions.variance": _close(
        lambda x, mean, ddof: np.float32(np.sum((x.astype(np.float64) - mean) ** 2) / (x.size - ddof))
    ),
    "reinterpret": _exact(lambda x, shape, dtype: x.reshape(-1).view(dtype.numpy)),
    "reshape": _exact(lambda x, src_dims, layout: x.reshape(x.shape[1], x.shape[0], x.shape[2])),
    "sequence_rearrange": _exact(lambda x, new_order: x[new_order]),
    "shapes": _exact(lambda x: np.array(x.shape, np.int64)),
    "squeeze": _exact(lambda x, axis_names: x[..., 0]),
    "stack": _exact(lambda one, other, axis: np.stack([one, other], axis)),
    "transpose": _exact(lambda x, perm: x.transpose(perm)),
    "zeros": _exact(lambda shape, dtype: np.zeros(shape, dtype.numpy)),
    "zeros_like": _exact(lambda x: np.zeros_like(x)),
}
