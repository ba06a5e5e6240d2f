"""Measure the conversion of speech to log-mel spectrograms: decode, trim silence, filter, transform, normalize."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.common import Options, compare, missing_package, pipelines
from tutorials.recordings import SAMPLE_RATE, make_recordings

BATCH_SIZE = 32


def log_mel(lib: SimpleNamespace, folder: str, num_threads: int, **reading: Any) -> Any:
    """Define the pipeline with dalify or with DALI; `reading` contains arguments of the file reader."""
    fn, types = lib.fn, lib.types

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=num_threads, device_id=None, seed=1)
    def pipeline():
        encoded, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="speech", **reading)
        audio, _ = fn.decoders.audio(encoded, downmix=True, dtype=types.FLOAT)
        begin, length = fn.nonsilent_region(audio, cutoff_db=-40.0)
        audio = fn.slice(audio, begin, length, axes=[0])
        audio = fn.preemphasis_filter(audio, preemph_coeff=0.97)
        spectrum = fn.spectrogram(audio, nfft=512, window_length=400, window_step=160)
        mel = fn.mel_filter_bank(spectrum, nfilter=80, sample_rate=float(SAMPLE_RATE))
        decibels = fn.to_decibels(mel, multiplier=10.0, reference=1.0, cutoff_db=-80.0)
        return fn.normalize(decibels, axes=[1]), labels

    return pipeline()


def as_flac(waves: Path, folder: Path) -> Path:
    """Write the same recordings as FLAC, with half the bytes and a longer decoding time."""
    soundfile = importlib.import_module("soundfile")
    for path in sorted(waves.glob("*/*.wav")):
        target = folder / path.parent.name / f"{path.stem}.flac"
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(target, *soundfile.read(path, dtype="int16"))
    return folder


def main(options: Options) -> None:
    """Time WAV files, then FLAC files if their package is installed, on one thread."""
    count = 2 if options.is_smoke else 16
    waves = make_recordings(Path(f"out/speech_{count}"), recordings_per_word=count, seconds=2.5)
    folders = {"WAV": waves}
    if not missing_package(["soundfile"]):
        folders["FLAC"] = as_flac(waves, Path(f"out/speech_{count}_flac"))
    for kind, folder in folders.items():
        contenders = pipelines(log_mel, folder=str(folder), num_threads=1)
        compare(f"speech to log-mel, {kind} files of about 3 s, one thread", contenders, options, unit="files/s")
