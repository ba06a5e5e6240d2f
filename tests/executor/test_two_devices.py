"""Pipelines on the second of two simulated CUDA devices; see `tests.helpers.cuda_devices`.

A thread's current device is the first one. So a tensor, stream, event or launch without the device of the pipeline is
on the wrong one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dalify import Pipeline, eager, fn, lazy, pipeline_def, types
from dalify.codecs import device_jpeg
from dalify.data.tensors import batch_of
from dalify.executor.device_samples_step import ParseStep
from dalify.executor.engine import _engines
from dalify.executor.staging import StagingStep
from dalify.pipeline.pipeline import parts_of
from tests.helpers.cuda_devices import CudaTensor, Devices, Stream, devices, values_of
from tests.operators.battery.cases import CASES
from tests.operators.battery.run_case import NAMES, has_gpu_kernel, nodes_of
from tests.operators.battery.variants import variants_of

# DLPack reads the address of the memory and the device itself.
WITHOUT_STAND_IN = ("dl_tensor_python_function",)
OPERATORS = [name for name in NAMES if has_gpu_kernel(name) and name not in WITHOUT_STAND_IN]
BATCH = 3


def engine_of(pipe: Pipeline) -> Any:
    return parts_of(pipe).builder.engine()


def check(found: Devices, pipe: Pipeline) -> None:
    """Check that the device stages used the pipeline's streams and page-locked memory."""
    engine = engine_of(pipe)
    own = {engine._runner.stream, engine._runner._copy_stream}
    # The user's thread reads results on its own stream.
    views = ("view", "__getitem__", "as_strided", "reshape", "unbind")
    assert {(name, number) for name, number, stream in found.calls if stream not in own and name not in views} == set()
    assert {stream.number for stream in own} == {1}
    assert all(is_asynchronous and is_pinned for is_asynchronous, is_pinned in found.copies)


def forget(found: Devices) -> None:
    for noted in (found.calls, found.copies, found.waits):
        noted.clear()


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str, tmp_path: Path) -> None:
    (variant,) = [variant for variant in variants_of(name, everything=False) if variant.label == "typical"]

    def graph() -> Any:
        return tuple(nodes_of(name, variant.case, variant.samples, tmp_path, "gpu"))

    with devices(2) as found:
        pipe = pipeline_def(graph, enable_conditionals=False)(
            batch_size=len(variant.samples), num_threads=1, device_id=1, seed=3, prefetch_queue_depth=1
        )
        pipe.build()
        forget(found)
        for _ in range(2):
            pipe.run()
        check(found, pipe)
        assert not found.waits or CASES[name].waits
        pipe.close()


def images(number: int) -> list[np.ndarray[Any, Any]]:
    return [np.full((4 + sample, 5, 3), 10 * number + sample, np.uint8) for sample in range(BATCH)]


def same(number: int) -> list[np.ndarray[Any, Any]]:
    return [np.full((4, 5, 3), 10 * number + sample, np.uint8) for sample in range(BATCH)]


SOURCES: dict[str, tuple[Callable[[int], Any], dict[str, Any]]] = {
    "several shapes": (images, {}),
    "one shape": (same, {}),
    "array": (lambda number: np.stack(same(number)), {}),
    "array without a copy": (lambda number: np.stack(same(number)), {"no_copy": True}),
    "read-only": (lambda number: np.broadcast_to(same(number)[0], (BATCH, 4, 5, 3)), {"no_copy": True}),
    "several shapes without a copy": (images, {"no_copy": True}),
    "not contiguous": (lambda number: np.stack(same(number))[:, :, ::-1], {"no_copy": True}),
    "no elements": (lambda _: np.zeros((BATCH, 0, 5, 3), np.uint8), {}),
}


@pytest.mark.parametrize("source_device", ["cpu", "gpu"])
@pytest.mark.parametrize("form", SOURCES)
def test_data_of_users_are_copied_from_page_locked_memory(form: str, source_device: str) -> None:
    source, options = SOURCES[form]

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=1, prefetch_queue_depth=3)
    def pipeline() -> Any:
        data = fn.external_source(source, layout="HWC", device=source_device, **options)
        return fn.copy(data.gpu()), data

    with devices(2) as found:
        pipe = pipeline()
        pipe.build()
        forget(found)
        kept = [pipe.run() for _ in range(4)]
        assert not found.waits
        assert bool(found.copies) == (form != "no elements")
        assert all(is_asynchronous and is_pinned for is_asynchronous, is_pinned in found.copies)
        for number, (sent, given) in enumerate(kept):
            for one, other, expected in zip(values_of(sent), values_of(given), source(number), strict=True):
                np.testing.assert_array_equal(one, expected)
                np.testing.assert_array_equal(other, expected)
        pipe.close()


