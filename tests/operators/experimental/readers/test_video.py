"""fn.experimental.readers.video compared with plain decoding and the CPU reader of the real DALI: VP8, VP9, MJPEG."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import types
from dalify.base.errors import ArgumentValueError, DecodeError, ReaderError
from tests.helpers.videos import FORMS, UNEVEN_TIMES_MS, plain_frames, write_video

LARGE = {"sequence_length": 30, "pad_mode": "constant"}


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Videos of constant and variable frame rate, and others that the CPU reader of DALI does not support."""
    folder = tmp_path_factory.mktemp("videos")
    names = {
        "even": "vp9.webm",
        "uneven": "uneven.webm",
        "open": "open.mkv",
        "closed": "closed.mp4",
        "avi": "mpeg4.avi",
    }
    return {key: write_video(folder / name, FORMS[name][0], **FORMS[name][1]) for key, name in names.items()}


def read(batches: int, count: int = 2, **arguments: Any) -> tuple[int, list[list[list[np.ndarray]]]]:
    """Return the size of an epoch, and the samples of each output of each batch."""
    if "file_list" in arguments:  # the videos are in another folder than the lists
        arguments.setdefault("allow_outside_root", True)

    @dalify.pipeline_def(batch_size=count, num_threads=3, device_id=None, seed=3)
    def graph():
        result = dalify.fn.experimental.readers.video(name="videos", **arguments)
        return tuple(result) if isinstance(result, (list, tuple)) else result

    pipe = graph()
    try:
        size = pipe.reader_meta("videos")["epoch_size"]
        return size, [
            [[np.array(batch.at(i)) for i in range(len(batch))] for batch in pipe.run()] for _ in range(batches)
        ]
    finally:
        pipe.close()


