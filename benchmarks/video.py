"""Measure the decoding of videos: clips of 16 frames of VP9, the only common codec of DALI's CPU decoder.

Each decoder uses one thread. The video is generated: 360p, moving shapes, a key frame every second.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np

from benchmarks.common import Contender, Options, compare, library, pipelines, run_pipeline

FRAMES = 16
CODECS = {
    "libvpx-vp9": ("vp9.mp4", {"deadline": "realtime", "cpu-used": "8"}),
    "libx264": ("h264.mp4", {"preset": "veryfast", "x264-params": "open-gop=1"}),
}


def make_video(codec: str, options: Options) -> Path:
    """Encode a video unless the file exists."""
    count, height, width = (40, 48, 64) if options.is_smoke else (240, 360, 640)
    name, settings = CODECS[codec]
    path = Path(f"out/{height}p_{name}")
    if path.exists():
        return path
    path.parent.mkdir(exist_ok=True)
    rows, columns = np.mgrid[:height, :width]
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=25, options=settings)
        stream.height, stream.width, stream.pix_fmt = height, width, "yuv420p"
        stream.codec_context.gop_size = 25
        stream.codec_context.time_base = Fraction(1, 25)
        for number in range(count):
            wave = 60 * np.sin((columns + 4 * number) / 17) + 60 * np.cos((rows - 3 * number) / 13)
            image = np.stack([128 + wave, 128 - wave, (rows + columns + 5 * number) % 256], -1).astype(np.uint8)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def decoder(lib: SimpleNamespace, path: Path) -> Any:
    """Define a pipeline that decodes a clip from the middle of a video in memory."""
    fn = lib.fn
    data = [np.fromfile(path, np.uint8)] * 4

    @lib.pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def pipeline():
        return fn.decoders.video(fn.external_source(source=lambda: data), start_frame=20, sequence_length=FRAMES)

    return pipeline()


def reader(lib: SimpleNamespace, path: Path, *, shuffled: bool) -> Any:
    """Define a pipeline that reads clips of a video in order or in random order."""
    fn = lib.fn

    @lib.pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=1)
    def pipeline():
        # DALI shuffles in a buffer of decoded clips; with this size it contains all clips of the video.
        return fn.experimental.readers.video(
            filenames=[str(path)], sequence_length=FRAMES, random_shuffle=shuffled, initial_fill=16
        )

    return pipeline()


def main(options: Options) -> None:
    """Time decoding from memory, reading in order, and reading in random order."""
    vp9, h264 = (make_video(codec, options) for codec in CODECS)

    def ours(define: Any, **arguments: Any) -> Contender:
        return Contender("dalify, H.264", lambda: run_pipeline(define(library("dalify"), h264, **arguments)))

    unit = f"clips of {FRAMES} frames/s"
    both = [*pipelines(decoder, path=vp9), ours(decoder)]
    compare("decoders.video, a clip from the second key frame's group", both, options, unit=unit, warm_up_batches=2)
    for shuffled in (False, True):
        both = [*pipelines(reader, path=vp9, shuffled=shuffled), ours(reader, shuffled=shuffled)]
        title = f"experimental.readers.video, clips {'in random order' if shuffled else 'in order'}"
        compare(title, both, options, unit=unit, warm_up_batches=2)
