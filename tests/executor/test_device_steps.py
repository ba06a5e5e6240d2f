"""Synchronization of the pipeline's stream and the caller's, with mocks, because most machines have no GPU."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

from dalify import fn, pipeline_def, types
from dalify.base import optional
from dalify.base.errors import DeviceError, PipelineStateError
from dalify.data import Batch, BufferPool, array_dtype
from dalify.data.batch import block_offsets
from dalify.data.dtypes import DALIDataType
from dalify.executor import device_steps, feeds
from dalify.executor.arena import Arena
from dalify.executor.device_steps import (
    PendingCopies,
    TransferStep,
    device_stream,
    find_device,
    share_fed,
    synchronize_consumer,
    uploaded_batch,
)
from dalify.executor.frame import Frame
from dalify.graph import Node
from dalify.kernels.arrays.upload_torch import uploaded_bytes
from dalify.pipeline.pipeline import parts_of
from dalify.registry import catalog


class Stream:
    """Records its calls."""

    device = "cuda:0"

    def __init__(self) -> None:
        self.waits: list[Any] = []

    def wait_event(self, event: Any) -> None:
        self.waits.append(event)

    def record_event(self) -> str:
        return "recorded"


class Event:
    done = False

    def query(self) -> bool:
        return self.done

    def synchronize(self) -> None:
        self.done = True


class Tensor:
    """Records the streams that use it."""

    def __init__(self) -> None:
        self.streams: list[Any] = []
        self.dtype, self.ndim = torch.float32, 1

    def record_stream(self, stream: Any) -> None:
        self.streams.append(stream)


@pytest.fixture
def current(monkeypatch: pytest.MonkeyPatch) -> Stream:
    stream = Stream()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: stream)
    return stream


def test_memory_of_results_waits_for_the_stream_of_the_caller(current: Stream) -> None:
    tensors = [Tensor(), Tensor(), Tensor()]
    synchronize_consumer(
        [Batch(tensors[0], device="gpu"), None, Batch(None, tensors[1:], device="gpu")], "event", "cuda:0"
    )
    assert current.waits == ["event"]
    assert [tensor.streams for tensor in tensors] == [[current]] * 3


def test_fed_data_are_waited_for(current: Stream) -> None:
    own, tensor = Stream(), Tensor()
    assert share_fed([Batch(torch.zeros(1).numpy())], own) is None
    assert share_fed([Batch(tensor, device="gpu")], own) == "recorded"
    assert tensor.streams == [own]


@pytest.mark.usefixtures("emulated_gpu")
def test_fed_data_are_waited_for_on_another_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program feeds on one stream and runs the pipeline on another."""
    pipe = fed()
    pipe.build()
    feed = parts_of(pipe).builder.engine().feeds.external("data")
    monkeypatch.setattr(feed, "_torch_device", "cuda:0")
    monkeypatch.setattr(feeds, "uploaded_batch", lambda batch, _device: uploaded_batch(batch, "cpu"))
    feeding, running = Stream(), Stream()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: feeding)
    feed.feed([np.ones((2, 3, 1), np.uint8)], None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: running)
    feed.next_batch()
    assert (feeding.waits, running.waits) == ([], ["recorded"])


