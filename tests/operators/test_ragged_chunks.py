"""Operators compute samples of different shapes in one call: the results are those of samples of one shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dalify import fn, types
from dalify.pipeline import pipeline_def

_SHAPES = [(9, 7, 3), (4, 11, 3), (9, 7, 3), (1, 1, 3), (16, 5, 3)]


def _between(low: float, high: float, **options: Any) -> Any:
    return fn.random.uniform(range=[low, high], **options)


def _integer(low: int, high: int) -> Any:
    return fn.random.uniform(range=[low, high], dtype=types.INT32)


def _frames(x: Any) -> Any:
    """The channels as frames."""
    return fn.per_frame(fn.transpose(x, perm=[2, 0, 1]), replace=True)


def _mosaic(x: Any) -> Any:
    """Return one channel, repeated so that extents are even."""
    return fn.cat(*[fn.cat(x, x, axis=0)[..., :1]] * 2, axis=1)


def _warped(x: Any, **options: Any) -> Any:
    return fn.experimental.warp_perspective(x, matrix=[1, 0.1, 2, -0.1, 1, -3, 0.01, 0, 1], **options)


def _of_bytes(operator: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return an operator that supports uint8 only as one that casts its input first."""
    return lambda x: operator(fn.cast(x, dtype=types.UINT8))


