"""The process that runs inputs: forked from a warm one, limited in memory, and watched from outside."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import json
import os
import random
import resource
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import cv2
import numba.core.event

from dalify import limits
from dalify.base.errors import BadSampleWarning
from tests.fuzz.inputs import Input, packed, unpacked
from tests.fuzz.outcomes import Outcome
from tests.fuzz.slot import Slot
from tests.fuzz.targets import target_of
from tests.fuzz.targets.base import Target

LIMITS = {"max_sample_bytes": 64 << 20, "max_image_pixels": 1 << 24, "max_declared_samples": 1 << 22}
"""In force in all children: small, so that what they allow costs little time and memory."""
# Four samples at their limit (a batch of two, as read and as computed), and 1 GiB beyond the limits.
ALLOWED_KIB = 4 * (LIMITS["max_sample_bytes"] >> 10) + (1 << 20)
# Limit of the address space, which exceeds the used memory; it protects the machine.
_ADDRESS_SPACE = 6 << 30
_CHECK_EVERY = 250
_LARGEST_CORPUS = 200


def work(order: dict[str, Any]) -> None:
    """Carry out one order of the parent, and end.

    Args:
        order: ``folder``, ``target``, and ``mode``: ``fuzz`` with ``seed``, ``first``, ``count`` and the keys of
            ``known`` findings, or ``serve``.
    """
    slot = Slot(Path(order["folder"]), create=False)
    child = _Child(slot, target_of(order["target"]))
    if order["mode"] == "serve":
        child.serve()
    else:
        child.fuzz(order["seed"], order["first"], order["count"], set(order["known"]))
    slot.set("is_done", 1)


class _Child:
    def __init__(self, slot: Slot, target: Target) -> None:
        self._slot = slot
        self._target = target
        _end_with_parent()
        self._crash = (slot.folder / "crash").open("a")
        faulthandler.enable(self._crash)
        faulthandler.register(signal.SIGUSR1, self._crash, all_threads=True)
        self._printed = os.open(slot.folder / "printed", os.O_RDWR | os.O_APPEND)
        os.dup2(self._printed, 1)
        os.dup2(self._printed, 2)
        self._warned: set[str] = set()
        self._warnings = 0
        warnings.simplefilter("always")
        warnings.showwarning = self._show_warning
        limits.configure(**LIMITS)
        numba.core.event.register("numba:compile", _CompileTimes(slot))
        work_folder = slot.folder / "work"
        work_folder.mkdir(exist_ok=True)
        os.chdir(work_folder)
        self.seeds = target.prepare(work_folder)
        # As well after an input that failed: what errors load is no use of memory by inputs.
        target.run(self.seeds[0])
        self._size = 0
        self._base_kib = _resident_kib()
        self._tracked_kib = _peak_kib()
        space = _status_kib("VmSize:") << 10
        # A soft limit, since worker processes of pipelines reserve more.
        resource.setrlimit(resource.RLIMIT_AS, (space + _ADDRESS_SPACE, resource.getrlimit(resource.RLIMIT_AS)[1]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.ftruncate(self._printed, 0)
        self._warnings = 0
        slot.set("is_ready", 1)

    def _show_warning(
        self, message: Any, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        if issubclass(category, BadSampleWarning):
            return
        self._warnings += 1
        key = f"{category.__name__} {Path(filename).name}:{lineno}"
        if key not in self._warned:
            self._warned.add(key)
            self._slot.report(kind="warning", key=key, text=str(message)[:300])

    def fuzz(self, seed: int, first: int, count: int, known: set[str]) -> None:
        """Run mutated inputs and keep those with outcomes that are new."""
        corpus: list[Input] = []
        classes: set[str] = set()
        number = first
        while number < first + count and self._slot.get("request") >= 0:
            rng = random.Random(f"{self._target.name} {seed} {number}")
            choices = corpus if corpus and rng.random() < 0.3 else self.seeds
            given = self._target.mutated(rng.choice(choices), rng.choice(self.seeds), rng)
            self._slot.set("number", number)
            outcome = self.run(given)
            if not outcome.is_finding and outcome.message_class not in classes:
                classes.add(outcome.message_class)
                if len(corpus) < _LARGEST_CORPUS:
                    corpus.append(given)
            if outcome.is_finding and outcome.key not in known:
                known.add(outcome.key)
                self._slot.report(kind="finding", outcome=outcome.data(), number=number, input=packed(given).hex())
            if number % _CHECK_EVERY == _CHECK_EVERY - 1:
                self._check(number)
            number += 1

    def _check(self, number: int) -> None:
        outcome = self._target.check()
        if outcome.is_finding:
            self._slot.add(outcome.kind)
            self._slot.report(kind="finding", outcome=outcome.data(), number=number, input="")

    def run(self, given: Input) -> Outcome:
        """Run one input with all counts."""
        slot = self._slot
        slot.put(packed(given))
        warned = self._warnings
        started = time.monotonic_ns()
        slot.set("started_cpu_us", time.process_time_ns() // 1000)
        slot.set("compiled_ns", 0)
        slot.set("started_ns", started)
        outcome = self._target.run(given)
        slot.set("slowest_us", max(slot.get("slowest_us"), (time.monotonic_ns() - started) // 1000))
        slot.set("started_ns", 0)
        peak = self._peak_kib() - self._base_kib
        slot.set("peak_kib", max(slot.get("peak_kib"), peak))
        if peak > ALLOWED_KIB and not outcome.is_finding:
            outcome = Outcome("memory", outcome.error, f"{peak:,} KiB of memory: {outcome.message}", outcome.place)
        slot.add("inputs")
        slot.add("past_tracing", outcome.went_past_tracing)
        slot.add(outcome.kind)
        slot.add("warned", self._warnings > warned)
        size = os.fstat(self._printed).st_size
        if size:
            slot.add("printed")
            text = os.pread(self._printed, 400, 0).decode(errors="replace")
            key = "".join(letter for letter in text.splitlines()[0][:60] if not letter.isdigit())
            if key not in self._warned and len(self._warned) < 300:
                self._warned.add(key)
                slot.report(kind="printed", key=key, text=text)
            os.ftruncate(self._printed, 0)
        return outcome

    def _peak_kib(self) -> int:
        peak = _peak_kib()
        if peak <= self._tracked_kib:
            return 0
        if peak - self._base_kib > ALLOWED_KIB:
            peak = _status_kib("VmHWM:") or peak
            Path("/proc/self/clear_refs").write_text("5")  # so that the peak of the next input is measured separately
        else:
            self._tracked_kib = peak
        return peak

    def serve(self) -> None:
        """Run inputs that the parent writes, one by one."""
        slot = self._slot
        while True:
            request = slot.get("request")
            if request < 0:
                return
            if request == slot.get("response"):
                time.sleep(0.0005)
                continue
            outcome = self.run(unpacked(slot.data()))
            slot.report(kind="served", outcome=outcome.data(), request=request)
            slot.set("response", request)


class _CompileTimes(numba.core.event.Listener):
    """Tells the parent how long Numba compiles: a limit of time is for what dalify does with the input."""

    def __init__(self, slot: Slot) -> None:
        self._slot = slot
        self._depth = 0  # Numba compiles in one thread at a time, and the functions that a function calls inside of it

    def on_start(self, event: Any) -> None:
        """Note the start of a compilation."""
        self._depth += 1
        if self._depth == 1:
            self._slot.set("compiling_ns", time.monotonic_ns())

    def on_end(self, event: Any) -> None:
        """Add the time of a compilation."""
        self._depth -= 1
        if not self._depth:
            self._slot.add("compiled_ns", time.monotonic_ns() - self._slot.get("compiling_ns"))
            self._slot.set("compiling_ns", 0)


def _end_with_parent() -> None:
    """On Linux, be killed when the process that forked this one ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _peak_kib() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak >> 10 if sys.platform == "darwin" else peak


