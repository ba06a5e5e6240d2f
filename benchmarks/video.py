"""How fast do frames come out of videos? Clips of 16 frames of a VP9 film, the only common codec of DALI's CPU decoder.

One thread each. The film is made on the spot: 360p, drawn shapes that move, a key frame every second.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np

from benchmarks.common import Contender, Options, compare, library, pipelines, run_pipeline

__all__ = ["decoder", "main", "reader"]

FRAMES = 16
CODECS = {
    "libvpx-vp9": ("vp9.mp4", {"deadline": "realtime", "cpu-used": "8"}),
    "libx264": ("h264.mp4", {"preset": "veryfast", "x264-params": "open-gop=1"}),
}


def make_film(codec: str, options: Options) -> Path:
    """Encode a film, unless it is there."""
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
            picture = np.stack([128 + wave, 128 - wave, (rows + columns + 5 * number) % 256], -1).astype(np.uint8)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def decoder(lib: SimpleNamespace, film: Path) -> Any:
    """Define a pipeline that decodes a clip from the middle of a film in memory."""
    fn = lib.fn
    data = [np.fromfile(film, np.uint8)] * 4

    @lib.pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def pipeline():
        return fn.decoders.video(fn.external_source(source=lambda: data), start_frame=20, sequence_length=FRAMES)

    return pipeline()


def reader(lib: SimpleNamespace, film: Path, *, shuffled: bool) -> Any:
    """Define a pipeline that reads clips of a film, one behind the other or in any order."""
    fn = lib.fn

    @lib.pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=1)
    def pipeline():
        # DALI shuffles in a buffer of decoded clips: as many as the film has, so that both orders are as random.
        return fn.experimental.readers.video(
            filenames=[str(film)], sequence_length=FRAMES, random_shuffle=shuffled, initial_fill=16
        )

    return pipeline()


def main(options: Options) -> None:
    """Decode from memory; read in order; read in any order."""
    vp9, h264 = (make_film(codec, options) for codec in CODECS)

    def ours(define: Any, **arguments: Any) -> Contender:
        return Contender("dalify, H.264", lambda: run_pipeline(define(library("dalify"), h264, **arguments)))

    unit = f"clips of {FRAMES} frames/s"
    both = [*pipelines(decoder, film=vp9), ours(decoder)]
    compare("decoders.video, a clip from the second key frame's group", both, options, unit=unit, warm_up_batches=2)
    for shuffled in (False, True):
        both = [*pipelines(reader, film=vp9, shuffled=shuffled), ours(reader, shuffled=shuffled)]
        title = f"experimental.readers.video, clips {'in any order' if shuffled else 'one behind the other'}"
        compare(title, both, options, unit=unit, warm_up_batches=2)
