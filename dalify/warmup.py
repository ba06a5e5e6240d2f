"""Compile kernels ahead of time, for example when a container image is built.

``python -m dalify.warmup`` compiles the kernels of common pipelines: classification, augmentation, detection, speech,
volumes. ``python -m dalify.warmup module:function …`` compiles the kernels of your pipelines: each function is called
without arguments and must return a pipeline (like functions decorated with ``@pipeline_def``), whose first batch is
run.

Compiled code is stored in ``NUMBA_CACHE_DIR``, otherwise next to the source files or in the user's cache folder. It is
specific to the type of processor. For an image that runs on several types, set ``NUMBA_CPU_NAME`` to their common
subset, for example ``x86-64-v3``, and ``NUMBA_CPU_FEATURES`` to an empty string, both when the image is built and when
it runs.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
import tempfile
import time
import wave
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import simplejpeg

from dalify import fn, types
from dalify.base.compiling import progress
from dalify.base.errors import ArgumentValueError, DalifyError
from dalify.codecs.decode_batch import jpeg_decoder
from dalify.pipeline import Pipeline, pipeline_def

__all__ = ["main", "warm_up"]

_SAMPLES = 8  # the first batch has four chunks: chunks of one sample are read and decoded by other functions
_MEAN, _DEVIATION = [124.0, 116.0, 104.0], [58.0, 57.0, 57.0]
_RATE_HZ = 16000


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile the kernels of the targets; return the exit status.

    Args:
        arguments: command-line arguments; None: the arguments of the process.
    """
    parser = argparse.ArgumentParser(prog="python -m dalify.warmup", description="Compile kernels ahead of time.")
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help=f"module:function of a pipeline, or one of {', '.join(_COMMON)}; default: all groups",
    )
    for target in parser.parse_args(arguments).targets or list(_COMMON):
        start, before = time.perf_counter(), progress.functions
        try:
            warm_up(target)
        except DalifyError as error:
            print(error, file=sys.stderr)
            return 1
        seconds = time.perf_counter() - start
        print(f"{target}: {progress.functions - before} functions compiled, {seconds:.1f} s")
    return 0


def warm_up(target: str) -> None:
    """Run the first batch of a pipeline, so that its kernels are compiled and cached.

    Args:
        target: ``module:function``, or the name of a group of common pipelines.

    Raises:
        ArgumentValueError: there is no such group, module or function, or the function requires arguments or does not
            return a pipeline.
    """
    if target in _COMMON:
        with tempfile.TemporaryDirectory() as folder:
            for pipeline in _COMMON[target](Path(folder)):
                _run(pipeline)
        return
    module, colon, name = target.partition(":")
    if not colon:
        raise ArgumentValueError(f"{target!r} is neither module:function nor one of {', '.join(_COMMON)}.")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise ArgumentValueError(f"{target!r} cannot be imported: {error}.") from error
    if not callable(function):
        raise ArgumentValueError(f"{target!r} must be a function; it is {type(function).__name__}.")
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise ArgumentValueError(
            f"{target!r} is called without arguments: {error}.",
            hint=f"Write a function that calls it: def warmed(): return {name}(...).",
        ) from None
    pipeline = function()
    if not isinstance(pipeline, Pipeline):
        raise ArgumentValueError(f"{target!r} must return a pipeline; got {type(pipeline).__name__}.")
    _run(pipeline)


def _run(pipeline: Pipeline) -> None:
    pipeline.build()
    pipeline.run()
    pipeline.close()
    jpeg_decoder.compile_if_used()  # a pipeline waits with it until it has decoded many images


# -- common pipelines
# -----------------------------------------------------------------------------------------------------------------


def _define(function: Callable[[], Any]) -> Any:
    return pipeline_def(batch_size=_SAMPLES, num_threads=1, device_id=None, seed=1)(function)()


def _write_photos(folder: Path) -> list[Path]:
    random, paths = np.random.default_rng(1), []
    for number in range(_SAMPLES):
        pixels = random.integers(0, 256, (150 + 20 * number, 290 - 20 * number, 3), np.uint8)
        path = folder / "class" / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(simplejpeg.encode_jpeg(pixels, colorsubsampling="420"))
        paths.append(path)
    return paths


def _photographs(folder: Path) -> Any:
    _write_photos(folder)
    encoded, labels = fn.readers.file(file_root=str(folder), random_shuffle=True)
    return encoded, labels


def _normalize(images: Any, **options: Any) -> Any:
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=_MEAN, std=_DEVIATION, **options
    )


def _classification(folder: Path) -> list[Any]:
    def training() -> Any:
        encoded, labels = _photographs(folder)
        images = fn.random_resized_crop(fn.decoders.image(encoded), size=224)
        return _normalize(images, mirror=fn.random.coin_flip()), labels

    def decoding_the_crop() -> Any:
        encoded, labels = _photographs(folder)
        images = fn.resize(fn.decoders.image_random_crop(encoded), size=[224, 224])
        return _normalize(images, mirror=fn.random.coin_flip()), labels

    def validation() -> Any:
        encoded, labels = _photographs(folder)
        return _normalize(fn.resize(fn.decoders.image(encoded), resize_shorter=256), crop=(224, 224)), labels

    return [_define(training), _define(decoding_the_crop), _define(validation)]


