"""Streams and memory of a real device; in emulation the same programs run on torch's CPU device."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

from dalify import Pipeline, fn, pipeline_def, types
from dalify.base.errors import DeviceError
from dalify.base.processors import emulated

pytestmark = pytest.mark.gpu

BATCH = 4


@pytest.fixture(autouse=True)
def _device(monkeypatch: pytest.MonkeyPatch) -> None:
    if not torch.accelerator.is_available():
        monkeypatch.setenv("DALIFY_DEVICE", "cpu")


def numbered(seed: int, extent: int = 40, **options: Any) -> Pipeline:
    """Return a pipeline whose batch k has images of several sizes, with all values k + seed."""

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=0, **options)
    def pipeline() -> Any:
        def images(number: int) -> list[np.ndarray[Any, Any]]:
            shapes = [(extent + number % 5 + sample, extent, 3) for sample in range(BATCH)]
            return [np.full(shape, (number + seed) % 256, np.uint8) for shape in shapes]

        data = fn.external_source(images, layout="HWC")
        return fn.cast(fn.flip(data.gpu(), horizontal=1), dtype=types.INT32)

    return pipeline()


def tensors(pipe: Pipeline) -> list[torch.Tensor]:
    return [torch.from_dlpack(image) for image in pipe.run()[0]]


def test_two_pipelines_on_two_streams() -> None:
    """Batches are requested alternately, and read only at the end."""
    pipes = [numbered(0), numbered(100)]
    kept = [[tensors(pipe) for pipe in pipes] for _ in range(20)]
    for number, batches in enumerate(kept):
        for seed, batch in zip((0, 100), batches, strict=True):
            for image in batch:
                assert image.unique().tolist() == [number + seed]


def test_a_consumer_on_another_stream() -> None:
    """A long operation of the consumer reads a released batch while later batches are computed."""
    pipe = numbered(7, extent=200)
    is_cuda = torch.cuda.is_available() and not emulated()
    stream = torch.cuda.Stream() if is_cuda else None
    device = "cuda" if is_cuda else "cpu"
    heavy = torch.ones(1024 if is_cuda else 16, 1024 if is_cuda else 16, device=device)
    sums: list[torch.Tensor] = []
    counts: list[int] = []
    with torch.cuda.stream(stream) if stream is not None else nullcontext():
        for _ in range(20):
            batch = tensors(pipe)
            if is_cuda:
                for _ in range(20):
                    heavy = heavy @ heavy / 1024
            sums.append(torch.stack([image.sum() for image in batch]).sum())
            counts.append(sum(image.numel() for image in batch))
            del batch
    if stream is not None:
        stream.synchronize()
    assert [int(value) for value in sums] == [(number + 7) * count for number, count in enumerate(counts)]


def test_out_of_memory_on_the_device() -> None:
    """A batch that is larger than the device's memory is an error; the next one is computed."""
    if emulated():
        pytest.skip("the host's memory is not to be filled; test_device_steps.py has the same with a stand-in")
    free, _ = torch.cuda.mem_get_info()
    extent = int((free * 2 / BATCH / 3) ** 0.5)
    sizes = iter([(extent, extent), (8, 8)] + [(9, 9)] * 10)

    # On a large device one sample is larger than the default limit.
    @pipeline_def(
        batch_size=BATCH, num_threads=2, device_id=0, prefetch_queue_depth=1, limits={"max_sample_bytes": 1 << 45}
    )
    def pipeline() -> Any:
        data = fn.external_source(lambda: [np.ones((4, 4, 3), np.uint8)] * BATCH, layout="HWC")
        size = fn.external_source(lambda: [np.array(size, np.float32) for size in [next(sizes)] * BATCH])
        return fn.resize(data.gpu(), size=size)

    pipe = pipeline()
    with pytest.raises(DeviceError, match="no memory left"):
        pipe.run()
    assert [image.shape() for image in pipe.run()[0]] == [[8, 8, 3]] * BATCH


def test_memory_does_not_grow() -> None:
    pipe = numbered(0)
    is_cuda = torch.cuda.is_available() and not emulated()
    batch_count = 10_000 if is_cuda else 300

    def used() -> int:
        gc.collect()
        if is_cuda:
            torch.cuda.synchronize()
            return torch.cuda.memory_reserved()
        return sum(issubclass(type(item), torch.Tensor) for item in gc.get_objects())

    for _ in range(50):
        pipe.run()
    before = used()
    for _ in range(batch_count):
        pipe.run()
    # The number of batches in progress varies, and caches fill up: by less than if one batch in ten were kept.
    assert used() - before <= (BATCH * 44 * 43 * 12 if is_cuda else 1) * batch_count // 10
