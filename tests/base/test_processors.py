"""The clock for the CPU time of a thread."""

from __future__ import annotations

import sys
import time

import pytest

from dalify.base.processors import thread_seconds


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_only_coarse_clocks_count_waiting(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    begin = thread_seconds()
    time.sleep(0.05)
    waited_s = thread_seconds() - begin
    assert waited_s >= 0.05 if platform == "win32" else waited_s < 0.04


def test_computing_counts() -> None:
    begin, real_begin = thread_seconds(), time.perf_counter()
    while thread_seconds() < begin + 0.01:
        assert time.perf_counter() < real_begin + 60