def _augmentation(folder: Path) -> list[Any]:
    def augmented() -> Any:
        images = fn.decoders.image(_photographs(folder)[0])
        factor = fn.random.uniform(range=[0.8, 1.2])
        images = fn.color_twist(images, brightness=factor, contrast=factor, saturation=factor, hue=factor)
        images = fn.brightness_contrast(images, brightness=factor, contrast=factor)
        images = fn.gaussian_blur(images, sigma=factor)
        images = fn.rotate(images, angle=fn.random.uniform(range=[-20.0, 20.0]), keep_size=True, fill_value=0)
        images = fn.flip(images, horizontal=fn.random.coin_flip(), vertical=fn.random.coin_flip())
        images = fn.crop(images, crop=(96, 96), crop_pos_x=fn.random.uniform(range=[0.0, 1.0]))
        return fn.cast(images, dtype=types.FLOAT) / 255.0

    return [_define(augmented)]


def _detection(folder: Path) -> list[Any]:
    images, annotations = [], []
    for number, path in enumerate(_write_photos(folder)):
        images.append({"id": number, "file_name": f"class/{path.name}", "width": 290, "height": 150})
        for box in ([10, 20, 60, 70], [50, 40, 90, 80])[: 1 + number % 2]:
            item = {"id": len(annotations), "image_id": number, "category_id": 1, "bbox": box, "iscrowd": 0}
            annotations.append({**item, "area": box[2] * box[3]})
    content = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "thing"}]}
    (folder / "instances.json").write_text(json.dumps(content))

    def ssd() -> Any:
        encoded, boxes, labels = fn.readers.coco(
            file_root=str(folder), annotations_file=str(folder / "instances.json"), ratio=True, ltrb=True
        )
        anchor, shape, boxes, labels = fn.random_bbox_crop(
            boxes, labels, thresholds=[0.1, 0.5], scaling=[0.3, 1.0], bbox_layout="xyXY", allow_no_crop=True
        )
        is_mirrored = fn.random.coin_flip()
        images = fn.resize(fn.decoders.image_slice(encoded, anchor, shape), size=[96, 96])
        boxes = fn.bb_flip(boxes, horizontal=is_mirrored, ltrb=True)
        boxes, labels = fn.box_encoder(boxes, labels, anchors=[0.1, 0.1, 0.5, 0.5, 0.3, 0.3, 0.9, 0.9])
        return _normalize(images, mirror=is_mirrored), boxes, labels

    return [_define(ssd)]


def _speech(folder: Path) -> list[Any]:
    random = np.random.default_rng(1)
    (folder / "class").mkdir()
    for number in range(_SAMPLES):
        with wave.open(str(folder / f"class/{number}.wav"), "wb") as file:
            file.setparams((1, 2, _RATE_HZ, 0, "NONE", ""))
            file.writeframes(random.integers(-9000, 9000, _RATE_HZ + 99 * number, np.int16).tobytes())

    def log_mel() -> Any:
        encoded, labels = fn.readers.file(file_root=str(folder), file_filters=["*.wav"])
        audio, _ = fn.decoders.audio(encoded, downmix=True, dtype=types.FLOAT)
        begin, length = fn.nonsilent_region(audio, cutoff_db=-40.0)
        audio = fn.preemphasis_filter(fn.slice(audio, begin, length, axes=[0]))
        spectrum = fn.spectrogram(audio, nfft=512, window_length=400, window_step=160)
        mel = fn.mel_filter_bank(spectrum, nfilter=80, sample_rate=float(_RATE_HZ))
        return fn.normalize(fn.to_decibels(mel, cutoff_db=-80.0), axes=[1]), labels

    return [_define(log_mel)]


def _volumes(folder: Path) -> list[Any]:
    random = np.random.default_rng(1)
    for number in range(_SAMPLES):
        np.save(folder / f"{number}.npy", random.random((20 + number, 32, 32, 1), np.float32))

    def scans() -> Any:
        volumes = fn.reshape(fn.readers.numpy(file_root=str(folder)), layout="DHWC")
        volumes = fn.crop(volumes, crop_d=16, crop_h=24, crop_w=24, crop_pos_z=fn.random.uniform(range=[0.0, 1.0]))
        volumes = fn.flip(fn.resize(volumes, size=[12, 20, 20]), horizontal=fn.random.coin_flip())
        return fn.brightness_contrast(volumes, brightness=fn.random.uniform(range=[0.9, 1.1]), dtype=types.FLOAT)

    return [_define(scans)]


# Command-line name → function from a data folder to pipelines.
_COMMON: Mapping[str, Callable[[Path], list[Any]]] = {
    "classification": _classification,
    "augmentation": _augmentation,
    "detection": _detection,
    "speech": _speech,
    "volumes": _volumes,
}

if __name__ == "__main__":
    sys.exit(main())
