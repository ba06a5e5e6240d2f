"""Measure the decoding of audio with libsndfile from a memory file and from a Python file object, and with DALI.

Threads are pinned to cores if the system supports it, because some systems run the threads of a process on one core.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from benchmarks.common import Contender, Options, RunBatch, compare, library, missing_package
from dalify.codecs import audio
from tutorials.recordings import make_recordings

BATCH_SIZE = 32
# Names of formats and subtypes of soundfile. Formats that DALI does not decode have no row for DALI.
KINDS = {"flac": "PCM_16", "ogg": "VORBIS", "mp3": "MPEG_LAYER_III", "aiff": "PCM_16", "wav": "PCM_24"}
NOT_IN_DALI = ("mp3",)
_TASKS = Path("/proc/self/task")


def _decoding(lib: SimpleNamespace, folder: str, num_threads: int) -> Any:
    fn, types = lib.fn, lib.types

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=num_threads, device_id=None)
    def pipeline():
        encoded, labels = fn.readers.file(file_root=folder, file_filters=["*"])
        decoded, _ = fn.decoders.audio(encoded, dtype=types.FLOAT)
        return decoded, labels

    return pipeline()


def _threads() -> set[int]:
    return {int(path.name) for path in _TASKS.iterdir()} if _TASKS.exists() else set()


@contextmanager
def _run(define: Callable[[], Any], *, is_virtual: bool) -> Iterator[RunBatch]:
    """Run a pipeline with each thread pinned to one core; without memory files if `is_virtual`."""
    before = _threads()
    pipeline = define()
    pipeline.build()
    pipeline.run()
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    for place, thread in enumerate(sorted(_threads() - before)):
        os.sched_setaffinity(thread, {cores[place % len(cores)]})

    def run_batch() -> int:
        # The patch remains active after this call, because batches are prefetched. The next contender starts when this
        # process is idle.
        audio._memory_file = (lambda: None) if is_virtual else memory_file
        return len(pipeline.run()[0])

    memory_file = audio._memory_file
    with mock.patch.object(audio, "_memory_file", memory_file):  # restores the original function
        yield run_batch


def _encoded(waves: Path, folder: Path, kind: str) -> Path:
    """Write the same recordings in another format."""
    soundfile = importlib.import_module("soundfile")
    for path in sorted(waves.glob("*/*.wav")):
        target = folder / path.parent.name / f"{path.stem}.{kind}"
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(target, *soundfile.read(path, dtype="int16"), subtype=KINDS[kind])
    return folder


def _contenders(folder: Path, num_threads: int, has_rival: bool) -> list[Contender]:
    def ours() -> Any:
        return _decoding(library("dalify"), str(folder), num_threads)

    def theirs() -> Any:
        return _decoding(library("nvidia.dali"), str(folder), num_threads)

    found = [
        Contender("dalify, memory file", lambda: _run(ours, is_virtual=False)),
        Contender("dalify, file object", lambda: _run(ours, is_virtual=True)),
    ]
    return [*found, Contender("DALI", lambda: _run(theirs, is_virtual=False), ("nvidia.dali",))] if has_rival else found


def main(options: Options) -> None:
    """Time each format with one and two threads."""
    if missing_package(["soundfile"]):
        print("audio_decoding: the package soundfile is not installed")
        return
    count = 2 if options.is_smoke else 16
    waves = make_recordings(Path(f"out/speech_{count}"), recordings_per_word=count, seconds=2.5)
    for kind in KINDS:
        folder = _encoded(waves, Path(f"out/speech_{count}_as_{kind}"), kind)
        for num_threads in (1, 2):
            contenders = _contenders(folder, num_threads, kind not in NOT_IN_DALI)
            title = f"decoding {kind} files of about 3 s, {num_threads} thread{'s' if num_threads > 1 else ''}"
            compare(title, contenders, options, unit="files/s")
