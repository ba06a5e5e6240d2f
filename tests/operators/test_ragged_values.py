"""Operators on values other than images: samples of different shapes take one call, and have the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dalify import eager, types
from dalify.data.batch import Batch, block_offsets
from dalify.data.dtypes import from_numpy
from dalify.data.tensors import TensorListCPU
from dalify.executor.kernel_step import KernelStep

_RANDOM = np.random.default_rng(2)
_SIZES = [5, 12, 5, 2, 7]


def _of(make: Callable[[int], Any]) -> list[np.ndarray]:
    return [np.asarray(make(size)) for size in _SIZES]


def _numbers(*extents: int, dtype: Any = np.float32) -> list[np.ndarray]:
    """Return arrays with the given extents; 0 means an extent that differs between samples."""
    return _of(lambda n: _RANDOM.normal(0, 90, [extent or n for extent in extents]).astype(dtype))


_ROWS = _numbers(0, 3)
_SCALARS = _numbers()
_POINTS = _numbers(0, 2)
_SPECTRA = _numbers(20, 0)
_MATRICES = _numbers(2, 3)
_SHAPES = _of(lambda n: np.array([n, 2], np.int32))
_MASKS = _of(lambda n: _RANDOM.integers(0, 3, (n, n + 3)).astype(np.uint8))
_LABELS = _of(lambda n: _RANDOM.integers(0, 4, n).astype(np.int32))

# A function of batches, and the samples of each.
_CASES: dict[str, tuple[Callable[..., Any], list[list[np.ndarray]]]] = {
    "cast_like": (eager.cast_like, [_ROWS, _LABELS]),
    "audio_resample": (
        lambda x, scale: eager.audio_resample(x, scale=scale),
        [_numbers(0, 2), _of(lambda n: np.float32(0.3 + n / 10))],
    ),
    "audio_resample of integers": (
        lambda x: eager.audio_resample(x, in_rate=3.0, out_rate=2.0, dtype=types.UINT8),
        [_numbers(0, dtype=np.int16)],
    ),
    "coord_transform": (lambda x, mt: eager.coord_transform(x, MT=mt), [_POINTS, _MATRICES]),
    "coord_transform of vectors": (lambda x: eager.coord_transform(x, T=2.0), [_numbers(3, 0)]),
    "mfcc": (lambda x: eager.mfcc(x, n_mfcc=9), [_SPECTRA]),
    "power_spectrum": (eager.power_spectrum, [_numbers(4, 0)]),
    "power_spectrum of one length": (lambda x: eager.power_spectrum(x, axis=0, nfft=16), [_ROWS]),
    "random.uniform": (lambda x: eager.random.uniform(x, range=[2, 5], seed=4), [_ROWS]),
    "random.uniform of integers": (
        lambda x: eager.random.uniform(x, range=[2, 500], dtype=types.INT32, seed=4),
        [_ROWS],
    ),
    "random.uniform of values": (lambda x: eager.random.uniform(x, values=[2, 5, 7], seed=4), [_ROWS]),
    "random.uniform of a shape": (lambda shape: eager.random.uniform(shape=shape, seed=4), [_SHAPES]),
    "random.normal": (lambda x, mean: eager.random.normal(x, mean=mean, seed=4), [_ROWS, _SCALARS]),
    "random.coin_flip": (lambda x: eager.random.coin_flip(x, seed=4), [_ROWS]),
    "random.beta": (lambda x: eager.random.beta(x, alpha=0.5, seed=4), [_ROWS]),
    "random.choice": (lambda x: eager.random.choice(x, shape=[9], seed=4), [_ROWS]),
    "random.choice of numbers": (lambda x: eager.random.choice(7, x, seed=4), [_ROWS]),
    "random.choice with probabilities": (
        lambda x, p: eager.random.choice(x, x, p=p, seed=4),
        [_LABELS, _of(lambda n: np.arange(n) * 2 / (n * (n - 1)))],
    ),
    "segmentation.random_mask_pixel": (
        lambda x, threshold: eager.segmentation.random_mask_pixel(x, foreground=1, threshold=threshold, seed=4),
        [_ROWS, _SCALARS],
    ),
    "segmentation.random_object_bbox": (
        lambda x: eager.segmentation.random_object_bbox(x, output_class=True, seed=4, k_largest=2, threshold=[1, 2]),
        [_MASKS],
    ),
    "segmentation.random_object_bbox of classes": (
        lambda x, classes: eager.segmentation.random_object_bbox(x, classes=classes, seed=4, cache_objects=True),
        [_MASKS, _of(lambda n: np.arange(1, 2 + n % 3, dtype=np.int32))],
    ),
    "pad": (lambda x, fill: eager.pad(x, axes=[0], align=4, shape=9, fill_value=fill), [_ROWS, _SCALARS]),
    "sequence_rearrange": (
        lambda x, order: eager.sequence_rearrange(x, new_order=order),
        [_ROWS, _of(lambda n: np.arange(n - 1, 0, -1, dtype=np.int32))],
    ),
    "shapes": (eager.shapes, [_ROWS]),
    "roi_random_crop": (
        lambda x, crop: eager.roi_random_crop(x, crop_shape=crop, roi_start=0, roi_shape=1, seed=4),
        [_ROWS, _of(lambda n: np.arange(1, 2 + n % 2, dtype=np.int32))],
    ),
    "segmentation.select_masks": (
        lambda masks, polygons, vertices: eager.segmentation.select_masks(masks, polygons, vertices),
        [
            _of(lambda n: np.arange(n - 1, 0, -2, dtype=np.int32)),
            _of(lambda n: np.array([[i, 2 * i, 2 * i + 2] for i in range(n)], np.int32)),
            _of(lambda n: _RANDOM.normal(0, 9, (2 * n, 2)).astype(np.float32)),
        ],
    ),
    "full_like": (eager.full_like, [_ROWS, _SCALARS]),
    "full_like of rows": (eager.full_like, [_ROWS, _numbers(3)]),
    "full": (lambda x, shape: eager.full(x, shape=shape), [_SCALARS, _SHAPES]),
    "zeros": (lambda shape: eager.zeros(shape=shape), [_SHAPES]),
    "ones": (lambda shape: eager.ones(shape=shape, dtype=types.FLOAT16), [_SHAPES]),
    "zeros_like": (eager.zeros_like, [_ROWS]),
    "ones_like": (eager.ones_like, [_ROWS]),
    "one_hot": (lambda x: eager.one_hot(x, num_classes=3), [_LABELS]),
    "one_hot along another axis": (lambda x: eager.one_hot(x, num_classes=50, axis=1), [_ROWS]),
    "lookup_table": (lambda x: eager.lookup_table(x, keys=[0, 2], values=[1.5, 3]), [_LABELS]),
}


def _in_block(samples: list[np.ndarray]) -> TensorListCPU:
    """Return samples of different shapes as an operator returns them."""
    if len({sample.shape for sample in samples}) == 1:
        return TensorListCPU(np.stack(samples))
    shapes = np.array([sample.shape for sample in samples], np.int64).reshape(len(samples), samples[0].ndim)
    offsets, size_bytes = block_offsets(shapes, samples[0].itemsize)
    block = np.zeros(size_bytes, np.uint8)
    for sample, offset in zip(samples, offsets.tolist(), strict=True):
        block[offset : offset + sample.nbytes] = np.frombuffer(sample.tobytes(), np.uint8)
    dtype = from_numpy(samples[0].dtype)
    return TensorListCPU(Batch(None, None, dtype=dtype, ragged=(block, offsets, shapes)))


def _results(call: Callable[..., Any], batches: list[TensorListCPU]) -> list[list[np.ndarray]]:
    found = call(*batches)
    return [
        [np.array(output.at(n)) for n in range(len(output))]
        for output in (found if isinstance(found, list) else [found])
    ]


@pytest.mark.parametrize("name", _CASES)
def test_one_call_has_the_results_of_samples_of_one_shape(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, inputs = _CASES[name]
    calls: list[str] = []
    called = KernelStep._call_kernel

    def spy(step: KernelStep, *arguments: Any) -> Any:
        calls.append(step.node.operator.name)
        return called(step, *arguments)

    monkeypatch.setattr(KernelStep, "_call_kernel", spy)
    results = _results(call, [_in_block(samples) for samples in inputs])
    assert len(calls) <= 1
    for n in range(len(_SIZES)):
        alike = [TensorListCPU(np.stack([samples[n]] * len(_SIZES))) for samples in inputs]
        for output, (found, expected) in enumerate(zip(results, _results(call, alike), strict=True)):
            assert found[n].dtype == expected[n].dtype, output
            np.testing.assert_array_equal(found[n], expected[n], strict=True)
