"""Decoding that starts at any frame of a video gives the same as decoding from the first frame."""

from __future__ import annotations

import contextlib
import errno
import random
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from dalify.base.errors import DecodeError, MissingPackageError
from dalify.base.optional import LazyModule
from dalify.codecs.video import Video
from dalify.codecs.video_frames import FrameConverter
from dalify.codecs.video_index import Division, VideoIndex
from dalify.codecs.video_sequence import FILLED, fill_sequence, pad_numbers
from dalify.data.dtypes import DALIImageType
from tests.helpers.videos import FORMS, UNEVEN_TIMES_MS, plain_frames, write_video

av = pytest.importorskip("av", reason="videos need PyAV")


class Part(NamedTuple):
    """A whole video."""

    path: str
    label: int
    start: Fraction | None = None
    end: Fraction | None = None
    place: str = ""


@pytest.fixture(scope="module", params=FORMS)
def video_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    codec, options = FORMS[request.param]
    return write_video(tmp_path_factory.mktemp("videos") / request.param, codec, **options)


@pytest.mark.parametrize("in_memory", [False, True], ids=["file", "memory"])
def test_any_frame_at_any_time(video_path, in_memory):
    expected = plain_frames(video_path)
    video = Video(video_path.read_bytes() if in_memory else str(video_path))
    assert video.quick_count == video.table.count == len(expected)
    converter = FrameConverter()
    out = np.empty(expected.shape[1:], np.uint8)
    draw = random.Random(3)
    for _ in range(25):
        numbers = sorted(draw.sample(range(len(expected)), draw.randint(1, 4)))
        if draw.random() < 0.4:
            numbers = list(range(numbers[0], min(numbers[0] + 6, len(expected))))
        seen = []
        for number, frame in video.frames(numbers):
            converter.fill(out, frame)
            np.testing.assert_array_equal(out, expected[number])
            seen.append(number)
        assert seen == numbers
    video.close()


def test_a_table_can_be_reused(video_path):
    table = Video(str(video_path)).table
    again = Video(str(video_path), table)
    expected = plain_frames(video_path)
    out = np.empty((3, *expected.shape[1:]), np.uint8)
    fill_sequence(out, again, np.array([17, 3, 17]), [0], FrameConverter())
    np.testing.assert_array_equal(out, expected[[17, 3, 17]])


def test_times(tmp_path):
    codec, options = FORMS["uneven.mp4"]
    table = Video(str(write_video(tmp_path / "uneven.mp4", codec, **options))).table
    np.testing.assert_allclose(table.seconds(np.arange(table.count)), np.array(UNEVEN_TIMES_MS) / 1000)


@pytest.mark.parametrize("pixels", ["yuv420p", "yuv422p", "yuv444p"])
def test_planes_are_luma_and_chroma(pixels, tmp_path):
    path = write_video(tmp_path / "clip.mkv", "libx264", count=3, pixels=pixels)
    video = Video(str(path))
    expected = plain_frames(path, "yuv444p")
    out = np.empty((3, 48, 64, 3), np.uint8)
    fill_sequence(out, video, np.arange(3), [0], FrameConverter(DALIImageType.YCbCr))
    np.testing.assert_array_equal(out, expected)


def test_a_damaged_packet_changes_only_its_own_frames(tmp_path):
    path = write_video(tmp_path / "clip.mp4", "mjpeg", pixels="yuvj420p")
    expected = plain_frames(path)
    with av.open(str(path)) as container:
        place, size = next((packet.pos, packet.size) for packet in list(container.demux())[11:])
    data = bytearray(path.read_bytes())
    data[place : place + size] = bytes(size)
    video = Video(bytes(data))
    out = np.empty((1, 48, 64, 3), np.uint8)
    with pytest.raises(DecodeError, match="damaged"):
        fill_sequence(out, video, np.array([11]), [0], FrameConverter())
    fill_sequence(out, video, np.array([12]), [0], FrameConverter())
    np.testing.assert_array_equal(out[0], expected[12])


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (lambda: av.error.PermissionError(errno.EACCES, "Permission denied"), "cannot read the video: Permission"),
        (lambda: av.error.TimeoutError(errno.ETIMEDOUT, "Connection timed out"), "cannot read the video: Connection"),
        (lambda: OSError(errno.ESTALE, "Stale file handle"), "cannot read the video: Stale file handle"),
        (lambda: av.error.OSError(errno.EIO, "Input/output error"), "the video is damaged: Input/output error"),
        (lambda: av.error.InvalidDataError(1, "Invalid data"), "the video is damaged: Invalid data"),
        (lambda: av.error.MemoryError(errno.ENOMEM, "Cannot allocate memory"), "damaged, or memory is exhausted"),
        (lambda: av.error.DecoderNotFoundError(1, "Decoder not found"), "does not support the video: Decoder not"),
        (lambda: av.error.PatchWelcomeError(1, "Not yet implemented"), "does not support the video: Not yet"),
        (lambda: av.codec.codec.UnknownCodecError("abc"), "does not support the video: abc"),
        (lambda: IndexError("list index out of range"), "the video is damaged: list index"),
    ],
)
def test_other_errors_are_not_decode_errors(error, text, tmp_path, monkeypatch):
    video = Video(str(write_video(tmp_path / "clip.mp4", "mpeg4", count=3)))

    def fail(*_: object) -> None:
        raise error()

    monkeypatch.setattr(video, "_by_timestamps", fail)
    with pytest.raises(DecodeError, match=text) as caught:
        list(video.frames([0]))
    assert caught.value.hint.startswith("Convert the video") is ("does not support" in text)
    video.close()