@pytest.mark.parametrize("form", SOURCES)
def test_copies_of_data_of_users_are_made_in_page_locked_memory(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise they would be copied twice on the host. Returned data must not change during their copy."""
    source, options = SOURCES[form]
    again: list[Any] = []
    copied = StagingStep._copied
    monkeypatch.setattr(StagingStep, "_copied", lambda step, batch: again.append(batch) or copied(step, batch))

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=1, prefetch_queue_depth=1)
    def pipeline() -> Any:
        data = fn.external_source(source, layout="HWC", **options)
        return data.gpu(), data

    with devices(2) as found:
        pipe = pipeline()
        pipe.build()
        pipe.run()
        assert found.awaited_events == 1
        pipe.close()
    assert bool(again) == (form not in ("one shape", "array"))


def test_data_of_users_are_copied_before_the_turn_of_their_batch() -> None:
    with devices(2):

        @pipeline_def(batch_size=BATCH, num_threads=2, device_id=1)
        def pipeline() -> Any:
            return fn.external_source(images, layout="HWC").gpu()

        pipe = pipeline()
        pipe.build()
        first, second = (state.stage for state in engine_of(pipe).stages)
        assert (first.kind, first.is_serial, second.kind) == ("batch", False, "device")
        assert [type(step) for step in first.steps] == [StagingStep]
        pipe.close()


def test_page_locked_data_of_users_are_not_copied_on_the_host() -> None:
    with devices(2) as found:
        given = [torch.full((BATCH, 4, 5, 3), n, dtype=torch.uint8, pin_memory=True).numpy() for n in range(3)]

        @pipeline_def(batch_size=BATCH, num_threads=2, device_id=1, prefetch_queue_depth=1)
        def pipeline() -> Any:
            return fn.external_source(lambda number: given[number], layout="HWC", no_copy=True).gpu()

        pipe = pipeline()
        pipe.build()
        memory = len(found.pinned)
        for number in range(3):
            assert values_of(pipe.run()[0])[0].max() == number
        assert len(found.pinned) == memory
        pipe.close()


def test_branches_of_data_of_users() -> None:
    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=1)
    def pipeline() -> Any:
        data = fn.external_source(images, layout="HWC")
        kind = fn.external_source(lambda number: (np.arange(BATCH, dtype=np.int32) + number) % 3)
        if kind == 0:
            result = fn.flip(data.gpu(), vertical=1, horizontal=0)
        elif kind == 1:
            result = data.gpu()
        else:
            result = fn.flip(data).gpu()
        return result

    with devices(2) as found:
        pipe = pipeline()
        for number in range(4):
            for one, expected in zip(values_of(pipe.run()[0]), images(number), strict=True):
                np.testing.assert_array_equal(one, expected)  # of one value each
        assert all(is_asynchronous and is_pinned for is_asynchronous, is_pinned in found.copies)
        pipe.close()


def test_data_of_worker_processes_are_copied_from_page_locked_memory(photo_folder: Path) -> None:
    def define(device_id: int | None, processes: int) -> Pipeline:
        @pipeline_def(batch_size=4, num_threads=2, device_id=device_id, seed=5)
        def pipeline() -> Any:
            encoded, labels = fn.readers.file(file_root=str(photo_folder), name="reader")
            decoded = fn.decoders.image(encoded)
            small = fn.resize(decoded, size=(6, 7))
            if device_id is None:
                return decoded, small, labels
            return decoded.gpu(), small.gpu(), labels.gpu()

        return pipeline(processes=processes)

    plain = define(None, 0)
    with devices(2) as found:
        pipe = define(1, 1)
        try:
            pipe.build()
            forget(found)
            for _ in range(3):
                for one, other in zip(pipe.run(), plain.run(), strict=True):
                    for sample, expected in zip(values_of(one), other, strict=True):
                        np.testing.assert_array_equal(sample, np.asarray(expected))
            check(found, pipe)
            assert len(found.copies) >= 9
        finally:
            pipe.close()
            plain.close()


def test_constants_are_copied_from_page_locked_memory() -> None:
    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=1)
    def pipeline() -> Any:
        return types.Constant(np.arange(6, dtype=np.float32)).gpu()

    with devices(2) as found:
        pipe = pipeline()
        pipe.build()
        forget(found)
        for _ in range(2):
            np.testing.assert_array_equal(values_of(pipe.run()[0]), [np.arange(6)] * BATCH)
        assert found.copies
        check(found, pipe)
        pipe.close()


@pytest.mark.parametrize("form", ["array", "list"])
@pytest.mark.parametrize("no_copy", [False, True])
def test_data_of_another_device_are_copied_to_that_of_the_pipeline(form: str, no_copy: bool) -> None:
    def source(number: int) -> Any:
        found = [CudaTensor.of(torch.full((4, 5, 3), number, dtype=torch.uint8), 0) for _ in range(BATCH)]
        return found if form == "list" else torch.stack(found)

    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=1)
    def pipeline() -> Any:
        return fn.flip(fn.external_source(source, layout="HWC", device="gpu", no_copy=no_copy))

    with devices(2):
        pipe = pipeline()
        for number in range(3):
            (batch,) = pipe.run()
            assert {str(sample.device) for sample in batch_of(batch).samples} == {"cuda:1"}
            assert [int(sample.max()) for sample in values_of(batch)] == [number] * BATCH
        pipe.close()


def test_pipelines_on_both_devices() -> None:
    @pipeline_def(batch_size=BATCH, num_threads=1)
    def pipeline() -> Any:
        return fn.flip(fn.external_source(images, layout="HWC").gpu())

    with devices(2) as found:
        pipes = [pipeline(device_id=number) for number in (0, 1)]
        for pipe in pipes:
            pipe.build()
        forget(found)
        for number in range(4):
            for pipe in pipes:
                for one, expected in zip(values_of(pipe.run()[0]), images(number), strict=True):
                    np.testing.assert_array_equal(one, expected)
        streams = [engine_of(pipe)._runner.stream for pipe in pipes]
        assert [stream.number for stream in streams] == [0, 1]
        for stream in streams:  # each waits only for its own copies
            assert {other.number for other in stream.waits} == {stream.number}
        for pipe in pipes:
            pipe.close()


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("flip", {}), ("resize", {"size": (6, 7)}), ("brightness", {"brightness": 1.5}), ("rotate", {"angle": 20.0})],
)
def test_calls_without_a_pipeline_run_on_the_device_of_their_data(
    name: str, arguments: dict[str, Any], is_lazy: bool
) -> None:
    with devices(2) as found:
        data = CudaTensor.of(torch.arange(120, dtype=torch.uint8).reshape(2, 4, 5, 3), 1)
        with lazy() if is_lazy else nullcontext():
            result = getattr(eager, name)(data, **arguments)
            on_device = result.torch() if is_lazy else result
        assert str(on_device.device) == "cuda:1"
        assert {number for _, number, _ in found.calls} == {1}
        assert {stream.number for _, _, stream in found.calls} == {1}


def test_no_engine_outlives_the_devices() -> None:
    """At the end of the program, it would wait for events of devices that do not exist any more."""
    with devices(2):
        data = CudaTensor.of(torch.arange(120, dtype=torch.uint8).reshape(2, 4, 5, 3), 1)
        with lazy():
            result = eager.flip(data)
            assert str(result.torch().device) == "cuda:1"
        assert any(isinstance(each._runner.stream, Stream) for each in list(_engines))
    assert not any(isinstance(each._runner.stream, Stream) for each in list(_engines))


class Decoder:
    """Decodes to the first device that the thread uses, and records device and stream of each call."""

    rotates = True
    returns_planes = False
    calls: list[tuple[str, int, int]]

    def __init__(self, device: str, options: Any) -> None:
        self._device = device

    def decode(self, files: Any, *_: Any, **__: Any) -> list[Any]:
        stream = torch.cuda.current_stream(self._device)
        Decoder.calls.append((self._device, torch.cuda.current_device(), stream.cuda_stream))
        shape = (16, 24, 3) if len(files) == 1 else (90, 120, 3)
        return [torch.zeros(shape, dtype=torch.uint8, device="cuda") for _ in files]


def test_decoders_run_on_the_device_and_the_stream_of_the_pipeline(
    photo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Decoder.calls = []
    kind = device_jpeg._Kind("stand-in", Decoder, lambda files: [None for _ in files])
    monkeypatch.setattr(device_jpeg, "_KINDS", {"nvimgcodec": kind})
    monkeypatch.delenv("DALIFY_DEVICE_DECODER", raising=False)
    device_jpeg._why_not.cache_clear()
    device_jpeg._opened.cache_clear()

    @pipeline_def(batch_size=4, num_threads=2, device_id=1)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        return fn.resize(fn.decoders.image(encoded, device="mixed"), size=(6, 7))

    try:
        with devices(2) as found:
            pipe = pipeline()
            pipe.build()
            assert [call[:2] for call in Decoder.calls] == [("cuda:1", 1)]  # the probe
            Decoder.calls.clear()
            forget(found)
            pipe.run()
            pipe.run()
            check(found, pipe)
            engine = engine_of(pipe)
            assert {*Decoder.calls} == {("cuda:1", 1, engine._runner.stream.cuda_stream)}
            assert any(type(step) is ParseStep for state in engine.stages for step in state.stage.steps)
            pipe.close()
    finally:
        device_jpeg._why_not.cache_clear()
        device_jpeg._opened.cache_clear()
