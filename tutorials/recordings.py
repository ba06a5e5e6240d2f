"""Synthesized vowels for the tutorial on audio and for benchmarks, as sums of harmonics without a download.

Each word is a class. Its recordings differ in pitch, speed, loudness and the surrounding silence.
"""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np

__all__ = ["SAMPLE_RATE", "WORDS", "make_recordings", "speak"]

SAMPLE_RATE = 16000
WORDS = ("aia", "eou", "iue", "oae", "uio")
# The first three formants of vowels in Hz (Peterson and Barney, 1952, rounded).
_FORMANTS = {
    "a": (730, 1090, 2440),
    "e": (530, 1840, 2480),
    "i": (270, 2290, 3010),
    "o": (570, 840, 2410),
    "u": (300, 870, 2240),
}
_STRENGTHS = (1.0, 0.5, 0.25)
_BANDWIDTH_HZ = 120.0


def speak(word: str, seed: int, *, seconds: float = 1.2) -> np.ndarray:
    """Return one recording, float32 ``[samples]`` at 16 kHz, between -1 and 1.

    Args:
        word: a string of the vowels a, e, i, o and u.
        seed: determines voice, speed and silence.
        seconds: approximate length of the word without silence.
    """
    random = np.random.default_rng(seed)
    count = int(SAMPLE_RATE * seconds * random.uniform(0.8, 1.2))
    time = np.linspace(0, 1, count)
    pitch = random.uniform(90, 220) * (
        1 + 0.15 * np.sin(2 * np.pi * (random.uniform(0.5, 1.5) * time + random.random()))
    )
    phase = 2 * np.pi * np.cumsum(pitch) / SAMPLE_RATE
    # Formants glide from vowel to vowel.
    places = np.linspace(0, 1, 2 * len(word))
    formants = [np.interp(time, places, np.repeat([_FORMANTS[vowel][n] for vowel in word], 2)) for n in range(3)]
    sound = np.zeros(count)
    for harmonic in range(1, int(4000 / pitch.min())):
        frequency = harmonic * pitch
        strength = 0.02 + sum(
            part * np.exp(-0.5 * ((frequency - formant) / _BANDWIDTH_HZ) ** 2)
            for part, formant in zip(_STRENGTHS, formants, strict=True)
        )
        sound += strength * np.sin(harmonic * phase)
    envelope = np.clip(np.minimum(time, 1 - time) * 12, 0, 1)
    loudness = random.uniform(0.2, 0.8) / np.abs(sound).max()
    silences = [np.zeros(int(SAMPLE_RATE * random.uniform(0.1, 0.6))) for _ in range(2)]
    recording = np.concatenate([silences[0], sound * envelope * loudness, silences[1]])
    return (recording + random.normal(0, 3e-4, len(recording))).clip(-1, 1).astype(np.float32)


def make_recordings(folder: Path, *, recordings_per_word: int, seconds: float = 1.2) -> Path:
    """Write recordings as WAV files unless they exist.

    Args:
        folder: the folder of `<word>/<number>.wav`.
        recordings_per_word: files per class.
        seconds: see `speak`.

    Returns:
        `folder`.
    """
    for index, word in enumerate(WORDS):
        (folder / word).mkdir(parents=True, exist_ok=True)
        for number in range(recordings_per_word):
            path = folder / word / f"{number:03d}.wav"
            if path.exists():
                continue
            samples = speak(word, 1000 * index + number, seconds=seconds)
            with wave.open(str(path), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(SAMPLE_RATE)
                file.writeframes((samples * 32767).round().astype("<i2").tobytes())
    return folder