@pytest.mark.usefixtures("emulated_gpu")
def test_out_of_memory_for_fed_data(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = fed()
    pipe.build()

    def full(*_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    data = [np.ones((2, 3, 1), np.uint8)]
    with monkeypatch.context() as patches:
        patches.setattr(feeds, "uploaded_batch", full)
        with pytest.raises(DeviceError, match="the device has no memory left") as caught:
            pipe.feed_input("data", data)
        assert "test_device_steps.py" in str(caught.value)
    pipe.feed_input("data", data)
    np.testing.assert_array_equal(pipe.run()[0].as_cpu().at(0), data[0])


@pytest.mark.usefixtures("emulated_gpu")
def test_outputs_that_the_device_still_reads_are_waited_for(current: Stream) -> None:
    """The user may modify an output on the CPU while the batch is copied from it to the device."""

    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipeline() -> Any:
        data = fn.flip(fn.external_source(lambda: [np.zeros((2, 3, 1), np.uint8)], layout="HWC"))
        return data, fn.flip(data.gpu())

    for pipe, waits in ((pipeline(), True), (sent(), False)):
        pipe.build()
        pipe.schedule_run()
        engine, event = parts_of(pipe).builder.engine(), Event()
        engine._scheduled[0].ready.wait()
        engine._scheduled[0].event = event
        for batch in engine._scheduled[0].values:
            if batch is not None and batch.device == "gpu":
                batch.device = "cpu"  # tensors of the CPU cannot record a stream
        engine.collect()
        assert event.done == waits
        assert current.waits.pop() is event


@pytest.mark.usefixtures("emulated_gpu")
def test_failures_after_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure of a kernel is reported by a later call of the driver, such as the recording of the event."""
    pipe = sent()
    pipe.build()
    engine = parts_of(pipe).builder.engine()
    runner = engine._runner
    real = runner._run_on_batch

    def failing(iteration: Any, state: Any) -> None:
        real(iteration, state)
        if state.stage.kind == "device":
            raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore")

    monkeypatch.setattr(runner, "_run_on_batch", failing)
    with pytest.raises(DeviceError, match=r"the device failed.*illegal memory access") as caught:
        pipe.run()
    assert "test_device_steps.py" in str(caught.value)
    assert "CUDA_LAUNCH_BLOCKING" in caught.value.hint


@pytest.mark.usefixtures("emulated_gpu")
def test_forked_processes_cannot_use_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = sent()
    pipe.build()
    engine = parts_of(pipe).builder.engine()
    with monkeypatch.context() as patches:
        patches.setattr(engine, "_owner", SimpleNamespace(is_this_process=False))
        patches.setattr(engine._runner, "stream", Stream())
        with pytest.raises(PipelineStateError, match=r"(?s)cannot run in a forked process.*'spawn'"):
            pipe.run()
    pipe.run()


def test_the_device_has_its_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later ``torch.cuda.set_device`` must not divide the work of a pipeline among two devices."""
    monkeypatch.setattr(device_steps, "emulated", lambda: False)
    monkeypatch.setattr(device_steps, "default_device", lambda: "cuda")
    made = SimpleNamespace(empty=lambda _size, device: SimpleNamespace(device=f"{device}:2"))
    monkeypatch.setattr(device_steps, "torch", made)
    pipe = sent()
    assert find_device(None, parts_of(pipe).definition.graph().nodes()[-1]) == "cuda:2"


def test_the_own_stream_waits_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    own, entered = Stream(), []

    class Entered:
        def __init__(self, stream: Stream) -> None:
            entered.append(list(stream.waits))

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(torch.cuda, "stream", Entered)
    with device_stream(own, "event"):
        pass
    assert entered == [["event"]]


def test_what_a_copy_reads_is_kept_until_it_is_done() -> None:
    copies, first, second = PendingCopies(), Event(), Event()
    one, other = Batch(torch.zeros(1).numpy()), Batch(torch.ones(1).numpy())
    copies.keep([one], first)
    copies.keep([other], second)
    assert [batches for _, batches in copies._kept] == [[one], [other]]
    first.done = True
    copies.keep([], Event())
    assert [batches for _, batches in copies._kept] == [[other], []]


@pytest.mark.usefixtures("emulated_gpu")
def test_a_closed_pipeline_waits_for_its_copies() -> None:
    """Its memory is freed afterwards, and copies of outputs that the user keeps may still be in progress."""
    pipe = sent()
    pipe.build()
    engine, event = parts_of(pipe).builder.engine(), Event()
    engine._runner.copies.keep([Batch(torch.zeros(1).numpy())], event)
    pipe.close()
    assert event.done
    assert not engine._runner.copies._kept


@pytest.mark.parametrize("form", ["list", "dense"])
@pytest.mark.parametrize("has_stream", [True, False])
def test_copies_wait_where_nothing_keeps_what_they_read(
    form: str, has_stream: bool, current: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On devices without streams and in eager mode, host memory is reused after a step."""
    arrays = [np.ones((2, 3)), np.ones((2, 3) if form == "dense" else (4, 3))]
    step, frame = (
        transfer("gpu"),
        frame_of(Batch(np.stack(arrays)) if form == "dense" else Batch(None, [*arrays], "HW")),
    )
    frame.torch_device = "meta"
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda *_: None)
    frame.copy_stream = CopyStream() if has_stream else None
    with Copies() as copies:
        step.run(frame)
    assert copies.are_asynchronous == [has_stream]


class Copies(TorchFunctionMode):
    """Records the copies to the device that are asynchronous."""

    def __init__(self) -> None:
        super().__init__()
        self.are_asynchronous: list[bool] = []

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "non_blocking" in (kwargs or {}):
            self.are_asynchronous.append(kwargs["non_blocking"])
        return func(*args, **(kwargs or {}))


class CopyStream(Stream):
    """A stream for copies, which torch enters."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def test_copies_have_their_own_stream(current: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[Any] = []
    marked: list[Any] = []

    def enter(stream: CopyStream) -> CopyStream:
        entered.append(stream)
        return stream

    monkeypatch.setattr(torch.cuda, "stream", enter)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda _tensor, stream: marked.append(stream))
    step, frame, copies = transfer("gpu"), frame_of(Batch(np.arange(6).reshape(2, 3))), CopyStream()
    frame.copy_stream = copies
    step.run(frame)
    assert entered == [copies]  # and nothing waits on the host
    assert current.waits == ["recorded"]  # the kernels' stream waits for the copy on the device
    assert marked == [current]
    copied = frame.values[1]
    assert copied is not None
    assert copied.dense is not None
    assert copied.dense.tolist() == [[0, 1, 2], [3, 4, 5]]


def transfer(device: str) -> TransferStep:
    return TransferStep(Node(catalog.find("_transfer"), (), {}, device=device), (0,), (1,))


def frame_of(batch: Batch) -> Frame:
    return Frame(
        values=[batch, None], start=0, count=len(batch), step=0, batch_size=len(batch), arena=Arena(),
        torch_device="cpu",
    )  # fmt: skip


def ragged(*arrays: np.ndarray[Any, Any]) -> Batch:
    """Return arrays as one block, as the threads that decode make them."""
    shapes = np.array([array.shape for array in arrays], np.int64)
    offsets, size_bytes = block_offsets(shapes, arrays[0].itemsize)
    dtype = array_dtype(arrays[0])
    batch = Batch(None, None, "HW", "cpu", None, dtype, (np.zeros(size_bytes, np.uint8), offsets, shapes))
    for target, array in zip(batch.samples, arrays, strict=True):
        target[...] = array
    return batch


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "int64", "bool"])
@pytest.mark.parametrize("form", ["list", "block", "blocks", "dense"])
def test_batches_reach_the_device_and_return(form: str, dtype: str) -> None:
    arrays = [np.arange(n * 4).reshape(n, 4).astype(dtype) for n in ((2, 2, 2) if form == "dense" else (1, 3, 2))]
    if form == "dense":
        batch = Batch(np.stack(arrays), None, "HW")
    elif form == "block":
        batch = ragged(*arrays)
    else:
        batch = Batch(None, list(arrays), "HW")
        if form == "blocks":
            batch.parts = ragged(*arrays[:2]), ragged(arrays[2])
    frame = frame_of(batch)
    transfer("gpu").run(frame)
    sent = frame.values[1]
    assert sent is not None
    assert (sent.device, sent.layout, sent.dtype) == ("gpu", "HW", batch.dtype)
    assert (sent.ragged is None) == (form == "dense")  # one block for any number of samples
    for tensor, array in zip(sent.samples, arrays, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)
    for lists in (False, True):
        given = Batch(None, list(sent.samples), "HW", "gpu") if lists else sent
        back = frame_of(given)
        transfer("cpu").run(back)
        returned = back.values[1]
        assert returned is not None
        assert (returned.device, returned.layout, returned.dtype) == ("cpu", "HW", batch.dtype)
        for found, array in zip(returned.samples, arrays, strict=True):
            np.testing.assert_array_equal(found, array)


