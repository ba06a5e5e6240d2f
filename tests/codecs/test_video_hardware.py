"""Hardware decoders return the frames of the host. Without such hardware, a stand-in returns its formats."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import ArgumentValueError, DecodeError, DeviceError
from dalify.base.optional import torch
from dalify.codecs import video as codecs_video
from dalify.codecs import video_hardware
from dalify.codecs.video import Video
from dalify.codecs.video_frames import FrameConverter
from dalify.data.dtypes import DALIImageType
from tests.helpers.videos import FORMS, plain_frames, write_video

av = pytest.importorskip("av", reason="videos need PyAV")

VARIABLE = "DALIFY_VIDEO_DECODER"
# What NVDEC returns instead of the formats of the host: the two chroma values of a pixel are adjacent.
HARDWARE_FORMATS = {"yuv420p": "nv12", "yuvj420p": "nv12", "yuv420p10le": "p010le"}


class StandIn:
    """A decoder of the host that returns frames in the formats of hardware decoders."""

    def __init__(self, codec: Any, formats: set[str]) -> None:
        object.__setattr__(self, "codec", codec)
        object.__setattr__(self, "formats", formats)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.codec, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.codec, name, value)

    def decode(self, packet: Any) -> Iterator[Any]:
        for frame in self.codec.decode(packet):
            is_full = frame.format.name.startswith("yuvj") or int(frame.color_range) == 2
            value_range = 2 if is_full else int(frame.color_range)
            known = {"src_color_range": value_range, "dst_color_range": value_range} if value_range else {}
            found = frame.reformat(format=HARDWARE_FORMATS[frame.format.name], **known)
            found.color_range = value_range
            found.pts = frame.pts
            self.formats.add(found.format.name)
            yield found


@pytest.fixture
def formats(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Select a hardware decoder, or a stand-in; the formats of the frames that the stand-in has returned."""
    found: set[str] = set()
    if torch.cuda.is_available():
        monkeypatch.setenv(VARIABLE, "cuda")
        return found
    opened = Video._open

    def open_with_stand_in(self: Video) -> None:
        opened(self)
        self._codec = StandIn(self._codec, found)

    monkeypatch.setattr(Video, "_open", open_with_stand_in)
    return found


FILES: dict[str, tuple[str, dict[str, Any]]] = {
    **FORMS,
    "full_range.mp4": ("libx264", {"color": (1, 2)}),
    "ten_bits.mp4": ("libx264", {"pixels": "yuv420p10le"}),
}


@pytest.mark.gpu
@pytest.mark.parametrize("form", FILES)
@pytest.mark.parametrize("image_type", [DALIImageType.RGB, DALIImageType.YCbCr], ids=["rgb", "ycbcr"])
def test_any_frame_at_any_time(form, image_type, tmp_path, formats):
    codec, options = FILES[form]
    path = write_video(tmp_path / form, codec, **options)
    expected = plain_frames(path, "rgb24" if image_type == DALIImageType.RGB else "yuv444p")
    video, converter = Video(str(path)), FrameConverter(image_type)
    out = np.empty(expected.shape[1:], np.uint8)
    draw = random.Random(5)
    for _ in range(12):
        numbers = sorted(draw.sample(range(len(expected)), 3))
        for number, frame in video.frames(numbers):
            converter.fill(out, frame)
            np.testing.assert_array_equal(out, expected[number])
    video.close()
    assert torch.cuda.is_available() or formats & {"nv12", "p010le"}


def clips(path: Path) -> Any:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipe():
        return fn.readers.video(filenames=[str(path)], sequence_length=4)

    return pipe()


def whole_video(path: Path) -> Any:
    data = np.fromfile(path, np.uint8)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipe():
        return fn.decoders.video(fn.external_source(source=lambda: [data]), sequence_length=4)

    return pipe()


@pytest.mark.parametrize("define", [clips, whole_video])
@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        # FFmpeg has such devices, but no decoder for them.
        ("drm", DeviceError, r"selects 'drm', but this hardware cannot decode videos \(.+\)"),
        ("cudda:1", ArgumentValueError, "is 'cudda:1'. Did you mean 'cuda'\\?"),
    ],
)
def test_hardware_that_cannot_be_used(define, value, kind, message, tmp_path, monkeypatch):
    known = ["cuda", "drm"]
    monkeypatch.setattr(av.codec.hwaccel, "hwdevices_available", lambda: known)
    path = write_video(tmp_path / "clip.mp4", "libx264", count=8)
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(kind, match=message) as info:
        define(path).run()
    assert "test_video_hardware.py:" in str(info.value)
    assert "unset the variable" in info.value.hint.lower()
    monkeypatch.setenv(VARIABLE, "host")
    assert define(path).run()[0].at(0).shape == (4, 48, 64, 3)


class Failing(StandIn):
    """Hardware that fails after some packets."""

    def decode(self, packet: Any) -> Iterator[Any]:
        if packet is None or packet.pts > packet.time_base.denominator // 2:
            raise av.error.ExternalError(-542398533, "Generic error in an external library")
        return super().decode(packet)


