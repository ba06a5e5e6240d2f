"""Compare kernels with those of other libraries, on one thread.

Spectrograms are compared with SciPy and torch, CLAHE with OpenCV, resizing with Pillow, and LZ4 with the library in
pyarrow. All compute the same result from the same arrays. The docstrings of the kernels contain the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image

from benchmarks.common import Contender, Options, compare, missing_package
from dalify.base.optional import LazyModule
from dalify.codecs.lz4 import inflate_lz4
from dalify.data.samples import Samples
from dalify.kernels.audio.spectrum import spectrogram
from dalify.kernels.images.clahe import equalize_planes
from dalify.plugin.pytorch.dropin.kernels.pillow_resample import Window, resample

RATE_HZ = 16_000
SECONDS = 10
# Length of the transform and step between windows, in samples.
TRANSFORMS = {"speech": (512, 160), "music": (2048, 512), "an odd prime factor, left to NumPy": (706, 160)}
PLANES = {"a thumbnail": 128, "a photograph": 512}
TILES, CLIP_LIMIT = 8, 2.0
PHOTO = (375, 500)
RESIZED, CROPPED = (256, 341), (224, 224)
FILTERS = ("bilinear", "bicubic")

scipy_fft = LazyModule("scipy.fft", "this benchmark", "scipy")
pyarrow = LazyModule("pyarrow", "this benchmark", "pyarrow")


def _contender(name: str, function: Callable[[], Any], needs: tuple[str, ...] = ()) -> Contender:
    def run() -> int:
        function()
        return 1

    return Contender(name, lambda: nullcontext(run), needs)


def _spectrograms(options: Options) -> None:
    signal = np.random.default_rng(0).normal(0, 1, RATE_HZ * SECONDS).astype(np.float32)
    tensor = torch.from_numpy(signal)
    for name, (length, step) in TRANSFORMS.items():
        window = np.hanning(length + 1)[:-1].astype(np.float32)
        window_tensor = torch.from_numpy(window)
        frames = (len(signal) - length) // step + 1
        out = np.empty((1, length // 2 + 1, frames), np.float32)
        ins, outs = Samples.of_dense(signal[None]), Samples.of_dense(out)

        def ours(ins=ins, outs=outs, window=window, step=step, length=length) -> Any:
            spectrogram(
                outs,
                ins,
                window,
                window_step=step,
                length=length,
                center_windows=False,
                reflect_padding=False,
                power=2,
                has_frames_first=False,
            )

        def scipy(out=out, window=window, step=step, length=length) -> Any:
            cut = np.lib.stride_tricks.sliding_window_view(signal, length)[::step] * window
            spectrum = scipy_fft.rfft(cut, workers=1)
            out[0] = (spectrum.real**2 + spectrum.imag**2).T

        def by_torch(window=window_tensor, step=step, length=length) -> Any:
            spectrum = torch.stft(tensor, length, step, window=window, center=False, return_complex=True)
            return spectrum.real.square() + spectrum.imag.square()

        ours()
        found = out.copy()
        for other in (by_torch().numpy(), scipy() or out[0]):
            np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-5 * found.max())
        contenders = [
            _contender("dalify", ours),
            _contender("scipy.fft", scipy, ("scipy",)),
            _contender("torch.stft", by_torch),
        ]
        compare(f"Spectrograms of {SECONDS} s: {name}, {length} samples", contenders, options, unit="signals/s")


def _equalization(options: Options) -> None:
    for name, extent in PLANES.items():
        plane = np.random.default_rng(0).integers(0, 256, (extent, extent), np.uint8)
        plane = cv2.GaussianBlur(plane, (0, 0), 3)
        out, theirs = np.empty_like(plane), np.empty_like(plane)
        library = cv2.createCLAHE(CLIP_LIMIT, (TILES, TILES))

        samples = Samples.of_dense(out[None]), Samples.of_dense(plane[None])

        def ours(samples=samples) -> Any:
            equalize_planes(*samples, tiles_x=TILES, tiles_y=TILES, clip_limit=CLIP_LIMIT, bins=256)

        def opencv(out=theirs, plane=plane, library=library) -> Any:
            library.apply(plane, out)

        ours()
        opencv()
        assert np.abs(out.astype(int) - theirs).max() <= 1
        contenders = [_contender("dalify", ours), _contender("OpenCV", opencv)]
        compare(f"CLAHE of {name}, {extent} × {extent}", contenders, options, unit="planes/s")


def _resizing(options: Options) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (*PHOTO, 3), np.uint8)
    image = Image.fromarray(pixels)
    top, left = (RESIZED[0] - CROPPED[0]) // 2, (RESIZED[1] - CROPPED[1]) // 2
    box = (left, top, left + CROPPED[1], top + CROPPED[0])
    for name in FILTERS:
        kind = Image.Resampling[name.upper()]

        def whole(name=name) -> Any:
            return resample(pixels, RESIZED, name)

        def whole_pillow(kind=kind) -> Any:
            return np.asarray(image.resize(RESIZED[::-1], kind))

        def part(name=name) -> Any:
            return resample(pixels, RESIZED, name, Window(top, left, *CROPPED))

        def part_pillow(kind=kind) -> Any:
            return np.asarray(image.resize(RESIZED[::-1], kind).crop(box))

        for ours, pillow, what in ((whole, whole_pillow, "resized"), (part, part_pillow, "resized and cropped")):
            np.testing.assert_array_equal(ours(), pillow())
            contenders = [_contender("dalify", ours), _contender("Pillow", pillow)]
            compare(f"A photograph, {what}, {name}", contenders, options)


def _decompression(options: Options) -> None:
    if missing_package(("pyarrow",)):
        return
    random = np.random.default_rng(0)
    noise = random.integers(0, 256, (*PHOTO, 3), np.uint8)
    image = cv2.GaussianBlur(noise, (0, 0), 8)
    masks = (image > image.mean()).astype(np.int32)
    codec = pyarrow.Codec("lz4_raw")
    for name, array in (("noise, which repeats nothing", noise), ("a smooth image", image), ("int32 masks", masks)):
        data, size = array.tobytes(), array.nbytes
        block = codec.compress(data)
        values, out = np.frombuffer(block, np.uint8), np.empty(size, np.uint8)

        def ours(values=values, out=out) -> Any:
            inflate_lz4(out, values)

        def library(block=block, size=size, out=out) -> Any:
            out[:] = np.frombuffer(codec.decompress(block, size), np.uint8)

        for decompress in (ours, library):
            out.fill(0)
            decompress()
            assert out.tobytes() == data
        contenders = [_contender("dalify", ours), _contender("pyarrow, with a copy", library)]
        title = f"LZ4: {name}, {size / 1e6:.1f} MB in {len(block) / 1e6:.1f}"
        compare(title, contenders, options, unit="blocks/s")


def main(options: Options) -> None:
    """Print the tables."""
    threads = torch.get_num_threads(), cv2.getNumThreads()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    try:
        _spectrograms(options)
        _equalization(options)
        _resizing(options)
        _decompression(options)
    finally:
        torch.set_num_threads(threads[0])
        cv2.setNumThreads(threads[1])
