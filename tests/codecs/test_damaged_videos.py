"""Hostile and damaged videos: errors of the sample, in bounded time and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import eager, fn, pipeline_def
from dalify.base.errors import DalifyError, DecodeError, IndexingError, LimitError
from dalify.base.limits import Limits, applied
from dalify.codecs.video import Video
from tests.helpers.videos import FORMS, write_video

av = pytest.importorskip("av", reason="videos need PyAV")


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("videos")
    names = ("closed.mp4", "open.mkv", "mpeg4.avi", "vp8.webm")
    written = {name: write_video(folder / name, FORMS[name][0], count=12, **FORMS[name][1]) for name in names}
    return {name: Path(path).read_bytes() for name, path in written.items()}


@pytest.mark.parametrize("name", ["closed.mp4", "open.mkv", "mpeg4.avi", "vp8.webm"])
def test_damage_is_a_named_error_or_gives_frames(videos: dict[str, bytes], name: str) -> None:
    random = np.random.default_rng(0)
    data = np.frombuffer(videos[name], np.uint8)
    for _ in range(80):
        damaged = data.copy()
        places = random.integers(0, data.size if random.random() < 0.5 else 700, 4)
        damaged[places % data.size] = random.integers(0, 256, 4)
        damaged = damaged[: random.integers(1, 2 * data.size)]
        try:
            frames = eager.decoders.video(damaged)
        except (DecodeError, IndexingError) as error:
            assert "fn.decoders.video" in str(error)  # noqa: PT017 - either outcome is right
        else:
            assert frames.shape[1:] == (48, 64, 3)


def _frame(video: Video, number: int) -> Any:
    """Return a frame, or the error."""
    try:
        ((_, frame),) = video.frames([number])
    except DecodeError as error:
        return str(error)
    return frame.to_ndarray(format="rgb24").tobytes()


@pytest.mark.parametrize("form", ["mpeg4.avi", "mjpeg.avi", "closed.mp4", "open.mkv"])
def test_frames_do_not_depend_on_the_order_in_which_they_are_decoded(tmp_path: Path, form: str) -> None:
    """FFmpeg conceals damage with what it has decoded before."""
    codec, options = ("mjpeg", {"pixels": "yuvj420p"}) if form == "mjpeg.avi" else FORMS[form]
    data = np.frombuffer(Path(write_video(tmp_path / form, codec, count=18, **options)).read_bytes(), np.uint8)
    random = np.random.default_rng(3)
    differ = 0
    for _ in range(12):
        damaged = data.copy()
        damaged[random.integers(data.size // 10, data.size, 10)] = random.integers(0, 256, 10)
        contents = damaged.tobytes()
        try:
            numbers = range(Video(contents).table.count)
        except DecodeError:
            continue
        alone = [_frame(Video(contents), number) for number in numbers]
        for order in (numbers, reversed(numbers), random.permutation(len(numbers)).tolist()):
            video = Video(contents)
            for number in order:
                assert _frame(video, number) == alone[number]
        differ += alone != [_frame(Video(data.tobytes()), number) for number in numbers]
    assert differ > 2  # otherwise, nothing was damaged


def test_frame_sizes_are_limited(videos: dict[str, bytes]) -> None:
    for data in videos.values():
        with applied(Limits(max_image_pixels=48 * 64)):
            assert Video(data).height == 48
        with applied(Limits(max_image_pixels=48 * 64 - 1)), pytest.raises(DalifyError):
            Video(data)


def test_frames_larger_than_declared_are_limited(tmp_path: Path) -> None:
    """Motion JPEG: each frame declares its own size."""
    small = write_video(tmp_path / "small.avi", "mjpeg", count=3, pixels="yuvj420p")
    data = bytearray(Path(small).read_bytes())
    place = data.rindex(b"\xff\xc0") + 5
    data[place : place + 4] = b"\x40\x00\x40\x00"  # the last frame: 16384 x 16384
    with applied(Limits(max_image_pixels=1 << 20)), pytest.raises(DecodeError):
        eager.decoders.video(np.frombuffer(bytes(data), np.uint8))


def test_sequences_are_limited_before_their_numbers_are_made(videos: dict[str, bytes]) -> None:
    data = np.frombuffer(videos["closed.mp4"], np.uint8)
    for arguments in ({"sequence_length": 2**31 - 1}, {"end_frame": 2**31 - 1}):
        with pytest.raises(LimitError, match="max_sample_bytes"):
            eager.decoders.video(data, **arguments)
        assert len(eager.decoders.video(data, pad_mode="none", **arguments)) == 12


def test_readers_limit_their_sequences(videos: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(videos["closed.mp4"])

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, limits={"max_sample_bytes": 8 * 48 * 64 * 3 - 1})
    def pipeline(length: int) -> Any:
        return fn.readers.video(filenames=[str(path)], sequence_length=length)

    pipeline(7).run()
    with pytest.raises(LimitError, match="the sequence of shape 8 x 48 x 64 x 3"):
        pipeline(8).run()


@pytest.mark.parametrize("as_file", [False, True])
def test_lists_of_files_are_not_videos(videos: dict[str, bytes], tmp_path: Path, as_file: bool) -> None:
    (tmp_path / "clip.mp4").write_bytes(videos["closed.mp4"])
    path = tmp_path / "clip.mp4"
    for text in (
        f"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:9,\n{path}\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile clip.mp4\n",
    ):
        (tmp_path / "list.m3u8").write_text(text)
        with pytest.raises(DecodeError, match="cannot open the video"):
            Video(str(tmp_path / "list.m3u8") if as_file else text.encode())


def test_metadata_need_not_be_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    with av.open(str(path), "w") as container:
        container.metadata["title"] = "ABCDEFGH"
        stream = container.add_stream("mpeg4", 10)
        stream.width = stream.height = 32
        for packet in (*stream.encode(av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8))), *stream.encode()):
            container.mux(packet)
    data = path.read_bytes()
    assert b"ABCDEFGH" in data
    assert Video(data.replace(b"ABCDEFGH", b"AB\xff\xfe\x80FGH")).table.count == 1


@pytest.mark.parametrize("error", [av.error.InvalidDataError(1, "x"), ValueError("x"), IndexError("x"), TypeError()])
def test_any_exception_of_the_library_means_a_damaged_video(
    videos: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    video = Video(videos["closed.mp4"])

    def fails(self: Any, wanted: Any) -> Any:
        raise error

    monkeypatch.setattr(Video, "_decoded", fails)
    with pytest.raises(DecodeError, match="the video is damaged"):
        list(video.frames([0]))


def test_a_search_for_frames_that_never_come_ends(videos: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dalify.codecs.video._FREE_PACKETS", 3)
    monkeypatch.setattr("dalify.codecs.video._PACKETS_PER_PACKET", 0)
    video = Video(videos["closed.mp4"])
    with pytest.raises(DecodeError, match="not at their declared positions"):
        list(video.frames(range(video.table.count)))


def test_a_video_that_is_read_from_a_file_does_not_stay_in_memory(videos: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "clip.mkv"
    path.write_bytes(videos["open.mkv"])
    video = Video(str(path))
    assert video.table.count == 12
    assert video._cached_packets is None


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_bad_videos_are_skipped_and_replaced(videos: dict[str, bytes], tmp_path: Path, policy: str) -> None:
    paths = [tmp_path / f"{number}.mp4" for number in range(8)]
    for path in paths:
        path.write_bytes(videos["closed.mp4"])
    paths[2].write_bytes(videos["closed.mp4"][:500])
    paths[5].write_bytes(b"")

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, on_error=policy)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(files=[str(path) for path in paths])
        return fn.decoders.video(encoded, start_frame=2, sequence_length=5, stride=2)

    pipe = pipeline()
    batches = [np.asarray(frames) for _ in range(2) for frames in pipe.run()[0]]
    # What takes the place of one may be the other.
    assert {sample.source for sample in pipe.bad_samples()} == {str(paths[2]), str(paths[5])}
    assert [len(frames) for frames in batches] == [5] * 8
    is_black = [not frames.any() for frames in batches]
    assert is_black == ([False] * 8 if policy == "skip" else [number in (2, 5) for number in range(8)])