_CASES: dict[str, Callable[[Any], Any]] = {
    "water": lambda x: fn.water(x, ampl_x=3, freq_x=0.7, mask=fn.random.coin_flip()),
    "sphere": lambda x: fn.sphere(x, interp_type=types.INTERP_LINEAR, fill_value=9),
    "jitter": lambda x: fn.jitter(x, nDegree=5, mask=fn.random.coin_flip()),
    "resize": lambda x: fn.resize(x, size=_between(1, 20, shape=[2])),
    "tensor_resize": lambda x: fn.tensor_resize(x, scales=_between(0.3, 2, shape=[2]), axes=[0, 1]),
    "tensor_resize of other axes": lambda x: fn.tensor_resize(x, sizes=[9, 7], axes=[0, 1], size_rounding="ceil"),
    "warp_perspective to other sizes": lambda x: _warped(x, size=_between(1, 20, shape=[2])),
    "warp_perspective": _warped,
    "warp_perspective reflect": lambda x: _warped(x, border_mode="reflect_101"),
    "warp_perspective wrap": lambda x: _warped(x, border_mode="wrap"),
    "warp_perspective cubic": lambda x: _warped(x, interp_type=types.INTERP_CUBIC),
    "rotate": lambda x: fn.rotate(x, angle=_between(-90, 90)),
    "rotate to other sizes": lambda x: fn.rotate(x, angle=_between(-90, 90), size=_between(1, 20, shape=[2])),
    "warp_affine": lambda x: fn.warp_affine(x, matrix=_between(-1, 1, shape=[2, 3]), size=_between(1, 20, shape=[2])),
    "noise.gaussian": lambda x: fn.noise.gaussian(x, stddev=_between(0, 20)),
    "noise.shot": lambda x: fn.noise.shot(x, factor=fn.random.coin_flip() * 10),
    "noise.salt_and_pepper": lambda x: fn.noise.salt_and_pepper(x, prob=_between(0, 1), salt_val=_between(3, 90)),
    "grid_mask": lambda x: fn.grid_mask(x, tile=5, ratio=_between(0, 1), angle=_between(-3, 3)),
    "dilate": lambda x: fn.experimental.dilate(x, mask_size=_integer(1, 6), border_mode="wrap"),
    "erode": lambda x: fn.experimental.erode(x, mask_size=_integer(1, 6), iterations=2),
    "median_blur": lambda x: fn.experimental.median_blur(x, window_size=2 * _integer(0, 3) + 1),
    "median_blur of other windows": lambda x: fn.experimental.median_blur(x, window_size=[3, 5]),
    "filter": lambda x: fn.filter(x, _between(-1, 1, shape=[3, 5]), anchor=_integer(0, 2)),
    "filter with our own sums": lambda x: fn.filter(x, _between(-1, 1, shape=[5, 6]), border="wrap"),
    "filter with fill values": lambda x: fn.filter(x, _between(0, 1, shape=[3, 2]), _between(0, 9), border="constant"),
    "filter of volumes": lambda x: fn.filter(fn.reinterpret(x, layout="DHW"), _between(-1, 1, shape=[3, 3, 2])),
    "equalize": _of_bytes(fn.equalize),
    "equalize gray": _of_bytes(lambda x: fn.equalize(x[..., :1])),
    "equalize planes": _of_bytes(lambda x: fn.equalize(fn.transpose(x, perm=[2, 0, 1]))),
    "gray": _of_bytes(lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.GRAY)),
    "YCbCr": _of_bytes(lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.YCbCr)),
    "YCbCr of gray": _of_bytes(
        lambda x: fn.color_space_conversion(x[..., :1], image_type=types.GRAY, output_type=types.YCbCr)
    ),
    "RGB of RGB": _of_bytes(lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.RGB)),
    "clahe": _of_bytes(lambda x: fn.clahe(x, tiles_x=2, tiles_y=3, clip_limit=2.0)),
    "clahe of channels": _of_bytes(lambda x: fn.clahe(x, tiles_x=2, tiles_y=3, clip_limit=2.0, luma_only=False)),
    "clahe of gray": _of_bytes(lambda x: fn.clahe(x[..., :1], tiles_x=2, tiles_y=3, clip_limit=2.0)),
    "debayer": _of_bytes(lambda x: fn.debayer(_mosaic(x), blue_position=_integer(0, 1))),
    "debayer along gradients": _of_bytes(
        lambda x: fn.debayer(_mosaic(x), blue_position=_integer(0, 1), algorithm="default_npp")
    ),
    "laplacian": lambda x: fn.laplacian(x, window_size=2 * _integer(1, 4) + 1, scale=_between(0, 1)),
    "laplacian of planes": lambda x: fn.laplacian(fn.transpose(x, perm=[2, 0, 1], output_layout="CHW")),
    "gaussian_blur": lambda x: fn.gaussian_blur(x, sigma=_between(0.5, 2)),
    "gaussian_blur of volumes": lambda x: fn.gaussian_blur(fn.reinterpret(x, layout="DHW"), sigma=_between(0.5, 2)),
    "jpeg_compression_distortion": _of_bytes(lambda x: fn.jpeg_compression_distortion(x, quality=_integer(1, 100))),
    "erase": lambda x: fn.erase(
        x,
        anchor=_between(-3, 9, shape=[4]),
        shape=_between(0, 9, shape=[4]),
        axis_names="HW",
        fill_value=_between(0, 99, shape=[3]),
    ),
    "slice beyond the edges": lambda x: fn.slice(
        x, start=[-2, 3], end=[7, 9], axes=[0, 1], out_of_bounds_policy="pad", fill_values=[4, 5, 6]
    ),
    "transpose": lambda x: fn.transpose(x, perm=[2, 0, 1]),
    "transpose without axes to merge": lambda x: fn.transpose(x),
    "index": lambda x: x[..., 1],
    "steps": lambda x: x[::-2, 1::2, ::-1],
    "index and slice of graph values": lambda x: x[_integer(-1, 0), _integer(-9, 3) : _integer(1, 9)],
    "element_extract": lambda x: fn.element_extract(_frames(x), element_map=[2, 0])[0],
    "normalize": lambda x: fn.normalize(x),
    "normalize channels": lambda x: fn.normalize(x, axes=[0, 1], dtype=types.UINT8, scale=50, shift=120),
    "normalize other axes": lambda x: fn.normalize(x, axes=[0, 2], shift=3),
    "normalize with means": lambda x: fn.normalize(x, mean=_between(3, 90, shape=[3]), epsilon=1),
    "normalize with deviations": lambda x: fn.normalize(x, axes=[0, 1], stddev=_between(3, 90)),
    "mean": lambda x: fn.reductions.mean(x, axes=[0, 2]),
    "sum": lambda x: fn.reductions.sum(x, axes=[0, 1]),
    "max": lambda x: fn.reductions.max(x, axes=[1]),
    "min": lambda x: fn.reductions.min(x),
    "variance": lambda x: fn.reductions.variance(x, fn.reductions.mean(x, axes=[1]), axes=[1]),
    "cat": lambda x: fn.cat(x, x[1:], x, axis_name="H"),
    "cat of channels": lambda x: fn.cat(x, x[..., 1:], axis=2),
    "stack": lambda x: fn.stack(x, x, axis=-1),
    "remap": lambda x: fn.experimental.remap(x, *(fn.cast(x[:, :, c], dtype=types.FLOAT) / 20 for c in range(2))),
}


def _results(operator: Callable[[Any], Any], samples: list[np.ndarray]) -> list[np.ndarray]:
    @pipeline_def(batch_size=len(samples), num_threads=2, device_id=None, seed=3)
    def define() -> Any:
        return operator(fn.external_source(source=[samples], batch=True, layout="HWC"))

    pipeline = define()
    (result,) = pipeline.run()
    found = [np.array(result.at(i)) for i in range(len(samples))]
    pipeline.close()
    return found


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int16"])
@pytest.mark.parametrize("name", _CASES)
def test_shapes_of_the_others_do_not_matter(name: str, dtype: str) -> None:
    random = np.random.default_rng(1)
    samples = [random.integers(0, 200, shape).astype(dtype) for shape in _SHAPES]
    operator = _CASES[name]
    for i, result in enumerate(_results(operator, samples)):
        alone = _results(operator, [samples[i]] * len(samples))[i]
        assert result.dtype == alone.dtype
        np.testing.assert_array_equal(result, alone)
