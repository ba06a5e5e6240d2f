"""Slots of shared memory: regions, limits, references."""

import errno
import gc
import os
from collections import deque

import numpy as np
import pytest

from dalify.base.errors import WorkerError
from dalify.data.shared_memory import REGION_BYTES, Slot, SlotReference, aligned
from tests.helpers.platforms import needs_linux, needs_posix

pytestmark = needs_posix


def test_only_written_pages_use_memory():
    slot = Slot(3)
    assert slot.used_bytes == 0
    for chunk in range(3):
        slot.array(Slot.chunk_start(chunk), "|u1", (10_000,))[:] = chunk + 1
    assert 30_000 <= slot.used_bytes <= 30_000 + 3 * 8192
    for chunk in range(3):
        assert (slot.array(Slot.chunk_start(chunk), "|u1", (10_000,)) == chunk + 1).all()
    slot.close()
    slot.close()


@needs_linux
def test_memory_of_a_much_larger_batch_is_freed():
    slot = Slot()
    start = REGION_BYTES
    slot.memory[:1000] = 1
    slot.memory[start : start + (16 << 20)] = 2
    for size in (16 << 20, 5 << 20):
        slot.free_after(start + size)
        assert slot.used_bytes >= 16 << 20
    slot.free_after(start + 100_000)
    assert slot.used_bytes < 1 << 20
    assert (slot.memory[:1000] == 1).all()
    assert (slot.memory[start : start + 100_000] == 2).all()


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_limit_on_file_sizes(monkeypatch: pytest.MonkeyPatch):
    """As with ulimit -f, which would also apply to the following tests."""
    opened: list[int] = []

    def refused(file: int, size: int) -> None:
        opened.append(file)
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

    monkeypatch.setattr(os, "ftruncate", refused)
    with pytest.raises(WorkerError, match=r"(?s)file of 8 GiB.*File too large.*ulimit -f"):
        Slot(0)
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


def test_a_limit_on_open_files(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "memfd_create", refuse, raising=False)
    with pytest.raises(WorkerError, match=r"(?s)file of 8 GiB.*Too many open files.*ulimit -n"):
        Slot()


def test_headers():
    slot = Slot(0)
    for content in (b"", b"short", b"x" * 5000):
        slot.write_header(content)
        assert slot.read_header() == content


def test_results_must_fit_their_region():
    slot = Slot(1)
    start = Slot.chunk_start(0)
    assert slot.array(start, "<f8", (2, 3)).shape == (2, 3)
    with pytest.raises(WorkerError, match="must not exceed 4 GiB"):
        slot.array(start + 64, "<f8", (REGION_BYTES // 8,))


def test_a_lease_ends_with_the_last_view():
    slot, free = Slot(0), deque()
    memory = SlotReference(slot, free.append, 7).memory()
    view = memory[10:20].view(np.uint16)[1:]
    del memory
    gc.collect()
    assert not free
    view[:] = 1
    del view
    gc.collect()
    assert list(free) == [7]


def test_views_outlive_the_slot():
    slot, free = Slot(0), deque()
    view = SlotReference(slot, free.append, 0).memory()[:100]
    view[:] = 9
    slot.close()
    del slot
    gc.collect()
    assert (view == 9).all()


def test_alignment():
    assert [aligned(size) for size in (0, 1, 64, 65)] == [0, 64, 64, 128]