def _resident_kib() -> int:
    return _status_kib("VmRSS:") or _peak_kib()


def _status_kib(name: str) -> int:
    """Return a line of this process's status; 0 where the system has none."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def main() -> None:
    """Fork a child for each line of JSON on stdin; report starts and outcomes to the parent."""
    talk = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # What inputs would load for the first time: under load an import takes longer than an input may.
    for name in ("torch", "scipy.signal", "pyarrow.parquet", "h5py", "zarr", "astropy.io.fits", "av", "soundfile"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    cv2.setNumThreads(1)
    os.set_blocking(0, False)
    waiting = b""
    children: set[int] = set()

    def tell(**entry: Any) -> None:
        talk.write(json.dumps(entry) + "\n")
        talk.flush()

    tell(ready=True)
    while True:
        try:
            read = os.read(0, 1 << 16)
        except BlockingIOError:
            read = None
        if read == b"":
            break
        waiting += read or b""
        *lines, waiting = waiting.split(b"\n")
        for line in lines:
            order = json.loads(line)
            process = os.fork()
            if process == 0:
                talk.close()
                null = os.open(os.devnull, os.O_RDONLY)
                os.dup2(null, 0)
                try:
                    work(order)
                    status = 0
                except BaseException as error:
                    Slot(Path(order["folder"]), create=False).report(
                        kind="broken", text=f"{type(error).__name__}: {error}"
                    )
                    import traceback

                    traceback.print_exc()
                    status = 3
                os._exit(status)
            children.add(process)
            tell(began=process, folder=order["folder"])
        while children:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                break
            children.discard(process)
            tell(ended=process, code=os.waitstatus_to_exitcode(status))
        time.sleep(0.01)
    for process in children:
        os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    main()
