"""Independent implementations of operators: Pillow, OpenCV, SciPy, NumPy, or the formula in float64.

DALI is one reference and these are the other; they also cover operators that DALI has for GPUs only. Each function
gets the inputs of one sample and the arguments of its case with the sample's values, and returns the output.
"""

from __future__ import annotations

import io
import math
import wave
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import scipy.fft
import scipy.ndimage
import scipy.spatial.transform
from PIL import Image


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


def to_bytes(values: np.ndarray) -> np.ndarray:
    """Round half away from zero and saturate."""
    return np.clip(np.trunc(values + np.copysign(0.5, values)), 0, 255).astype(np.uint8)


def levels(x: np.ndarray, *, brightness: float = 1, brightness_shift: float = 0, contrast: float = 1) -> np.ndarray:
    return to_bytes(brightness_shift * 255 + brightness * (128 + contrast * (x.astype(np.float64) - 128)))


YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.311]])


def twist(
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
    matrix = np.linalg.inv(YIQ) @ turn @ np.diag([1.0, saturation, saturation]) @ YIQ * value
    colors = x.astype(np.float64) @ matrix.T
    return to_bytes(brightness * (128 + contrast * (colors - 128)))


YCBCR = np.array([[0.257, 0.504, 0.098], [-0.148, -0.291, 0.439], [0.439, -0.368, -0.071]])


def looked_up(x: np.ndarray, *, keys: list[int], values: list[float], default_value: float) -> np.ndarray:
    table = dict(zip(keys, values, strict=True))
    return np.array([table.get(int(item), default_value) for item in x.reshape(-1)], np.float32).reshape(x.shape)


def seen(x: np.ndarray, row: np.ndarray, column: np.ndarray, fill: float, *, nearest: bool) -> np.ndarray:
    """Look at an image at points that count from the corner of the first pixel."""
    bordered = np.pad(x.astype(np.float64), ((1, 1), (1, 1), (0, 0)), constant_values=fill)

    def at(y: np.ndarray, i: np.ndarray) -> np.ndarray:
        height, width = x.shape[:2]
        return bordered[np.clip(y + 1, 0, height + 1).astype(int), np.clip(i + 1, 0, width + 1).astype(int)]

    if nearest:
        return to_bytes(at(np.floor(row), np.floor(column)))
    y, i = np.floor(row - 0.5), np.floor(column - 0.5)
    down, right = (row - 0.5 - y)[..., None], (column - 0.5 - i)[..., None]
    upper = at(y, i) * (1 - right) + at(y, i + 1) * right
    lower = at(y + 1, i) * (1 - right) + at(y + 1, i + 1) * right
    return to_bytes(upper * (1 - down) + lower * down)


def warped(x: np.ndarray, matrix: np.ndarray, height: int, width: int, fill: float) -> np.ndarray:
    rows, columns = np.mgrid[0:height, 0:width] + 0.5
    points = np.einsum("ij,jyx->iyx", matrix, np.stack([columns, rows, np.ones_like(rows)]))
    if len(matrix) == 3:
        points = points[:2] / points[2]
    return seen(x, points[1], points[0], fill, nearest=False)


def rotated(x: np.ndarray, *, angle: float, fill_value: float) -> np.ndarray:
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
    return warped(x, np.column_stack([back, shift]), high, wide, fill_value)


def cropped(x: np.ndarray, crop: list[int], pos_y: float = 0.5, pos_x: float = 0.5) -> np.ndarray:
    y, i = (math.floor((x.shape[a] - crop[a]) * p + 0.5) for a, p in ((0, pos_y), (1, pos_x)))
    return x[y : y + crop[0], i : i + crop[1]]


def part(x: np.ndarray, *, rel_start: list[float], rel_end: list[float], axis_names: str) -> np.ndarray:
    window = [
        slice(math.floor(a * n + 0.5), math.floor(b * n + 0.5))
        for a, b, n in zip(rel_start, rel_end, x.shape, strict=False)
    ]
    return x[tuple(window)]


def resized(x: np.ndarray, *, size: list[float]) -> np.ndarray:
    """Pillow leaves out weights beyond the border, DALI repeats the last pixel, so some pixels differ."""
    return np.asarray(Image.fromarray(x).resize((int(size[1]), int(size[0])), Image.Resampling.BILINEAR))


def blurred(x: np.ndarray, *, sigma: float) -> np.ndarray:
    radius = math.ceil(3 * sigma)
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    result = x.astype(np.float64)
    for axis in (0, 1):
        result = scipy.ndimage.correlate1d(result, weights / weights.sum(), axis, mode="mirror")
    return to_bytes(result)


def laplacian(x: np.ndarray, *, window_size: int, normalized_kernel: bool) -> np.ndarray:
    assert normalized_kernel
    second, smooth = (part.reshape(-1).astype(np.float64) for part in cv2.getDerivKernels(2, 0, window_size))
    total = np.zeros(x.shape)
    for along, across in ((0, 1), (1, 0)):
        one = scipy.ndimage.correlate1d(x.astype(np.float64), second, along, mode="mirror")
        total += scipy.ndimage.correlate1d(one, smooth, across, mode="mirror")
    return to_bytes(total * 2.0 ** (4 - 2 * window_size))


def erased(x: np.ndarray, *, anchor: list[float], shape: list[float], axis_names: str, fill_value: Any) -> np.ndarray:
    out = x.copy()
    y, i, height, width = (int(value) for value in (*anchor, *shape))
    out[y : y + height, i : i + width] = fill_value
    return out


def pasted(x: np.ndarray, *, ratio: float, paste_x: float, fill_value: Any) -> np.ndarray:
    height, width = (int(extent * ratio) for extent in x.shape[:2])
    out = np.empty((height, width, 3), np.uint8)
    out[:] = fill_value
    y, i = int(0.5 * (height - x.shape[0])), int(paste_x * (width - x.shape[1]))
    out[y : y + x.shape[0], i : i + x.shape[1]] = x
    return out


def mosaic(one: np.ndarray, other: np.ndarray, *, output_size: Any, out_anchors: Any, shapes: Any) -> np.ndarray:
    out = np.zeros((*output_size, 3), np.uint8)
    for x, (y, i), (height, width) in zip((one, other), out_anchors, shapes, strict=True):
        out[y : y + height, i : i + width] = x[:height, :width]
    return out


def grid(x: np.ndarray, *, tile: int, ratio: float, angle: float) -> np.ndarray:
    y, i = np.mgrid[0 : x.shape[0], 0 : x.shape[1]] / tile
    u, v = i * math.cos(angle) - y * math.sin(angle), i * math.sin(angle) + y * math.cos(angle)
    return np.where(((u % 1 < ratio) & (v % 1 < ratio))[..., None], 0, x).astype(x.dtype)


def waves(x: np.ndarray, *, ampl_x: float, freq_y: float, mask: int) -> np.ndarray:
    if not mask:
        return x
    rows, columns = np.mgrid[0 : x.shape[0], 0 : x.shape[1]].astype(np.float64)
    seen_columns = columns + ampl_x * np.sin(0.049087 * rows)
    return seen(x, rows + 10 * np.cos(freq_y * columns), seen_columns, 0, nearest=True)


def ball(x: np.ndarray, *, mask: int, fill_value: float) -> np.ndarray:
    if not mask:
        return x
    height, width = x.shape[:2]
    y, i = np.mgrid[0:height, 0:width] + 0.5
    y, i = y - height / 2, i - width / 2
    radius = np.hypot(y, i) / max(width // 2, height // 2)
    return seen(x, y * radius + height / 2, i * radius + width / 2, fill_value, nearest=True)


def opened(data: np.ndarray) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data.tobytes())).convert("RGB"))


