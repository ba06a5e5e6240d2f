"""An event that happens once, also if Ctrl-C interrupts a thread that waits for it."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from dalify.base.interrupts import Completion


def test_it_happens_once() -> None:
    done = Completion()
    assert not done.wait(0.0)
    done.set()
    done.set()
    assert done.wait()
    assert done.wait(0.0)


def test_all_waiting_threads_continue() -> None:
    done = Completion()
    gone_on: list[bool] = []
    threads = [threading.Thread(target=lambda: gone_on.append(done.wait())) for _ in range(5)]
    for thread in threads:
        thread.start()
    done.set()
    for thread in threads:
        thread.join(60)
    assert gone_on == [True] * 5


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers that send signals")
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_interrupt_of_the_waiting_thread_loses_nothing() -> None:
    """threading.Event fails here: the thread that sets it finds its lock released."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(300):
            done = Completion()
            delay_s = 0.0002 + number % 7 * 0.0001
            thread = threading.Thread(target=lambda done=done, delay_s=delay_s: (time.sleep(delay_s), done.set()))
            thread.start()
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0004)
                done.wait()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            assert done.wait(60)
            thread.join(60)
            assert not thread.is_alive()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
