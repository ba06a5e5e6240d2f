"""Pipelines on a device, or in emulation: conditionals, several uses of a value, states, errors.

The expected values are those of the same pipeline on the CPU, or are computed with NumPy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import Pipeline, fn, pipeline_def, types

BATCH = 6


def values_of(batches: Any) -> list[list[np.ndarray[Any, Any]]]:
    """Return the samples of each output on the CPU."""
    results = []
    for batch in batches:
        on_cpu = batch.as_cpu()
        results.append([np.array(on_cpu.at(index)) for index in range(len(on_cpu))])
    return results


def images(number: int, dtype: str = "uint8") -> list[np.ndarray[Any, Any]]:
    """Return noise images of several sizes, different for each number."""
    random = np.random.default_rng(number)
    sizes = random.integers(8, 30, (BATCH, 2)).tolist()
    return [random.integers(0, 120, (height, width, 3)).astype(dtype) for height, width in sizes]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_branches(device: str, dtype: str) -> None:
    """Each sample takes its own branch, also nested ones and an empty one."""

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=0)
    def pipeline() -> Any:
        data = fn.external_source(lambda number: images(number, dtype), layout="HWC")
        kind = fn.external_source(lambda number: (np.arange(BATCH, dtype=np.int32) + number) % 4)
        result = data.gpu() if device == "gpu" else data
        if kind == 0:
            result = fn.flip(result, horizontal=1)
        elif kind > 1:
            if kind == 2:
                result = fn.flip(result, horizontal=0, vertical=1)
            else:
                result = fn.crop(result, crop=(5, 6), crop_pos_x=0.0, crop_pos_y=0.0)
        return result, fn.cast(result, dtype=types.INT64)

    expected = {0: lambda x: x[:, ::-1], 1: lambda x: x, 2: lambda x: x[::-1], 3: lambda x: x[:5, :6]}
    pipe = pipeline()
    for number in range(4):
        found, wide = values_of(pipe.run())
        for n, (one, two, source) in enumerate(zip(found, wide, images(number, dtype), strict=True)):
            other = expected[(n + number) % 4](source)
            assert one.dtype == source.dtype
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(two, other)


@pytest.mark.parametrize("truth", [0, 1])
def test_branches_that_no_sample_takes(device: str, truth: int) -> None:
    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=0)
    def pipeline() -> Any:
        data = fn.external_source(images, layout="HWC")
        flag = fn.external_source(lambda: np.full(BATCH, truth, bool))
        data = data.gpu() if device == "gpu" else data
        return fn.brightness(data, brightness=2.0) if flag else fn.flip(data)

    pipe = pipeline()
    for number in range(2):
        for found, source in zip(values_of(pipe.run())[0], images(number), strict=True):
            np.testing.assert_array_equal(found, source * 2 if truth else source[:, ::-1])


def test_values_with_several_uses(device: str) -> None:
    """No kernel writes to memory that another one still reads; results that were kept do not change."""

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=0, prefetch_queue_depth=3)
    def pipeline() -> Any:
        data = fn.external_source(images, layout="HWC")
        data = data.gpu() if device == "gpu" else data
        bright = fn.brightness(data, brightness=2.0)
        return data, bright, fn.flip(bright), fn.cast(data, dtype=types.FLOAT) - fn.cast(bright, dtype=types.FLOAT)

    pipe = pipeline()
    kept = [pipe.run() for _ in range(8)]
    for number, batches in enumerate(kept):
        for source, bright, flipped, difference, original in zip(*values_of(batches), images(number), strict=True):
            np.testing.assert_array_equal(source, original)
            np.testing.assert_array_equal(bright, original * 2)
            np.testing.assert_array_equal(flipped, original[:, ::-1] * 2)
            np.testing.assert_array_equal(difference, -original.astype(np.float32))


def training(folder: Path, device: str) -> Pipeline:
    """Return a pipeline that reads, decodes and augments at random, without dependence on earlier batches."""

    @pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=11)
    def pipeline() -> Any:
        data, labels = fn.readers.file(file_root=str(folder), random_shuffle=True, name="reader")
        decoded = fn.decoders.image(data)
        decoded = decoded.gpu() if device == "gpu" else decoded
        resized = fn.random_resized_crop(decoded, size=(24, 20))
        resized = fn.brightness(resized, brightness=fn.random.uniform(range=(0.5, 1.5)))
        noisy = fn.noise.gaussian(resized, stddev=4.0)
        if fn.random.coin_flip(dtype=types.BOOL):
            noisy = fn.flip(noisy)
        return noisy, labels.gpu() if device == "gpu" else labels

    return pipeline()


@pytest.mark.parametrize("step", [0, 1, 4])
def test_resume(device: str, photo_folder: Path, step: int) -> None:
    """A restored pipeline continues with the batches of an uninterrupted one."""
    whole = training(photo_folder, device)
    for _ in range(step):
        whole.run()
    state = whole.state_dict()
    expected = [values_of(whole.run()) for _ in range(4)]
    resumed = training(photo_folder, device)
    resumed.load_state_dict(state)
    for batches in expected:
        for found, other in zip(values_of(resumed.run()), batches, strict=True):
            for one, two in zip(found, other, strict=True):
                np.testing.assert_array_equal(one, two)


def test_resume_on_the_other_device(photo_folder: Path, gpu: str) -> None:
    """A pipeline on the device continues at the state of one on the CPU, with the same labels and random numbers."""
    on_cpu, on_device = training(photo_folder, "cpu"), training(photo_folder, gpu)
    for _ in range(3):
        on_cpu.run()
    on_device.load_state_dict(on_cpu.state_dict())
    for _ in range(3):
        (expected, labels), (found, same) = values_of(on_cpu.run()), values_of(on_device.run())
        assert np.concatenate(labels).tolist() == np.concatenate(same).tolist()
        for one, other in zip(found, expected, strict=True):
            # Interpolation and brightness each round, so that a gray level can become two.
            assert np.abs(one.astype(int) - other.astype(int)).max() <= 2


def test_error_of_a_sample_names_it_and_the_next_batch_is_computed(device: str) -> None:
    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=0)
    def pipeline() -> Any:
        data = fn.external_source(images, layout="HWC")
        extents = fn.external_source(
            lambda number: [np.array([90 if (number, n) == (1, 4) else 4, 4], np.float32) for n in range(BATCH)]
        )
        data = data.gpu() if device == "gpu" else data
        return fn.crop(data, crop=extents)  # too large for sample 4 of batch 1

    pipe = pipeline()
    assert len(values_of(pipe.run())[0]) == BATCH
    with pytest.raises(Exception, match="sample 4") as caught:
        pipe.run()
    assert "test_device_pipelines.py" in str(caught.value)
    assert "crop" in str(caught.value)
    assert [sample.shape for sample in values_of(pipe.run())[0]] == [(4, 4, 3)] * BATCH


@pytest.mark.usefixtures("gpu")
def test_values_computed_on_the_device_are_arguments_after_a_copy_to_the_cpu() -> None:
    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=0)
    def pipeline() -> Any:
        data = fn.external_source(images, layout="HWC")
        level = fn.external_source(lambda number: np.full(BATCH, number, np.int32))
        factor = fn.cast(level.gpu(), dtype=types.FLOAT) * 0.5
        return fn.brightness(data.gpu(), brightness=factor.cpu())

    pipe = pipeline()
    for number in range(3):
        for found, source in zip(values_of(pipe.run())[0], images(number), strict=True):
            np.testing.assert_allclose(found.astype(float), source * 0.5 * number, atol=0.5)


def test_taps(device: str) -> None:
    """Intermediate values are those of the last batch, with prefetching and conditions; kept results do not change."""

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=0, prefetch_queue_depth=2, seed=3)
    def pipeline() -> Any:
        data = fn.external_source(images, layout="HWC")
        data = data.gpu() if device == "gpu" else data
        result = fn.cast(fn.flip(data, name="flipped"), dtype=types.INT32)
        if fn.random.coin_flip(name="coin") == 1:
            result = fn.flip(result, horizontal=0, vertical=1)
        return fn.copy(result, name="after") + 1

    pipe = pipeline(taps=["flipped", "after", "coin"])
    kept = []
    for number in range(6):
        (outputs,) = values_of(pipe.run())
        kept.append(pipe.tap("flipped"))
        chosen, after = values_of([pipe.tap("coin"), pipe.tap("after")])
        for given, found, tapped, is_turned in zip(images(number), outputs, after, chosen, strict=True):
            expected = given[:, ::-1].astype(np.int32)
            np.testing.assert_array_equal(tapped, expected[::-1] if is_turned else expected)
            np.testing.assert_array_equal(found, tapped + 1)
    for number, flipped in enumerate(values_of(kept)):
        for given, found in zip(images(number), flipped, strict=True):
            np.testing.assert_array_equal(found, given[:, ::-1])