def test_videos_for_which_the_hardware_fails_are_decoded_by_the_host(tmp_path, monkeypatch):
    path = write_video(tmp_path / "clip.mp4", "libx264", count=30)
    expected = plain_frames(path)
    opened, hardware, formats = Video._open, object(), set[str]()

    def open_with_failing(self: Video) -> None:
        with monkeypatch.context() as patches:
            patches.setattr(codecs_video, "hardware_decoder", lambda: None)
            opened(self)
        if self._uses_hardware:
            self._codec = Failing(self._codec, formats)

    monkeypatch.setattr(Video, "_open", open_with_failing)
    monkeypatch.setattr(codecs_video, "hardware_decoder", lambda: hardware)
    video, converter = Video(str(path)), FrameConverter()
    out = np.empty(expected.shape[1:], np.uint8)
    for _ in range(2):
        for number, frame in video.frames([2, 5, 20, 29]):
            converter.fill(out, frame)
            np.testing.assert_array_equal(out, expected[number])
    assert formats == {"nv12"}
    damaged = path.read_bytes()[: path.stat().st_size // 2]
    with pytest.raises(DecodeError):
        Video(damaged).table  # noqa: B018 - reads the packets


def test_hardware_that_fails_to_open_a_video(tmp_path, monkeypatch):
    """A good file is not a bad sample, which on_error='skip' would replace."""
    monkeypatch.setattr(codecs_video, "hardware_decoder", lambda: "not an HWAccel")

    class Opening:
        def __getattr__(self, name: str) -> Any:
            return getattr(av, name)

        def open(self, *arguments: Any, hwaccel: Any, **options: Any) -> Any:
            if hwaccel:
                raise av.error.MemoryError(12, "Cannot allocate memory")
            return av.open(*arguments, **options)

    monkeypatch.setattr(codecs_video, "av", Opening())
    path = write_video(tmp_path / "clip.mp4", "libx264", count=8)
    with pytest.raises(DeviceError, match="this hardware cannot decode videos \\(Cannot allocate memory\\)"):
        Video(str(path))
    with pytest.raises(DecodeError, match="cannot open the video"):
        Video(b"no video")


@pytest.fixture
def hardware(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Hardware named `cuda` that opens videos as the host does; its arguments, and what opened each video."""
    made: list[tuple[Any, ...]] = []
    opened: list[str] = []

    class Hardware:
        def __init__(self, kind: str, device: str | None, **options: Any) -> None:
            made.append((kind, device, options))

        def create(self, codec: Any) -> None:
            assert codec.name == "h264"

    class Opening:
        """PyAV, except that it opens videos without the hardware."""

        def __getattr__(self, name: str) -> Any:
            return getattr(av, name)

        def open(self, *arguments: Any, hwaccel: Any, **options: Any) -> Any:
            opened.append(type(hwaccel).__name__)
            return av.open(*arguments, **options)

    hwaccel = SimpleNamespace(HWAccel=Hardware, hwdevices_available=lambda: ["cuda"])
    codec = SimpleNamespace(hwaccel=hwaccel, Codec=av.codec.Codec)
    monkeypatch.setattr(video_hardware, "av", SimpleNamespace(codec=codec, FFmpegError=av.FFmpegError))
    monkeypatch.setattr(codecs_video, "av", Opening())
    video_hardware._opened.cache_clear()
    yield SimpleNamespace(made=made, opened=opened)
    video_hardware._opened.cache_clear()


def test_the_selected_device_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hardware: Any) -> None:
    monkeypatch.setenv(VARIABLE, "cuda:1")
    path = write_video(tmp_path / "clip.mp4", "libx264", count=8)
    with_hardware = [Video(str(path)), Video(path.read_bytes())]
    assert hardware.made == [("cuda", "1", {"allow_software_fallback": True})]
    assert hardware.opened == ["Hardware", "Hardware"]
    for video in with_hardware:
        video.close()


@pytest.mark.parametrize("name", ["readers.video", "decoders.video"])
@pytest.mark.parametrize(("value", "used"), [("cuda", "cuda:1"), ("cuda:0", "cuda:0"), ("host", "the host")])
def test_the_device_of_the_pipeline_decodes_videos(
    value: str, used: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hardware: Any
) -> None:
    """Each process of a training with several GPUs would otherwise use the first one."""
    path = write_video(tmp_path / "clip.mp4", "libx264", count=8)

    @pipeline_def(batch_size=1, num_threads=1, device_id=1)
    def pipeline() -> Any:
        if name == "readers.video":
            return fn.readers.video(filenames=[str(path)], sequence_length=4, device="cpu")
        return fn.decoders.video(fn.external_source(lambda: [np.fromfile(path, np.uint8)]))

    monkeypatch.setenv(VARIABLE, "host")
    (expected,) = pipeline().run()
    monkeypatch.setenv(VARIABLE, value)
    hardware.opened.clear()
    pipe = pipeline()
    (found,) = pipe.run()
    np.testing.assert_array_equal(np.asarray(found.at(0)), np.asarray(expected.at(0)))
    assert [f"{kind}:{number}" for kind, number, _ in hardware.made] == ([] if value == "host" else [used])
    assert {*hardware.opened} == {"NoneType" if value == "host" else "Hardware"}
    assert f"{name}(cpu) at test_video_hardware.py" in pipe.explain()
    assert f"videos are decoded by {used}" in pipe.explain()
