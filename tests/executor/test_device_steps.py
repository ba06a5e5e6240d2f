"""Synchronization of the pipeline's stream and the caller's, with mocks, because most machines have no GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dalify.data import Batch
from dalify.executor.device_steps import PendingCopies, device_stream, hand_over, share_fed


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
    hand_over([Batch(tensors[0], device="gpu"), None, Batch(None, tensors[1:], device="gpu")], "event", "cuda:0")
    assert current.waits == ["event"]
    assert [tensor.streams for tensor in tensors] == [[current]] * 3


def test_fed_data_are_waited_for(current: Stream) -> None:
    own, tensor = Stream(), Tensor()
    assert share_fed([Batch(torch.zeros(1).numpy())], own) is None
    assert share_fed([Batch(tensor, device="gpu")], own) == "recorded"
    assert tensor.streams == [own]


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
