"""The samples with which ``on_error="replace"`` replaces damaged ones, by reader."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify.base.errors import ReaderError
from tests.helpers.videos import write_video
from tests.operators.readers.datasets import DATASETS

COUNT = 6
BAD = 2
# Arguments of the reader, what damages its data, and the blank sample; None for an output that only has the right type.
Case = tuple[dict[str, Any], Callable[[], Any], list[Any]]


def _cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


def _numpy(folder: Path) -> Case:
    for number in range(COUNT):
        np.save(folder / f"{number}.npy", np.full((3, 5), number + 1, np.int16))
    arguments = {"file_root": str(folder), "roi_start": [1, 1], "roi_shape": [2, 2]}
    return arguments, lambda: _cut_off(folder / f"{BAD}.npy"), [np.zeros((2, 2), np.int16)]


def _numpy_windows(folder: Path) -> Case:
    """Windows that another operator draws."""
    arguments, damage, blank = _numpy(folder)
    return {**arguments, "roi_start": lambda: dalify.fn.constant(idata=[1, 1], shape=[2])}, damage, blank


def _fits(folder: Path) -> Case:
    pytest.importorskip("astropy", reason="the extra dalify[fits]")
    arguments = {**DATASETS["experimental.readers.fits"](folder, COUNT), "dtypes": [dalify.types.INT16]}
    return arguments, lambda: _cut_off(folder / f"{BAD:03d}.fits"), [np.zeros((3, 4), np.int16)]


def _dataset(folder: Path) -> Case:
    items = [(np.ones((2, 3), np.float32), number) for number in range(COUNT)]
    return {"dataset": items}, lambda: items.__setitem__(BAD, None), [np.zeros((2, 3), np.float32), np.array(0)]


def _sequence(folder: Path) -> Case:
    cv2 = pytest.importorskip("cv2")
    for video in range(COUNT):
        (folder / f"{video}").mkdir()
        for number in range(2):
            cv2.imwrite(str(folder / f"{video}" / f"{number}.png"), np.full((4, 6, 3), 9, np.uint8))
    arguments = {"file_root": str(folder), "sequence_length": 2}
    return arguments, (folder / f"{BAD}" / "1.png").unlink, [np.zeros((2, 4, 6, 3), np.uint8)]


def _video(folder: Path) -> Case:
    pytest.importorskip("av", reason="the extra dalify[video]")
    paths = [write_video(folder / f"{number}.mp4", "mpeg4", count=2) for number in range(COUNT)]
    arguments = {
        "filenames": list(map(str, paths)),
        "labels": [10 + number for number in range(COUNT)],
        "sequence_length": 2,
        "enable_timestamps": True,
    }
    return arguments, paths[BAD].unlink, [np.zeros((2, 48, 64, 3), np.uint8), np.array([10 + BAD]), np.zeros(2)]


def _nemo_asr(folder: Path) -> Case:
    arguments = {**DATASETS["readers.nemo_asr"](folder, COUNT), "dtype": dalify.types.INT16, "sample_rate": 4000.0}
    text = np.frombuffer(b"words 2", np.uint8)
    blank = [np.zeros(400, np.int16), np.array(4000.0), text, np.array([BAD])]
    return arguments, (folder / f"{BAD}.wav").unlink, blank


def _parquet(folder: Path) -> Case:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (folder / "2.png").write_bytes(b"picture")
    images = [{"bytes": None if number == BAD else b"abc", "path": f"{number}.png"} for number in range(COUNT)]
    parquet.write_table(pyarrow.table({"image": images, "label": range(COUNT)}), folder / "a.parquet")
    arguments = {"paths": [str(folder / "a.parquet")], "columns": ["image", "label"]}
    return arguments, (folder / "2.png").unlink, [np.zeros(3, np.uint8), np.array(BAD)]


def _hdf5(folder: Path) -> Case:
    h5py = pytest.importorskip("h5py", reason="the extra dalify[hdf5]")
    with h5py.File(folder / "a.h5", "w") as file:
        images = np.ones((COUNT, 2, 2), np.int32)
        dataset = file.create_dataset("image", data=images, chunks=(1, 2, 2), fletcher32=True)
        file["label"] = np.arange(COUNT)
        offset = dataset.id.get_chunk_info(BAD).byte_offset

    def damage() -> None:
        with (folder / "a.h5").open("r+b") as file:
            file.seek(offset)
            file.write(b"\xff\xff\xff")

    arguments = {"paths": [str(folder / "a.h5")], "datasets": ["image", "label"]}
    return arguments, damage, [np.zeros((2, 2), np.int32), np.array(BAD)]


CASES: list[tuple[str, Callable[[Path], Case]]] = [
    ("readers.numpy", _numpy),
    ("readers.numpy", _numpy_windows),
    ("experimental.readers.fits", _fits),
    ("readers.dataset", _dataset),
    ("readers.sequence", _sequence),
    ("readers.video", _video),
    ("experimental.readers.video", _video),
    ("readers.nemo_asr", _nemo_asr),
    ("readers.parquet", _parquet),
    ("readers.hdf5", _hdf5),
]


def _pipeline(name: str, arguments: dict[str, Any]) -> dalify.Pipeline:
    pipe = dalify.Pipeline(batch_size=COUNT, num_threads=2, prefetch_queue_depth=1, on_error="replace")
    with pipe:
        given = {key: value() if callable(value) else value for key, value in arguments.items()}
        result = functools.reduce(getattr, name.split("."), dalify.fn)(**given)
        pipe.set_outputs(*(result if isinstance(result, (list, tuple)) else [result]))
    pipe.build()
    return pipe


@pytest.mark.parametrize(("name", "write"), CASES)
def test_blank_samples_are_like_good_ones_and_keep_what_is_known(
    name: str, write: Callable[[Path], Case], tmp_path: Path
) -> None:
    arguments, damage, blank = write(tmp_path)
    pipe = _pipeline(name, arguments)
    damage()
    outputs = pipe.run()
    assert [bad.sample for bad in pipe.bad_samples()] == [BAD]
    assert pipe.valid.tolist() == [place != BAD for place in range(COUNT)]
    assert len(outputs) == len(blank)
    for output, expected in zip(outputs, blank, strict=True):
        found = [np.array(output.at(place)) for place in range(COUNT)]
        assert found[BAD].dtype == found[0].dtype
        np.testing.assert_array_equal(found[BAD], expected)
    pipe.close()


def test_where_nothing_can_be_read_no_blank_sample_is_made(tmp_path: Path) -> None:
    for number in range(COUNT):
        (tmp_path / f"{number}.npy").write_bytes(b"no array")
    pipe = _pipeline("readers.numpy", {"file_root": str(tmp_path)})
    with pytest.raises(ReaderError, match=rf"none of {COUNT - 1} other samples can be read either") as caught:
        pipe.run()
    assert "0.npy" in str(caught.value)


@pytest.mark.parametrize("good", range(8))
def test_any_good_sample_of_a_small_dataset_is_found(tmp_path: Path, good: int) -> None:
    """Also at a distance that is not a power of two."""
    for number in range(8):
        (tmp_path / f"{number}.npy").write_bytes(b"no array")
    np.save(tmp_path / f"{good}.npy", np.arange(3))
    pipe = dalify.Pipeline(batch_size=8, num_threads=1, prefetch_queue_depth=1, on_error="replace")
    with pipe:
        pipe.set_outputs(dalify.fn.readers.numpy(file_root=str(tmp_path)))
    pipe.build()
    (output,) = pipe.run()
    found = [np.array(output.at(number)).tolist() for number in range(8)]
    assert found == [[0, 1, 2] if number == good else [0, 0, 0] for number in range(8)]
    pipe.close()


def test_the_only_sample_has_no_blank(tmp_path: Path) -> None:
    (tmp_path / "0.npy").write_bytes(b"no array")
    pipe = _pipeline("readers.numpy", {"file_root": str(tmp_path)})
    with pytest.raises(ReaderError, match=r"there is no other sample, so the type of a blank sample is unknown"):
        pipe.run()
    pipe.close()