def opened_audio(data: np.ndarray) -> tuple[np.ndarray, np.float32]:
    with wave.open(io.BytesIO(data.tobytes())) as file:
        audio = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
        return audio[:, None], np.float32(file.getframerate())


def emphasised(x: np.ndarray, *, preemph_coeff: float) -> np.ndarray:
    shifted = np.concatenate([x[:1], x[:-1]]).astype(np.float64)
    return (x - preemph_coeff * shifted).astype(np.float32)


def spectrogram(x: np.ndarray, *, nfft: int, window_length: int, window_step: int) -> np.ndarray:
    half = window_length // 2
    padded = np.pad(x.astype(np.float64), half, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(window_length) + 0.5) / window_length)
    starts = range(0, len(x) // window_step * window_step + 1, window_step)
    frames = np.stack([padded[start : start + window_length] * window for start in starts])
    return (np.abs(np.fft.rfft(frames, nfft)) ** 2).T.astype(np.float32)


def mel_filters(x: np.ndarray, *, nfilter: int, sample_rate: float) -> np.ndarray:
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


def cepstrum(x: np.ndarray, *, n_mfcc: int, lifter: float) -> np.ndarray:
    result = scipy.fft.dct(x.astype(np.float64), type=2, axis=0)[:n_mfcc] / 2  # SciPy's has twice the sum
    weights = 1 + lifter / 2 * np.sin(np.pi * np.arange(1, n_mfcc + 1) / lifter)
    return (result * weights[:, None]).astype(np.float32)


def decibels(x: np.ndarray, *, cutoff_db: float) -> np.ndarray:
    ratio = x.astype(np.float64) / x.max()
    return (10 * np.log10(np.maximum(ratio, 10 ** (cutoff_db / 10)))).astype(np.float32)


def mirrored_boxes(x: np.ndarray, *, horizontal: int, vertical: int, ltrb: bool) -> np.ndarray:
    out = x.copy()
    for axis, flag in ((0, horizontal), (1, vertical)):
        if flag:
            out[:, axis], out[:, axis + 2] = 1 - x[:, axis + 2], 1 - x[:, axis]
    return out


def moved_boxes(x: np.ndarray, *, ratio: float, paste_x: float, ltrb: bool) -> np.ndarray:
    margin = 1 - 1 / ratio
    return (x / ratio + np.array([paste_x, 0.5, paste_x, 0.5]) * margin).astype(np.float32)


def about(matrix: np.ndarray, center: Any) -> np.ndarray:
    """Return a linear map that leaves a point where it is, with its translation."""
    middle = np.asarray(center, np.float64)
    return np.column_stack([matrix, middle - matrix @ middle]).astype(np.float32)


def turned(*, angle: float, center: Any) -> np.ndarray:
    turn = scipy.spatial.transform.Rotation.from_euler("z", angle, degrees=True).as_matrix()[:2, :2]
    return about(turn, center)


def taken(*, from_start: Any, from_end: Any, to_start: Any, to_end: Any) -> np.ndarray:
    a, b, c, d = (np.asarray(value, np.float64) for value in (from_start, from_end, to_start, to_end))
    scale = (d - c) / (b - a)
    return np.column_stack([np.diag(scale), c - scale * a]).astype(np.float32)


def combined(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    square = [np.vstack([matrix, [0, 0, 1]]).astype(np.float64) for matrix in (one, other)]
    return (square[1] @ square[0])[:2].astype(np.float32)


def standardised(x: np.ndarray, *, axis_names: str, shift: float, scale: float) -> np.ndarray:
    values = x.astype(np.float64)
    spread = values.std(axis=(0, 1), keepdims=True)
    return ((values - values.mean(axis=(0, 1), keepdims=True)) / spread * scale + shift).astype(np.float32)


def prepared(x: np.ndarray, *, crop: Any, mirror: int, mean: Any, std: Any) -> np.ndarray:
    window = cropped(x, crop)[:, :: -1 if mirror else 1]
    return ((window - np.array(mean)) / np.array(std)).transpose(2, 0, 1).astype(np.float32)


def tensor_cast(x: np.ndarray, *, dtype: Any) -> np.ndarray:
    limits = np.iinfo(dtype.numpy)
    values = np.trunc(x + np.copysign(0.5, x).astype(x.dtype))
    return np.clip(values, limits.min, limits.max).astype(dtype.numpy)


def reduced(function: Callable[..., Any], dtype: Any = np.float32) -> Callable[..., np.ndarray]:
    return lambda x, axis_names: np.asarray(function(x.astype(np.float64), axis=(0, 1))).astype(dtype)


BY_NUMPY, FORMULA, PILLOW, OPENCV, SCIPY = "NumPy", "float64 formula", "Pillow", "OpenCV", "SciPy"


def exact(function: Callable[..., Any]) -> Reference:
    return Reference(BY_NUMPY, function)


def rounded(function: Callable[..., Any], what: str = FORMULA, share: float = 0) -> Reference:
    return Reference(what, function, atol=1, share=share)


def close(function: Callable[..., Any], what: str = FORMULA, rtol: float = 1e-5) -> Reference:
    return Reference(what, function, rtol=rtol)
