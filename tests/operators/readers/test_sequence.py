"""fn.readers.sequence compared with its images, read by OpenCV, and with the real DALI."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import dalify
from dalify import types
from dalify.base.errors import ArgumentValueError, DecodeError, ReaderError


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("videos")
    rng = np.random.default_rng(4)
    for name, count, size in (("0", 7, (20, 30)), ("1", 4, (20, 30)), ("b", 12, (16, 18))):
        (root / name).mkdir()
        for number in range(count):
            cv2.imwrite(str(root / name / f"{number}.png"), rng.integers(0, 256, (*size, 3), dtype=np.uint8))
    (root / "0" / "notes.txt").write_text("no picture")
    cv2.imwrite(str(root / "alone.png"), np.zeros((4, 4, 3), np.uint8))
    return root


def read(batches: int, count: int = 2, **arguments: Any) -> tuple[int, list[np.ndarray]]:
    @dalify.pipeline_def(batch_size=count, num_threads=2, device_id=None)
    def graph():
        return dalify.fn.readers.sequence(name="videos", **arguments)

    pipe = graph()
    try:
        size = pipe.reader_meta("videos")["epoch_size"]
        results = []
        for _ in range(batches):
            (batch,) = pipe.run()
            assert batch.layout() == "FHWC"
            results += [np.array(batch.at(i)) for i in range(len(batch))]
        return size, results
    finally:
        pipe.close()


def read_by_dali(oracle: Any, batches: int, count: int = 2, **arguments: Any) -> tuple[int, list[np.ndarray]]:
    pipe = oracle.Pipeline(batch_size=count, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated there
        pipe.set_outputs(oracle.fn.readers.sequence(name="videos", **arguments))
    pipe.build()
    size = pipe.reader_meta("videos")["epoch_size"]
    return size, [np.array(batch.at(i)) for _ in range(batches) for (batch,) in [pipe.run()] for i in range(len(batch))]


@pytest.mark.parametrize(
    "arguments",
    [
        {"sequence_length": 3},
        {"sequence_length": 3, "step": 2, "stride": 2},
        {"sequence_length": 4, "step": 3},
        {"sequence_length": 2, "stride": 5},
        {"sequence_length": 2, "image_type": "BGR"},
    ],
    ids=str,
)
def test_sequences_equal_dali(videos, oracle, arguments):
    arguments = {"file_root": str(videos), **arguments}
    ours = {**arguments, "image_type": getattr(types, arguments.get("image_type", "RGB"))}
    theirs = {**arguments, "image_type": getattr(oracle.types, arguments.get("image_type", "RGB"))}
    size, clips = read(8, **ours)
    their_size, their_clips = read_by_dali(oracle, 8, **theirs)
    assert size == their_size
    for clip, other in zip(clips, their_clips, strict=True):
        np.testing.assert_array_equal(clip, other)


def test_images_in_byte_order(videos):
    _, clips = read(6, file_root=str(videos), sequence_length=12)
    names = sorted(path.name for path in (videos / "b").iterdir())
    assert names[:3] == ["0.png", "1.png", "10.png"]
    expected = [cv2.imread(str(videos / "b" / name))[..., ::-1] for name in names]
    np.testing.assert_array_equal(clips[0], np.stack(expected))


def test_hidden_folders_and_images(tmp_path, oracle):
    for number, name in enumerate(
        (".hidden/0.png", ".hidden/1.png", "a/.0.png", "a/1.png", "a/2.PNG", "b/..3.png", "b/4.png")
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(cv2.imencode(".png", np.full((2, 3, 3), number, np.uint8))[1].tobytes())
    size, clips = read(3, 1, file_root=str(tmp_path), sequence_length=1)
    their_size, their_clips = read_by_dali(oracle, 3, 1, file_root=str(tmp_path), sequence_length=1)
    assert size == their_size == 3
    assert [clip.max() for clip in clips] == [3, 4, 6]
    np.testing.assert_array_equal(clips, their_clips)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"sequence_length": 0}, ArgumentValueError, "sequence_length"),
        ({"step": 0}, ArgumentValueError, "step"),
        ({"stride": -1}, ArgumentValueError, "stride"),
        ({"image_type": types.YCbCr}, ArgumentValueError, "types.GRAY"),
        ({"sequence_length": 13}, ReaderError, "longest has 12"),
        ({"file_root": "/no/such"}, ReaderError, "/no/such"),
    ],
    ids=str,
)
def test_mistakes(videos, arguments, kind, message):
    with pytest.raises(kind, match=message):
        read(1, **{"file_root": str(videos), "sequence_length": 2, **arguments})


def test_images_must_fit_together(tmp_path):
    (tmp_path / "film").mkdir()
    for number, size in enumerate([(4, 5, 3), (4, 6, 3)]):
        cv2.imwrite(str(tmp_path / "film" / f"{number}.png"), np.zeros(size, np.uint8))
    with pytest.raises(ReaderError, match=r"1\.png"):
        read(1, file_root=str(tmp_path), sequence_length=2)
    (tmp_path / "film" / "1.png").write_bytes(b"no picture")
    with pytest.raises(DecodeError, match=r"1\.png"):
        read(1, file_root=str(tmp_path), sequence_length=2)