@pytest.mark.parametrize("form", ["closed.mp4", "open.mkv", "open.ts", "mpeg4.avi", "vp9.webm"])
def test_truncated_files_are_errors_or_shorter(form, tmp_path):
    codec, options = FORMS[form]
    path = write_video(tmp_path / form, codec, **options)
    data = path.read_bytes()
    frames = plain_frames(path)
    whole = 0
    for keep in (0, 10, len(data) // 3, len(data) // 2, 2 * len(data) // 3, len(data) - 7):
        with contextlib.suppress(DecodeError):
            video = Video(data[:keep])
            count = video.table.count
            assert count <= len(frames)
            out = np.empty((48, 64, 3), np.uint8)
            for number, frame in video.frames(range(max(0, count - 3))):
                FrameConverter().fill(out, frame)
                np.testing.assert_array_equal(out, frames[number])
                whole += 1
    assert whole or form == "closed.mp4"  # an MP4 keeps its list of packets at its end


def test_no_video(tmp_path):
    audio = tmp_path / "audio.wav"
    with av.open(str(audio), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    with pytest.raises(DecodeError, match="no video stream"):
        Video(str(audio))
    for data in (b"abc", bytes(5000)):
        with pytest.raises(DecodeError, match="cannot open the video: Invalid data"):
            Video(data)
    with pytest.raises(DecodeError, match=r"cannot open the video: it is empty \(0 bytes\)"):
        Video(b"")
    without_streams = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + b"\0\0\0\x08moov"
    with pytest.raises(DecodeError, match="no video stream; it may be truncated"):
        Video(without_streams)


def test_padding():
    numbers = np.arange(2, 12, 2)  # 2 4 6 8 10, of 7 frames
    expected = {
        "none": [2, 4, 6],
        "constant": [2, 4, 6, FILLED, FILLED],
        "edge": [2, 4, 6, 6, 6],
        "reflect_1001": [2, 4, 6, 5, 3],
        "reflect_101": [2, 4, 6, 4, 2],
    }
    for mode, wanted in expected.items():
        np.testing.assert_array_equal(pad_numbers(numbers, 7, mode), wanted)
    for mode in ("edge", "reflect_1001", "reflect_101"):
        np.testing.assert_array_equal(pad_numbers(np.arange(5), 1, mode), np.zeros(5))


@pytest.mark.parametrize(("mode", "reference"), [("reflect_1001", "symmetric"), ("reflect_101", "reflect")])
def test_reflections_equal_numpy(mode, reference):
    for count in (2, 3, 7):
        expected = np.pad(np.arange(count), (0, 30 - count), reference)
        np.testing.assert_array_equal(pad_numbers(np.arange(30), count, mode), expected)


def test_without_the_package_its_extra_is_named(monkeypatch):
    absent = LazyModule("no_such_package_av", "decoding videos", "dalify[video]")
    monkeypatch.setattr("dalify.codecs.video.av", absent)
    with pytest.raises(MissingPackageError, match=r"dalify\[video\]"):
        Video(b"film")


def test_threads_read_one_index(tmp_path):
    codec, options = FORMS["open.mkv"]
    paths = [write_video(tmp_path / f"{number}.mkv", codec, count=20 + number, **options) for number in range(6)]
    expected = [plain_frames(path) for path in paths]
    index = VideoIndex([Part(str(path), label) for label, path in enumerate(paths)], Division(3, step=2))

    def check(number: int) -> None:
        clip = index[number].read()
        first = int(clip.numbers[0])
        np.testing.assert_array_equal(clip.frames, expected[clip.label][first : first + 3])

    order = list(range(len(index))) * 2
    random.Random(1).shuffle(order)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(check, order))
