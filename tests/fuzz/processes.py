"""The warm process that forks children, and children that answer one input at a time."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from tests.fuzz.inputs import Input, packed
from tests.fuzz.outcomes import Outcome, place_in_crash
from tests.fuzz.slot import Slot
from tests.fuzz.targets import target_of

_PROJECT = Path(__file__).parents[2]
PREPARE_SECONDS = 240.0  # kernels may have to be compiled
# An input that waits may take this multiple of the processor time that it is allowed.
_PATIENCE = 6.0


class Warm:
    """A process that has imported everything and forks a child for each order."""

    def __init__(self) -> None:
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        paths = os.pathsep.join(filter(None, [str(_PROJECT), os.environ.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.child"],
            cwd=_PROJECT,
            env={**os.environ, **one_thread, "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore", "DALIFY_DEVICE": "cpu"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.began: dict[str, int] = {}
        self.ended: dict[int, int] = {}
        self._waiting = b""
        self.is_ready = False

    def order(self, slot: Slot, **order: Any) -> None:
        """Have a child forked."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"folder": str(slot.folder), **order}).encode() + b"\n")
        self._process.stdin.flush()

    def poll(self, seconds: float = 0.0) -> None:
        """Read the messages of the process: ``began`` maps folders to processes, ``ended`` processes to exit codes.

        Raises:
            RuntimeError: the process has ended.
        """
        assert self._process.stdout is not None
        while select.select([self._process.stdout], [], [], seconds)[0]:
            read = os.read(self._process.stdout.fileno(), 1 << 16)
            if not read:
                raise RuntimeError("the process that forks children has ended; its errors are above.")
            self._waiting += read
            *lines, self._waiting = self._waiting.split(b"\n")
            for line in lines:
                said = json.loads(line)
                if "began" in said:
                    self.began[said["folder"]] = said["began"]
                elif "ended" in said:
                    self.ended[said["ended"]] = said["code"]
                else:
                    self.is_ready = True
            seconds = 0.0

    def close(self) -> None:
        """End the process and its children."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Child:
    """A child process, from the view of the campaign.

    Args:
        warm: the process that forks the child.
        folder: of its slot; absent or empty.
        target: name of the target.
        order: the rest of the order; see ``tests.fuzz.child.work``.
    """

    def __init__(self, warm: Warm, folder: Path, target: str, **order: Any) -> None:
        self.target = target
        self.slot = Slot(folder, create=True)
        self._warm = warm
        self.asked = time.monotonic()
        self.ready = 0.0  # when it was seen to be prepared
        self.was_killed = False
        warm.order(self.slot, target=target, **order)

    @property
    def process(self) -> int | None:
        """Its process id; None before it was forked."""
        return self._warm.began.get(str(self.slot.folder))

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for signals."""
        process = self.process
        return None if process is None else self._warm.ended.get(process)

    @property
    def seconds_on_input(self) -> float:
        """How long the present input has been running, see ``seconds_on_input``."""
        return 0.0 if self.process is None else seconds_on_input(self.slot, self.process)

    def kill(self, *, with_stacks: bool = False) -> None:
        """End the child; ``with_stacks`` has it write what its threads were doing first."""
        process = self.process
        if process is None or self.exit_code is not None:
            return
        self.was_killed = True
        try:
            if with_stacks:
                os.kill(process, signal.SIGUSR1)
                time.sleep(0.3)
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
        while self.exit_code is None:
            self._warm.poll(0.05)

    def outcome_of_death(self, kind: str) -> Outcome:
        """Return the outcome of an input that the child did not survive: ``crash`` or ``hang``."""
        text = self.slot.text("crash")
        code = self.exit_code
        name = signal.Signals(-code).name if kind == "crash" and code is not None and code < 0 else ""
        name = name or ("" if kind == "hang" else f"exit {code}")
        return Outcome(kind, name, text.strip()[:300], place_in_crash(text), text[:6000])


class Server:
    """Returns the outcomes of single inputs of a target, with a new child after each crash.

    Args:
        warm: forks children.
        folder: for slots.
        target: name of the target.
    """

    def __init__(self, warm: Warm, folder: Path, target: str) -> None:
        self._warm = warm
        self._folder = folder
        self._target = target
        self._child: Child | None = None
        self._count = 0

    def outcome(self, given: Input) -> Outcome:
        """Run one input."""
        if self._child is None:
            self._count += 1
            self._child = Child(self._warm, self._folder / f"serve{self._count}", self._target, mode="serve")
            began = time.monotonic()
            self._wait("is_ready", 1, lambda: time.monotonic() - began > PREPARE_SECONDS)
        child = self._child
        number = child.slot.get("request") + 1
        child.slot.put(packed(given))
        child.slot.set("request", number)
        limit = target_of(self._target).seconds
        if self._wait("response", number, lambda: child.seconds_on_input > limit):
            return next(
                Outcome(**entry["outcome"])
                for entry in child.slot.reports()
                if entry["kind"] == "served" and entry["request"] == number
            )
        kind = "hang" if child.exit_code is None else "crash"
        child.kill(with_stacks=kind == "hang")
        self._child = None
        return child.outcome_of_death(kind)

    def _wait(self, name: str, value: int, is_late: Callable[[], bool]) -> bool:
        child = self._child
        assert child is not None
        while child.slot.get(name) != value:
            self._warm.poll(0.0)
            if child.exit_code is not None or is_late():
                return child.slot.get(name) == value
            time.sleep(0.001)
        return True

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def __enter__(self) -> Server:
        """Return the server."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the child."""
        self.close()


def seconds_on_input(slot: Slot, process: int) -> float:
    """Return how long a child has been running its present input, independent of the load of the machine.

    That is processor time without compilations. An input that waits for something uses none, so the time on the clock
    counts, too, at a fraction.

    Args:
        slot: of the child.
        process: its process id.
    """
    started, now = slot.get("started_ns"), time.monotonic_ns()
    if not started:
        return 0.0
    since = slot.get("compiling_ns")
    compiled_s = (slot.get("compiled_ns") + (now - max(since, started) if since else 0)) / 1e9
    try:
        times = psutil.Process(process).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    cpu_s = times.user + times.system - slot.get("started_cpu_us") / 1e6
    return max(0.0, cpu_s - compiled_s, ((now - started) / 1e9 - compiled_s) / _PATIENCE)


def counts_of(total: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of two children together: sums, and the largest of what are maxima."""
    return {
        name: max(total.get(name, 0), value)
        if name in ("peak_kib", "slowest_us", "number")
        else total.get(name, 0) + value
        for name, value in more.items()
    }
