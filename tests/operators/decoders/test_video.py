"""fn.decoders.video compared with plain decoding and the real DALI, whose CPU decoder supports VP8, VP9 and MJPEG."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

import dalify
from dalify.base.errors import ArgumentValueError, DecodeError, DTypeError, IndexingError
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import Each, run_dali
from tests.helpers.videos import FORMS, plain_frames, write_video


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("videos")
    names = ("vp9.webm", "vp8.webm", "motion.mp4", "uneven.webm", "open.mp4", "closed.mp4")
    return {name: write_video(folder / name, FORMS[name][0], **FORMS[name][1]) for name in names}


def contents(path: Path) -> np.ndarray:
    return np.frombuffer(path.read_bytes(), np.uint8)


def test_whole_videos(videos, device):
    got = run_dalify("decoders.video", [contents(path) for path in videos.values()], device=device)
    for sample, path in zip(got, videos.values(), strict=True):
        np.testing.assert_array_equal(sample, plain_frames(path))


@pytest.mark.parametrize("name", ["vp9.webm", "vp8.webm", "motion.mp4", "uneven.webm"])
def test_bit_identical_to_dali(videos, name):
    data = [contents(videos[name])]
    np.testing.assert_array_equal(run_dalify("decoders.video", data)[0], run_dali("decoders.video", data)[0])


@pytest.mark.parametrize(
    "given",
    [
        {"pixels": "yuv422p"},
        {"pixels": "yuv444p"},
        {"size": (47, 63)},
        {"color": (1, 1)},  # BT.709, which DALI does not look at
        {"color": (1, 2)},  # the same, in the full range, which it does
    ],
    ids=str,
)
def test_colors_equal_dali(given, tmp_path):
    codec, options = FORMS["vp9.webm"]
    data = [contents(write_video(tmp_path / "film.webm", codec, count=4, **{**options, **given}))]
    np.testing.assert_array_equal(run_dalify("decoders.video", data)[0], run_dali("decoders.video", data)[0])


SELECTIONS = [
    {"frames": [0, 5, 29, 5]},
    {"frames": [3, 31]},
    {"frames": [50, 3], "pad_mode": "edge"},
    {"frames": [50, 3], "pad_mode": "reflect"},
    {"frames": [50, 3], "pad_mode": "symmetric"},
    {"start_frame": 5},
    {"start_frame": 5, "end_frame": 12, "stride": 3},
    {"end_frame": 35},
    {"end_frame": 35, "pad_mode": "none"},
    {"sequence_length": 4},
    {"sequence_length": 133, "pad_mode": "symmetric"},
    {"start_frame": 28, "sequence_length": 4, "fill_value": [1, 2, 3]},
    {"start_frame": 28, "sequence_length": 4, "fill_value": 7},
    {"start_frame": 28, "sequence_length": 4, "pad_mode": "none"},
    {"start_frame": 27, "sequence_length": 10, "stride": 2, "pad_mode": "reflect_101"},
    {"start_frame": 25, "sequence_length": 5, "stride": 3, "pad_mode": "reflect_1001"},
    {"start_frame": 3, "stride": 4, "end_frame": 40, "pad_mode": "repeat"},
    {"stride": 4},
]


@pytest.mark.parametrize("arguments", SELECTIONS, ids=str)
def test_selections_compared_with_dali(videos, arguments):
    data = [contents(videos["vp9.webm"])]
    np.testing.assert_array_equal(
        run_dalify("decoders.video", data, **arguments)[0], run_dali("decoders.video", data, **arguments)[0]
    )


def test_frames_per_sample(videos):
    data = [contents(videos[name]) for name in ("open.mp4", "vp9.webm", "closed.mp4")]
    starts, lengths = [np.array(3), np.array(0), np.array(20)], [np.array(4), np.array(1), np.array(9)]
    got = run_dalify("decoders.video", data, start_frame=Each(starts), sequence_length=Each(lengths))
    for sample, name, start, length in zip(got, ("open.mp4", "vp9.webm", "closed.mp4"), starts, lengths, strict=True):
        np.testing.assert_array_equal(sample, plain_frames(videos[name])[start : start + length])
    lists = [np.array([1, 2], np.int32), np.array([9], np.int32), np.array([5, 0, 5], np.int32)]
    got = run_dalify("decoders.video", data, frames=Each(lists))
    for sample, name, numbers in zip(got, ("open.mp4", "vp9.webm", "closed.mp4"), lists, strict=True):
        np.testing.assert_array_equal(sample, plain_frames(videos[name])[numbers])


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"frames": [31, 3], "pad_mode": "none"}, IndexingError, "frame 31, but the video has 30 frames"),
        ({"frames": [-1]}, IndexingError, "frame -1"),
        ({"start_frame": 30}, IndexingError, "start_frame is 30"),
        ({"start_frame": -1}, IndexingError, "start_frame is -1"),
        (
            {"start_frame": 9, "end_frame": 9},
            ArgumentValueError,
            "end_frame must be greater than start_frame; got 9 and 9",
        ),
        ({"stride": 0}, ArgumentValueError, "stride"),
        ({"stride": -1}, ArgumentValueError, "stride"),
        ({"sequence_length": -2}, ArgumentValueError, "sequence_length"),
        ({"frames": [1], "stride": 2}, ArgumentValueError, "frames and stride are mutually exclusive"),
        ({"sequence_length": 3, "end_frame": 5}, ArgumentValueError, "mutually exclusive"),
        ({"pad_mode": "mirror"}, ArgumentValueError, "reflect_101"),
        ({"fill_value": [1, 2]}, ArgumentValueError, "one per channel"),
        ({"fill_value": 256}, ArgumentValueError, r"in \[0, 255\]"),
    ],
    ids=str,
)
def test_mistakes(videos, arguments, kind, message):
    with pytest.raises(kind, match=message):
        run_dalify("decoders.video", [contents(videos["vp9.webm"])], **arguments)


def test_bad_data_is_named_and_the_pipeline_continues(videos):
    good = contents(videos["open.mp4"])
    batches = iter([[good, good[:2000]], [good, np.zeros(0, np.uint8)], [good, good]])

    @dalify.pipeline_def(batch_size=2, num_threads=2, device_id=None, prefetch_queue_depth=1)
    def graph():
        return dalify.fn.decoders.video(dalify.fn.external_source(source=batches), frames=[7])

    pipe = graph()
    for _ in range(2):
        with pytest.raises(DecodeError, match="cannot open the video") as caught:
            pipe.run()
        assert caught.value.sample == 1
    (clips,) = pipe.run()
    np.testing.assert_array_equal(clips.at(1), plain_frames(videos["open.mp4"])[[7]])
    pipe.close()


def test_only_bytes():
    with pytest.raises(DTypeError, match="uint8"):
        run_dalify("decoders.video", [np.zeros((2, 3), np.float32)])


@pytest.mark.parametrize("length", [1, 9, 5000])
@pytest.mark.parametrize("extents", [(64, 48), (65536, 64), (2**31, 2**31)])
def test_a_blank_video_is_within_the_limit(length: int, extents: tuple[int, int]):
    """The replacement of a damaged video must not fail, whatever the header of the video declares."""
    operator = importlib.import_module("dalify.operators.decoders.video").video
    blank = operator.substitute_function.function(np.zeros(9, np.uint8))
    blank = np.concatenate([blank[:-8], np.array(extents, np.uint32).view(np.uint8)])

    @dalify.pipeline_def(batch_size=1, num_threads=1, limits=dalify.limits.Limits(max_sample_bytes=1 << 20))
    def graph():
        encoded = dalify.fn.external_source(source=lambda: [blank])
        return dalify.fn.decoders.video(encoded, sequence_length=length)

    (clip,) = (np.array(sample) for sample in graph().run()[0])
    assert clip.shape[0] == length
    assert clip.nbytes <= 1 << 20
    assert not clip.any()
    assert length * np.prod(extents, dtype=float) * 3 > 1 << 20 or clip.shape[1:3] == extents
