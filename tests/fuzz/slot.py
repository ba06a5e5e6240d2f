"""Data that the supervising process and the child share: memory and two files in a folder.

The child writes the input into the shared memory before it runs it. So whatever becomes of the child, the parent has
the input, and the counts.
"""

from __future__ import annotations

import json
import mmap
import struct
from pathlib import Path
from typing import Any

from tests.fuzz.outcomes import KINDS

COUNTERS = (
    "number",  # of the input that runs
    "started_ns",  # on the monotonic clock; 0 while none runs
    "started_cpu_us",  # processor time of the child when the input started
    "compiled_ns",  # time of completed compilations since then
    "compiling_ns",  # start of the present compilation; 0 while none runs
    "size",  # of the packed input
    "is_ready",  # the target is prepared
    "is_done",
    "request",  # in serving: number of the requested input
    "response",  # and of the one that was answered
    "inputs",
    "past_tracing",
    "warned",
    "printed",
    "peak_kib",  # resident memory beyond that of the prepared target
    "slowest_us",
    *KINDS,
)
_PLACES = {name: 8 * index for index, name in enumerate(COUNTERS)}
_START = 512
_CAPACITY = 8 << 20


class Slot:
    """A folder with shared memory, the child's report, its output, and its message when it crashes.

    Args:
        folder: empty or absent.
        create: make the files; otherwise they are there.
    """

    def __init__(self, folder: Path, *, create: bool) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "shared"
        if create:
            with path.open("wb") as file:
                file.truncate(_START + _CAPACITY)  # sparse
            for name in ("report", "printed", "crash"):
                (folder / name).write_bytes(b"")
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _START + _CAPACITY)
        self._read = 0

    def get(self, name: str) -> int:
        """Return a counter."""
        return struct.unpack_from("<q", self._memory, _PLACES[name])[0]

    def set(self, name: str, value: int) -> None:
        """Set a counter."""
        struct.pack_into("<q", self._memory, _PLACES[name], value)

    def add(self, name: str, value: int = 1) -> None:
        """Add to a counter."""
        self.set(name, self.get(name) + value)

    def counts(self) -> dict[str, int]:
        """Return all counters."""
        return {name: self.get(name) for name in COUNTERS}

    def put(self, data: bytes) -> None:
        """Write the packed input."""
        data = data[:_CAPACITY]
        self._memory[_START : _START + len(data)] = data
        self.set("size", len(data))

    def data(self) -> bytes:
        """Return the packed input."""
        return self._memory[_START : _START + self.get("size")]

    def report(self, **entry: Any) -> None:
        """Append an entry for the parent."""
        with (self.folder / "report").open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def reports(self) -> list[dict[str, Any]]:
        """Return the entries since the last call."""
        with (self.folder / "report").open("rb") as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        return [json.loads(line) for line in whole.splitlines()]

    def text(self, name: str) -> str:
        """Return what was printed (``printed``) or said in a crash (``crash``)."""
        return (self.folder / name).read_bytes().decode(errors="replace")

    def close(self) -> None:
        """Release the memory."""
        self._memory.close()