def read_by_dali(oracle: Any, batches: int, count: int = 2, **arguments: Any) -> tuple[int, Any]:
    pipe = oracle.Pipeline(batch_size=count, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe:
        result = oracle.fn.experimental.readers.video(name="videos", **arguments)
        pipe.set_outputs(*(result if isinstance(result, (list, tuple)) else [result]))
    pipe.build()
    size = pipe.reader_meta("videos")["epoch_size"]
    return size, [[[np.array(batch.at(i)) for i in range(len(batch))] for batch in pipe.run()] for _ in range(batches)]


def assert_equal(ours: Any, theirs: Any) -> None:
    assert ours[0] == theirs[0]
    for one, other in zip(ours[1], theirs[1], strict=True):
        assert len(one) == len(other)
        for samples, others in zip(one, other, strict=True):
            for sample, expected in zip(samples, others, strict=True):
                assert sample.dtype == expected.dtype
                if sample.dtype == np.float64:
                    np.testing.assert_allclose(sample, expected, rtol=1e-12)
                else:
                    np.testing.assert_array_equal(sample, expected)


DIVISIONS = [
    {"sequence_length": 7},
    {"sequence_length": 9, "labels": [3, 8], "enable_frame_num": "scalar", "enable_timestamps": True},
    {"sequence_length": 9, "enable_frame_num": "sequence", "enable_timestamps": True, "pad_mode": "constant"},
    {"sequence_length": 9, "enable_frame_num": True, "pad_mode": "constant", "fill_value": [1, 2, 3]},
    {"sequence_length": 9, "enable_frame_num": "sequence", "enable_timestamps": True, "pad_mode": "edge"},
    {"sequence_length": 9, "enable_frame_num": "sequence", "pad_mode": "reflect_101"},
    {"sequence_length": 9, "enable_frame_num": "sequence", "pad_mode": "reflect_1001"},
    {"sequence_length": 4, "stride": 3, "step": 5, "enable_frame_num": "sequence"},
    {"sequence_length": 4, "stride": 3, "step": 5, "pad_mode": "edge", "enable_frame_num": "sequence"},
    {"sequence_length": 4, "stride": 3, "pad_mode": "constant"},
    {"sequence_length": 2, "stride": 20, "pad_mode": "constant", "enable_frame_num": False},
    {"sequence_length": 40, "pad_mode": "edge"},
    {"sequence_length": 2, "step": 0},
    {"sequence_length": 5, "uniform_sample": True, "enable_frame_num": "sequence", "enable_timestamps": True},
    {"sequence_length": 25, "uniform_sample": True, "enable_frame_num": "scalar"},
]


@pytest.mark.parametrize("arguments", DIVISIONS, ids=str)
def test_divisions_equal_dali(videos, oracle, arguments):
    arguments = {"filenames": [str(videos["even"]), str(videos["uneven"])], **arguments}
    assert_equal(read(4, **arguments), read_by_dali(oracle, 4, **arguments))


@pytest.mark.parametrize(
    ("parts", "arguments"),
    [
        (["3 11", "2 -3"], {"file_list_format": "frames", "sequence_length": 3}),
        (["3 8", "3 8"], {"file_list_format": "frames", **LARGE, "pad_mode": "reflect_101"}),
        (["-8 -2", "8 50"], {"file_list_format": "frames", **LARGE}),
        (["2.5 6.5", "1.1 4.9"], {"file_list_format": "frames", **LARGE, "file_list_rounding": "all_up"}),
        (["2.5 6.5", "1.1 4.9"], {"file_list_format": "frames", **LARGE, "file_list_rounding": "start_up_end_down"}),
        (["0.1 0.5", "0.2 0.55"], {"sequence_length": 2, "enable_timestamps": True}),
        (["0.13 0.27", "0.1 0.55"], {**LARGE, "file_list_rounding": "start_down_end_up"}),
        (["0.13 0.27", "0.1 0.55"], {**LARGE, "file_list_rounding": "start_up_end_down"}),
        (["0.13 0.27", "0.1 0.55"], {**LARGE, "file_list_rounding": "all_up", "file_list_include_end": False}),
        (["0.13 0.27", "0.1 0.55"], {**LARGE, "file_list_rounding": "all_down"}),
        (["3 9", "3 15"], {"file_list_format": "frames", "sequence_length": 5, "uniform_sample": True}),
        (["3 9", "0 2"], {"file_list_format": "frames", "sequence_length": 2, "stride": 3, "step": 1}),
    ],
    ids=str,
)
def test_parts_equal_dali(videos, oracle, tmp_path, parts, arguments):
    files = (videos["even"], videos["uneven"])
    listed = tmp_path / "list.txt"
    listed.write_text(
        "".join(f"{path} {label} {part}\n\n" for label, (path, part) in enumerate(zip(files, parts, strict=True)))
    )
    arguments = {"file_list": str(listed), "enable_frame_num": "sequence", **arguments}
    assert_equal(read(3, **arguments), read_by_dali(oracle, 3, **arguments))


def test_class_folders_equal_dali(videos, oracle, tmp_path):
    for folder, key in (("b", "even"), ("a", "uneven")):
        (tmp_path / folder).mkdir()
        shutil.copy(videos[key], tmp_path / folder)
    arguments = {"file_root": str(tmp_path), "sequence_length": 10}
    assert_equal(read(3, **arguments), read_by_dali(oracle, 3, **arguments))


@pytest.mark.parametrize("key", ["open", "closed", "avi", "uneven"])
def test_shuffled_sequences_of_every_form(videos, key):
    expected = plain_frames(videos[key])
    arguments = {"sequence_length": 3, "step": 2, "enable_frame_num": True, "random_shuffle": True}
    size, batches = read(4, 5, filenames=[str(videos[key])], **arguments)
    assert size == (len(expected) - 3) // 2 + 1
    seen = set()
    for clips, starts in batches:
        for clip, (start,) in zip(clips, starts, strict=True):
            np.testing.assert_array_equal(clip, expected[start : start + 3])
            seen.add(int(start))
    assert len(seen) == min(size, 20)


def test_shards_share_the_sequences(videos):
    starts = []
    for shard in range(3):
        arguments = {"num_shards": 3, "shard_id": shard, "stick_to_shard": True, "enable_frame_num": True}
        _, batches = read(2, 2, filenames=[str(videos["even"])], sequence_length=3, pad_last_batch=True, **arguments)
        starts += [int(start[0]) for _, batch in batches for start in batch]
    assert sorted(set(starts)) == list(range(0, 30, 3))


def test_seconds_are_exact(videos, tmp_path):
    """0.24 s is a frame of the uneven video, whichever way is rounded; as float32 it would lie before it."""
    listed = tmp_path / "list.txt"
    listed.write_text(f"{videos['uneven']} 0 0.2 0.24\n")
    for rounding in ("start_down_end_up", "start_up_end_down", "all_up", "all_down"):
        arguments = {"file_list_rounding": rounding, "enable_timestamps": True, "sequence_length": 2}
        _, [[_, _, seconds]] = read(1, 1, file_list=str(listed), **arguments)
        np.testing.assert_allclose(seconds[0], np.array(UNEVEN_TIMES_MS[3:5]) / 1000)


def test_part_without_end(videos, tmp_path):
    listed = tmp_path / "list.txt"
    listed.write_text(f"{videos['even']} 0 25\n")
    arguments = {"file_list": str(listed), "file_list_format": "frames", "enable_frame_num": "sequence"}
    size, [[_, _, numbers]] = read(1, 1, sequence_length=5, **arguments)
    assert size == 1
    np.testing.assert_array_equal(numbers[0], range(25, 30))


def test_planes(videos):
    arguments = {"filenames": [str(videos["open"])], "sequence_length": 4, "image_type": types.YCbCr}
    _, [[clips]] = read(1, 1, **arguments)
    np.testing.assert_array_equal(clips[0], plain_frames(videos["open"], "yuv444p")[:4])


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"sequence_length": 0}, ArgumentValueError, "sequence_length"),
        ({"stride": -1}, ArgumentValueError, "stride"),
        ({"pad_mode": "zeros"}, ArgumentValueError, "constant"),
        ({"fill_value": [1, 2]}, ArgumentValueError, "fill_value"),
        ({"image_type": types.GRAY}, ArgumentValueError, "types.YCbCr"),
        ({"enable_frame_num": "all"}, ArgumentValueError, "sequence"),
        ({"labels": [1, 2]}, ArgumentValueError, "2 labels for 1"),
        ({"file_root": "."}, ArgumentValueError, "filenames and file_root"),
        ({"filenames": []}, ArgumentValueError, "none"),
        ({"sequence_length": 31}, ReaderError, "need 31 frames; the longest has 30"),
        ({"file_list_rounding": "up"}, ArgumentValueError, "all_up"),
        ({"file_list_format": "seconds"}, ArgumentValueError, "timestamps"),
    ],
    ids=str,
)
def test_mistakes(videos, arguments, kind, message):
    with pytest.raises(kind, match=message):
        read(1, **{"filenames": [str(videos["even"])], "sequence_length": 2, **arguments})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{video}", "line 2: expected `path label"),
        ("{video} cat", "integer label"),
        ("{video} -1", "label must be in"),
        ("{video} 1 a", "start and end must be numbers"),
        ("{video} 1 30 40", "has 30 frames"),
        ("{video} 1 9 5", "no part with start 9 and end 5"),
        ("{video} 1 -40", "start -40"),
        ("/no/such.mp4 1", "cannot read the video '/no/such.mp4'"),
    ],
)
def test_bad_lines_are_named(videos, tmp_path, line, message):
    listed = tmp_path / "list.txt"
    listed.write_text(f"{videos['even']} 0\n" + line.format(video=videos["even"]) + "\n")
    with pytest.raises(ReaderError, match=message):
        read(1, file_list=str(listed), file_list_format="frames", sequence_length=2)


def test_empty_parts_are_left_out_with_a_warning(videos, tmp_path):
    listed = tmp_path / "list.txt"
    listed.write_text(f"{videos['even']} 0 5 5\n{videos['even']} 1 0 2\n")
    with pytest.warns(UserWarning, match="line 1: start and end are the same frame"):
        size, [[_, labels]] = read(1, 1, file_list=str(listed), file_list_format="frames", sequence_length=2)
    assert (size, int(labels[0][0])) == (1, 1)


@pytest.mark.parametrize("contents", [b"", b"no video", bytes(10000)])
def test_no_video_is_named(videos, tmp_path, contents):
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(contents)
    with pytest.raises(ReaderError, match=r"bad\.mp4"):
        read(1, filenames=[str(videos["even"]), str(bad)], sequence_length=2)


def test_damage_is_named_and_the_pipeline_continues(videos, tmp_path):
    whole = videos["closed"].read_bytes()
    torn = tmp_path / "torn.mp4"
    # The list of packets, at the end, stays; the images of the second half are gone.
    start = whole.index(b"mdat") + 4
    half = start + (whole.index(b"moov") - start) // 2
    torn.write_bytes(whole[:half] + bytes(whole.index(b"moov") - 4 - half) + whole[whole.index(b"moov") - 4 :])

    @dalify.pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def graph():
        return dalify.fn.experimental.readers.video(filenames=[str(torn), str(videos["closed"])], sequence_length=10)

    pipe = graph()
    expected = plain_frames(videos["closed"])
    (clips,) = pipe.run()
    np.testing.assert_array_equal(clips.at(0)[:5], expected[:5])
    for _ in range(2):
        with pytest.raises(DecodeError, match=r"torn\.mp4"):
            pipe.run()
    (clips,) = pipe.run()
    np.testing.assert_array_equal(clips.at(0), expected[:10])
    pipe.close()
