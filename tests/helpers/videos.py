"""Videos that tests generate, and a simple reference decoder."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

UNEVEN_TIMES_MS = [0, 40, 80, 200, 210, 240, 300, 500, 520, 600, 700, 710, 720, 800, 1000, 1001, 1100, 1150, 1300, 1500]
_X264_OPEN = {"x264-params": "open-gop=1:keyint=8:min-keyint=4:bframes=3:b-pyramid=normal"}
_QUICK = {"deadline": "realtime", "cpu-used": "8"}

# File name -> codec and options: groups of pictures (GOP) that are closed, open, long, and with intra refresh.
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "closed.mp4": ("libx264", {"gop": 8, "bframes": 2}),
    "open.mp4": ("libx264", {"options": _X264_OPEN}),
    "open.mkv": ("libx264", {"options": _X264_OPEN}),
    "open.ts": ("libx264", {"options": _X264_OPEN}),
    "bare.h264": ("libx264", {"gop": 8, "bframes": 2}),
    "refreshed.mkv": ("libx264", {"options": {"x264-params": "intra-refresh=1:keyint=10:bframes=2"}}),
    "long.mp4": ("libx264", {"gop": 250, "bframes": 4}),
    "hevc.mp4": ("libx265", {"options": {"x265-params": "keyint=10:bframes=3:log-level=none"}}),
    "mpeg4.avi": ("mpeg4", {"gop": 6, "bframes": 2}),
    "vp8.webm": ("libvpx", {"gop": 8, "options": {"auto-alt-ref": "1", "lag-in-frames": "12", "deadline": "good"}}),
    "vp9.webm": ("libvpx-vp9", {"gop": 8, "options": _QUICK}),
    "motion.mp4": ("mjpeg", {"pixels": "yuvj420p"}),
    "uneven.mp4": ("libx264", {"gop": 5, "bframes": 2, "times_ms": UNEVEN_TIMES_MS}),
    "uneven.webm": ("libvpx-vp9", {"gop": 5, "times_ms": UNEVEN_TIMES_MS, "options": _QUICK}),
}


def drawn_frames(count: int, height: int = 48, width: int = 64) -> list[np.ndarray]:
    """Return RGB frames with a moving pattern and noise, so that no frame can be derived from adjacent ones."""
    rng = np.random.default_rng(count)
    rows, columns = np.mgrid[:height, :width]
    frames = []
    for number in range(count):
        channels = [columns * 2 + number * 5, rows * 3 + number * 3, rows + columns + number * 7]
        frame = (np.stack(channels, -1) % 256).astype(np.uint8)
        left = 2 * number % (width - 16)
        frame[8:24, left : left + 16] = rng.integers(0, 256, (16, 16, 3))
        frames.append(frame)
    return frames


def write_video(
    path: Path,
    codec: str,
    *,
    count: int = 30,
    size: tuple[int, int] = (48, 64),
    gop: int | None = None,
    bframes: int | None = None,
    pixels: str = "yuv420p",
    times_ms: Sequence[int] | None = None,
    options: dict[str, str] | None = None,
    color: tuple[int, int] | None = None,
) -> Path:
    """Encode a video of drawn frames.

    Args:
        path: path of the file; its extension determines the container.
        codec: name of FFmpeg's encoder; the test is skipped if this FFmpeg does not have it.
        count: number of frames.
        size: height and width.
        gop: maximum distance of key frames.
        bframes: maximum number of consecutive B-frames.
        pixels: FFmpeg's name of the pixel format.
        times_ms: time of each frame in milliseconds; by default at intervals of 40 ms.
        options: options of the encoder.
        color: FFmpeg's numbers of the color matrix and the range, stored in the file.
    """
    av: Any = pytest.importorskip("av", reason="videos need PyAV")
    try:
        av.codec.Codec(codec, "w")
    except av.codec.codec.UnknownCodecError:
        pytest.skip(f"this FFmpeg has no encoder {codec}")
    times_ms = times_ms or range(0, 40 * count, 40)
    # Timestamps in frames if intervals are equal: some containers store every interval without a frame.
    unit = Fraction(1, 25) if isinstance(times_ms, range) else Fraction(1, 1000)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25, options=options or {})
        stream.height, stream.width = size
        stream.pix_fmt = pixels
        context = stream.codec_context
        context.time_base = unit
        if gop is not None:
            context.gop_size = gop
        if bframes is not None:
            context.max_b_frames = bframes
        if color is not None:
            context.colorspace, context.color_range = color
        for image, time_ms in zip(drawn_frames(len(times_ms), *size), times_ms, strict=True):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format=pixels)
            frame.pts, frame.time_base = int(Fraction(time_ms, 1000) / unit), unit
            if color is not None:
                frame.colorspace, frame.color_range = color
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def plain_frames(path: Path, image_type: str = "rgb24") -> np.ndarray:
    """Decode all frames of a video, and convert each with a new converter: ``[F, H, W, 3]``."""
    av: Any = pytest.importorskip("av", reason="videos need PyAV")
    flags = av.video.reformatter.Interpolation
    settings = {
        "interpolation": flags.BILINEAR | flags.FULL_CHR_H_INT | flags.ACCURATE_RND,
        "src_colorspace": "ITU601",
        "dst_colorspace": "ITU601",
        "threads": 1,
    }
    with av.open(str(path)) as container:
        frames = [frame.reformat(format=image_type, **settings) for frame in container.decode(video=0)]
    return np.stack([frame.to_ndarray(channel_last=True) for frame in frames])