def test_copies_of_lists_read_staging_memory_that_is_kept() -> None:
    frame = frame_of(Batch(None, [np.zeros((2, 2)), np.zeros((3, 2))], "HW"))
    frame.torch_device = "meta"  # torch's CPU device computes with the staging memory itself
    transfer("gpu").run(frame)
    assert [batch.shapes() for batch in frame.staged] == [[(2, 2), (3, 2)]]


@pytest.mark.parametrize("has_locked_memory", [False, True])
def test_arrays_that_the_device_cannot_read_are_staged(
    has_locked_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on an NVIDIA GPU, which reads page-locked memory only, and on other devices, which read writable arrays.
    monkeypatch.setattr(device_steps, "has_page_locked_memory", lambda device: has_locked_memory)
    writable = np.arange(6, dtype=np.float32).reshape(2, 3)
    repeated = np.broadcast_to(writable[:1], (4, 3))
    for array, is_staged in ((writable, has_locked_memory), (repeated, True)):
        frame = frame_of(Batch(array))
        frame.torch_device = "meta"
        transfer("gpu").run(frame)
        copied: Any = frame.values[1]
        assert (tuple(copied.dense.shape), copied.dense.device.type) == (array.shape, "meta")
        assert [batch.dense.tolist() for batch in frame.staged if batch.dense is not None] == [
            array.tolist()
        ] * is_staged


def _address(batch: Batch | None) -> int:
    assert batch is not None
    memory: Any = batch.dense if batch.ragged is None else batch.ragged[0]
    return memory.data_ptr()


@pytest.mark.parametrize("form", ["dense", "block", "list"])
def test_emulated_copies_reuse_the_memory_that_nothing_holds(form: str) -> None:
    arrays = [np.full((40 + (form != "dense") * n, 50), n) for n in range(3)]
    batch = Batch(np.stack(arrays)) if form == "dense" else ragged(*arrays)
    step = transfer("gpu")
    frame = frame_of(Batch(None, arrays) if form == "list" else batch)
    step.run(frame)
    held, first = frame.values[1], _address(frame.values[1])
    step.run(frame)
    assert _address(frame.values[1]) != first
    assert held is not None
    assert [tensor.numpy().tolist() for tensor in held.samples] == [array.tolist() for array in arrays]
    del held
    step.run(frame)
    assert _address(frame.values[1]) == first


def fed() -> Any:
    @pipeline_def(batch_size=1, num_threads=1, device_id=0, prefetch_queue_depth=1)
    def pipeline() -> Any:
        return fn.external_source(name="data", device="gpu", layout="HWC")

    return pipeline()


def sent(device_id: int | None = 0) -> Any:
    @pipeline_def(batch_size=1, num_threads=1, device_id=device_id)
    def pipeline() -> Any:
        return fn.flip(fn.external_source(lambda: [np.zeros((2, 3, 1), np.uint8)], layout="HWC").gpu())

    return pipeline()


@pytest.mark.parametrize(
    ("built_for", "failure", "reason"),
    [
        (None, None, "this torch is built without CUDA and ROCm"),
        (
            "12.8",
            "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver.",
            "The NVIDIA driver on your system is too old (found version 11040)",
        ),
        ("12.8", "Found no NVIDIA driver on your system. Please check.", "Found no NVIDIA driver on your system"),
    ],
)
def test_the_error_names_the_reason_for_no_device(
    built_for: str | None, failure: str | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init() -> None:
        raise RuntimeError(failure)

    monkeypatch.delenv("DALIFY_DEVICE", raising=False)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", built_for)
    monkeypatch.setattr(torch.cuda, "init", init)
    with pytest.raises(DeviceError) as caught:
        sent().build()
    text = str(caught.value)
    assert f"torch finds no accelerator on this machine ({reason})." in text
    assert "test_device_steps.py" in text
    assert "DALIFY_DEVICE=cpu" in text
    assert ("Update the driver, or install a torch that is built for it." in text) == ("too old" in reason)


def test_device_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same pipeline can be built once the device can be used."""
    pipe = sent()
    monkeypatch.setenv("DALIFY_DEVICE", "quantum")
    with pytest.raises(DeviceError) as caught:
        pipe.build()
    text = str(caught.value)
    assert "the device 'quantum:0' (DALIFY_DEVICE=quantum) cannot be used: " in text
    assert "test_device_steps.py" in text
    assert "DALIFY_DEVICE=cpu" in text
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    assert len(pipe.run()[0]) == 1


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize("failing", ["copy", "kernel"])
def test_out_of_memory(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the user's line and suggests a change; the next batch is computed."""
    shapes = [(8, 9, 3), (5, 6, 3)]

    # With one batch at a time, the next one begins where memory is left again.
    @pipeline_def(batch_size=2, num_threads=1, device_id=0, prefetch_queue_depth=1)
    def pipeline() -> Any:
        data = fn.external_source(lambda: [np.ones(shape, np.uint8) for shape in shapes], layout="HWC")
        return fn.brightness(data.gpu(), brightness=2.0)

    # The memory of the emulated device for copies is that of a pool.
    owner: Any = BufferPool if failing == "copy" else optional.torch

    def full(*arguments: Any, **options: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nand more")

    pipe = pipeline()
    pipe.build()
    with monkeypatch.context() as patch:
        patch.setattr(owner, "empty", full)
        with pytest.raises(DeviceError) as caught:
            pipe.run()
    text = str(caught.value)
    assert "no memory left for this batch (CUDA out of memory. Tried to allocate 2.00 GiB)" in text
    assert "and more" not in text
    assert "test_device_steps.py" in text
    assert "batch_size" in text
    (images,) = pipe.run()
    assert [np.asarray(image.as_cpu()).max() for image in images] == [2, 2]


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize(
    ("failure", "message", "hint"),
    [
        (
            "CUDA error: out of memory\nCompile with TORCH_USE_CUDA_DSA",
            "the device has no memory left, or the host no page-locked memory, for this batch "
            "(CUDA error: out of memory).",
            "Use a smaller batch_size",
        ),
        (
            "Triton Error [CUDA]: an illegal memory access was encountered",
            "the device failed (Triton Error [CUDA]: an illegal memory access was encountered).",
            "CUDA_LAUNCH_BLOCKING=1",
        ),
    ],
)
def test_failures_of_the_driver(failure: str, message: str, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not belong to a sample, and the operator that reports them is not always the cause."""

    def failing(*_: Any, **__: Any) -> Any:
        raise RuntimeError(failure)

    pipe = sent()
    pipe.build()
    monkeypatch.setattr(optional.torch, "empty", failing)
    with pytest.raises(DeviceError) as caught:
        pipe.run()
    text = str(caught.value)
    assert message in text
    assert hint in text
    assert "test_device_steps.py" in text
    assert "sample" not in text


@pytest.mark.usefixtures("gpu")
def test_data_go_to_the_device_and_back_anywhere() -> None:
    random = np.random.default_rng(0)
    given = [random.integers(0, 256, (size, 2 * size, 3), np.uint8) for size in (9, 14, 11)]

    def define(on_device: bool) -> Any:
        @pipeline_def(batch_size=3, num_threads=2, device_id=0, seed=5)
        def pipeline() -> Any:
            def sent(data: Any) -> Any:
                return data.gpu() if on_device else data

            def returned(data: Any) -> Any:
                return data.cpu() if on_device else data

            data = fn.external_source(lambda: given, layout="HWC")
            flipped = returned(fn.flip(sent(data), vertical=1))
            bright = sent(fn.brightness(flipped, brightness=1.5))
            if fn.random.coin_flip(dtype=types.BOOL):  # pyright: ignore[reportGeneralTypeIssues]
                bright = fn.flip(bright)
            return returned(bright), flipped, sent(fn.cast(flipped, dtype=types.INT32))

        return pipeline()

    for ours, theirs in zip(define(True).run(), define(False).run(), strict=True):
        for found, expected in zip(ours.as_cpu(), theirs, strict=True):
            np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16", "bool", "int64"])
@pytest.mark.parametrize("extents", [(3, 3, 3), (3, 1, 5), (2, 0, 4), (0, 0, 0), None])
def test_fed_arrays_are_one_copy(
    dtype: str, extents: tuple[int, int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During a copy from pageable memory, the host waits for all previous operations."""
    numbers = np.arange(40).reshape(-1, 2)
    sizes = [numbers[:extent] for extent in extents] if extents else [numbers[n, 0] for n in range(3)]
    given = [np.asarray(size).astype(DALIDataType[dtype.upper()].numpy) for size in sizes]
    copies: list[int] = []
    module = importlib.import_module("dalify.executor.device_steps")

    def noted(size_bytes: int, device: Any, fill: Any) -> Any:
        if size_bytes:
            copies.append(size_bytes)
        return uploaded_bytes(size_bytes, device, fill)

    monkeypatch.setattr(module, "uploaded_bytes", noted)

    @pipeline_def(batch_size=3, num_threads=1, device_id=0, prefetch_queue_depth=1)
    def pipeline() -> Any:
        return fn.external_source([given], device="gpu")

    (batch,) = pipeline().run()
    assert len(copies) == any(array.size for array in given)
    for found, array in zip(batch, given, strict=True):
        assert found.dtype == DALIDataType[dtype.upper()]
        np.testing.assert_array_equal(np.asarray(found.as_cpu()), array)


@pytest.mark.usefixtures("gpu")
def test_results_stay_valid_while_they_are_referenced() -> None:
    batches = iter(range(100))

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipeline() -> Any:
        def images() -> list[np.ndarray[Any, Any]]:
            number = next(batches)
            return [np.full((4 + number % 3, 5, 3), number, np.uint8), np.full((7, 5, 3), number, np.uint8)]

        return fn.flip(fn.external_source(images, layout="HWC").gpu())

    pipe = pipeline()
    kept = [pipe.run()[0] for _ in range(12)]
    for number, images in enumerate(kept):
        assert [int(np.asarray(image.as_cpu()).min()) for image in images] == [number, number]
        assert [int(np.asarray(image.as_cpu()).max()) for image in images] == [number, number]
