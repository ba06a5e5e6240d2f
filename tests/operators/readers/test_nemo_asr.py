"""readers.nemo_asr compared with DALI, and manifests that are damaged."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dalify
from dalify.base.errors import ArgumentValueError, DalifyError, ReaderError
from tests.operators.readers.datasets import run_reader


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    for name, rate, channels, count in (("a", 8000, 1, 80), ("b", 16000, 2, 100), ("c", 8000, 1, 8000)):
        with wave.open(str(tmp_path / f"{name}.wav"), "wb") as file:
            file.setnchannels(channels)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes(random.integers(-20000, 20000, count * channels).astype("<i2").tobytes())
    return tmp_path


def write(folder: Path, entries: list[dict[str, Any]] | str) -> str:
    text = entries if isinstance(entries, str) else "\n".join(json.dumps(entry) for entry in entries) + "\n"
    (folder / "manifest.json").write_text(text)
    return str(folder / "manifest.json")


def entries(folder: Path) -> list[dict[str, Any]]:
    return [
        {"audio_filepath": str(folder / "c.wav"), "duration": 1.0, "text": "héllo", "extra": [1, {"a": 2}]},
        {"audio_filepath": str(folder / "a.wav"), "duration": 0.01},
        {"audio_filepath": str(folder / "b.wav"), "text": 'b "q"', "offset": 0.00107, "duration": 0.00321},
    ]


def read(package: Any, manifest: str | list[str], count: int = 3, **options: Any) -> tuple[list[str], Any, Any]:
    layouts, (outputs,), meta = run_reader(
        package, "readers.nemo_asr", 1, count, manifest_filepaths=manifest, **options
    )
    return layouts, outputs, meta["epoch_size"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"read_idxs": True},
        {"read_text": False, "read_sample_rate": False},
        {"downmix": False, "read_text": False},
        {"dtype": lambda package: package.types.INT16},
        {"dtype": lambda package: package.types.INT32, "sample_rate": 4000.0},
        {"sample_rate": 11025.0, "quality": 20.0},
        {"max_duration": 0.5, "read_idxs": True},
        {"min_duration": 0.5},
        {"min_duration": 0.01},
        {"max_duration": 0.01, "read_idxs": True},
    ],
    ids=range(11),
)
def test_options_equal_dali(oracle: ModuleType, folder: Path, options: dict[str, Any]):
    manifest = write(folder, entries(folder))
    layouts, ours, size = read(dalify, manifest, **options)
    their_layouts, theirs, their_size = read(oracle, manifest, **options)
    assert layouts == their_layouts
    assert size == their_size
    for own, other in zip(ours, theirs, strict=True):
        for one, two in zip(own, other, strict=True):
            assert one.dtype == two.dtype
            assert one.shape == two.shape
            scale = 2e-6 * max(np.abs(two.astype(np.float64)).max(initial=1), 1)
            np.testing.assert_allclose(one.astype(np.float64), two, atol=max(scale, one.dtype.kind == "i"))


def test_several_manifests_and_entries_over_several_lines(folder: Path):
    manifest = write(folder, "".join(json.dumps(entry, indent=2) for entry in entries(folder)))
    _, outputs, size = read(dalify, [manifest, manifest], 6, read_idxs=True)
    assert size == 6
    assert [int(number[0]) for number in outputs[3]] == [0, 1, 2] * 2
    assert [bytes(text).decode() for text in outputs[2]] == ["héllo", "", 'b "q"'] * 2


def test_a_byte_order_mark_is_ignored(folder: Path):
    manifest = write(folder, "\ufeff" + json.dumps(entries(folder)[0]))
    _, outputs, size = read(dalify, manifest, 1)
    assert size == 1
    assert bytes(outputs[2][0]).decode() == "héllo"


def test_parts_beyond_the_end(folder: Path):
    audio = str(folder / "a.wav")
    parts = [(0.005, None), (0.005, 1.0), (2.0, 1.0), (0.0, 0.0)]
    manifest = write(
        folder, [{"audio_filepath": audio, "offset": start, "duration": length} for start, length in parts]
    )
    _, outputs, _ = read(dalify, manifest, 4)
    assert [len(item) for item in outputs[0]] == [40, 40, 0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"audio_filepath": 3', "line 1: invalid JSON"),
        ('{"audio_filepath": "a"}\n{x}', "line 2: invalid JSON"),
        ('{"audio_filepath": ' + "[" * 100_000, "line 1: invalid JSON"),
        ('{"text": "x"}', "'audio_filepath' must be a path; got None"),
        ("[1]", r"expected an object such as .*; got \[1\]"),
        (r'{"audio_filepath": "a", "text": "\ud800"}', "text must be a string of valid Unicode"),
        (r'{"audio_filepath": "\ud800"}', "'audio_filepath' must be a path"),
        (r'{"audio_filepath": "a\u0000"}', "'audio_filepath' must be a path"),
        ('{"audio_filepath": "a", "duration": "x"}', "duration must be a finite number of seconds.*'x'"),
        ('{"audio_filepath": "a", "duration": Infinity}', "duration must be a finite number.*inf"),
        ('{"audio_filepath": "a", "offset": NaN}', "offset must be a finite number.*nan"),
        ('{"audio_filepath": "a", "offset": -1}', "offset must be a finite number"),
        ('{"audio_filepath": "a", "offset": 1' + "0" * 400 + "}", "offset must be a finite number"),
        ('{"audio_filepath": "a", "text": 1}', "text must be a string"),
        ("", "nothing to read"),
        ('{"audio_filepath": "nowhere.wav"}', "cannot open the file '.*nowhere.wav'"),
        ('{"audio_filepath": "/nowhere.wav"}', "the name '/nowhere.wav' points outside the folder"),
    ],
)
def test_damaged_manifests(folder: Path, text: str, message: str):
    with pytest.raises(ReaderError, match=message):
        read(dalify, write(folder, text), 1)
    with pytest.raises(ReaderError, match="cannot read the manifest"):
        read(dalify, "/nowhere.json", 1)


def test_limits_that_exclude_all_entries(folder: Path):
    manifest = write(folder, '{"audio_filepath": "a.wav", "duration": 1}')
    with pytest.raises(ReaderError, match="min_duration and max_duration exclude all 1 entry"):
        read(dalify, manifest, 1, min_duration=2.0)


def test_a_bad_entry_fails_one_sample(folder: Path):
    good = {"audio_filepath": str(folder / "a.wav"), "text": "good"}
    rows = [good, {**good, "duration": float("inf")}, {"text": "no path"}, {**good, "duration": 1e-3, "offset": 1e308}]
    manifest = write(folder, rows)

    @dalify.pipeline_def(batch_size=4, num_threads=2, on_error="skip")
    def graph():
        return dalify.fn.readers.nemo_asr(manifest_filepaths=[manifest], read_text=False, read_sample_rate=False)

    pipe = graph()
    (recordings,) = pipe.run()
    assert len(recordings.at(0)) > 0
    assert len(recordings.at(3)) == 0  # begins after the end
    bad = pipe.bad_samples()
    assert {item.source for item in bad} == {str(folder / "a.wav"), f"{manifest}, entry at character {at(manifest, 2)}"}
    assert any("got inf" in item.error for item in bad)


def at(manifest: str, entry: int) -> int:
    """Return where an entry of a manifest with one line for each begins."""
    return sum(len(line) + 1 for line in Path(manifest).read_text().splitlines()[:entry])


@pytest.mark.parametrize("options", [{"quality": 101.0}, {"sample_rate": float("nan")}, {"dtype": dalify.types.UINT8}])
def test_arguments_out_of_range(folder: Path, options: dict[str, Any]):
    manifest = write(folder, entries(folder))
    with pytest.raises((ArgumentValueError, DalifyError)):
        read(dalify, manifest, **options)
