"""If starting the stages of Ray fails, their thread ends. Ray is replaced, and need not be installed."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from dalify.base.errors import WorkerError
from dalify.plugin.ray import stages


class _Group:
    is_closed = False

    def __init__(self, *_: Any) -> None:
        self.members: dict[int, Any] = {}

    def start(self, content: Any) -> None:
        assert content == "content"

    def close(self) -> None:
        self.is_closed = True


def _stages(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(stages, "ray", SimpleNamespace(is_initialized=lambda: True))
    monkeypatch.setattr(stages, "WorkerGroup", _Group)
    monkeypatch.setattr(stages, "Replies", lambda parts: parts)
    monkeypatch.setattr(stages, "pickled_for_ray", lambda _: "content")
    remote = SimpleNamespace(readers={})
    return stages.RayStages(SimpleNamespace(plan=SimpleNamespace(remote=remote)), SimpleNamespace())  # pyright: ignore


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError])
@pytest.mark.parametrize("has_started", [False, True])
def test_thread(monkeypatch: pytest.MonkeyPatch, error: type[BaseException], has_started: bool) -> None:
    def start(thread: threading.Thread) -> None:
        if has_started:
            real_start(thread)
            threads.append(thread)
        raise error("no thread")

    threads: list[threading.Thread] = []
    real_start = threading.Thread.start
    remote = _stages(monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else WorkerError):
            remote.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert remote._group.is_closed
    assert remote not in stages._running


def test_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    remote = _stages(monkeypatch)
    monkeypatch.setattr(_Group, "start", lambda *_: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):
        remote.start()
    assert remote._group.is_closed
    assert remote not in stages._running
