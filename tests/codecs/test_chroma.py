"""The compiled conversion compared with FFmpeg's converter, on planes of noise and of extremes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dalify.codecs.chroma import FULL_RANGE, STUDIO_RANGE, planes_to_rgb
from dalify.codecs.video_frames import FrameConverter

av: Any = pytest.importorskip("av", reason="videos need PyAV")


def noise(pixels: str, height: int, width: int, seed: int) -> Any:
    """Return a frame with a third of the rows black, white, or of invalid colors."""
    rng = np.random.default_rng(seed)
    frame = av.VideoFrame(width, height, pixels)
    for plane in frame.planes:
        rows = rng.integers(0, 256, (plane.height, plane.line_size), dtype=np.uint8)
        rows[::3] = rng.choice(np.array([0, 16, 128, 235, 255], np.uint8), rows[::3].shape)
        plane.update(rows.tobytes())
    return frame


def by_ffmpeg(frame: Any) -> np.ndarray:
    flags = av.video.reformatter.Interpolation
    return frame.reformat(
        format="rgb24",
        src_colorspace="ITU601",
        dst_colorspace="ITU601",
        interpolation=flags.BILINEAR | flags.FULL_CHR_H_INT | flags.ACCURATE_RND,
        threads=1,
    ).to_ndarray()


@pytest.mark.parametrize("pixels", ["yuv420p", "yuv422p", "yuv444p", "yuvj420p", "yuvj422p", "yuvj444p"])
@pytest.mark.parametrize("size", [(16, 16), (18, 34), (48, 62), (130, 258)])
def test_between_pixels(pixels, size):
    frame = noise(pixels, *size, seed=size[0])
    out = np.empty((size[0], 3 * size[1]), np.uint8)
    planes = [np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[:, : plane.width] for plane in frame.planes]
    planes_to_rgb(out, *planes, FULL_RANGE if "j" in pixels else STUDIO_RANGE, False)
    np.testing.assert_array_equal(out.reshape(*size, 3), by_ffmpeg(frame))


@pytest.mark.parametrize(
    "pixels", ["yuv420p", "yuv444p", "yuvj422p", "yuv411p", "yuv420p10le", "gray", "nv12", "rgb24"]
)
@pytest.mark.parametrize("size", [(48, 64), (47, 63), (1, 1), (4, 6)])
def test_a_converter_equals_ffmpeg_for_every_frame(pixels, size):
    converter = FrameConverter()
    out = np.empty((*size, 3), np.uint8)
    flat = av.VideoFrame(size[1], size[0], pixels)
    for plane in flat.planes:
        plane.update(bytes([128]) * plane.buffer_size)
    for frame in (flat, noise(pixels, *size, 1), flat, noise(pixels, *size, 2), noise(pixels, *size, 3)):
        converter.fill(out, frame)
        np.testing.assert_array_equal(out, by_ffmpeg(frame))
