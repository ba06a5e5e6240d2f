"""Measure an accelerator: pipelines compared with torchvision, cost during training, bandwidth of kernels, and copies.

Figures with targets are measured first. If a measurement fails, the others run. If the benchmark is interrupted, it
prints and saves the figures measured so far. If the device is unusable after a failure, the benchmark ends, and
``--resume`` continues with the next measurement, in a new process.

Without an accelerator, everything is emulated on the CPU, and the figures have no meaning.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from PIL import Image
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile

from benchmarks.common import OURS, Contender, Options, RunBatch, compare, library, photo_folder, run_pipeline
from benchmarks.gpu_kernels import (
    BYTES_PER_GIGABYTE,
    DEVIATION,
    MEAN,
    SIZE,
    bandwidths,
    device_events,
    seconds,
    synchronize,
)
from benchmarks.scaling_pipelines import BoxDataset, coco_files, ssd
from dalify.codecs.device_jpeg import chosen_decoder
from tests.helpers.torchvision_import import import_torchvision


def _accelerator() -> str | None:
    """Return the type of the accelerator that torch finds."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return None if found is None else found.type


_UNUSABLE = 3  # exit status


def _is_usable() -> bool:
    """Return whether this process can still use the device."""
    try:
        synchronize()
    except RuntimeError:
        return False
    return True


def _copies(options: Options, device: str) -> dict[str, float]:
    """Print the bandwidth of copies from pinned memory to the device, and the time of a batch of photographs."""
    size = 1 << 20 if options.is_smoke else 256 * 375 * 500 * 3
    source = torch.empty(size, dtype=torch.uint8, pin_memory=device != "cpu")
    target = torch.empty(size, dtype=torch.uint8, device=device)
    duration = seconds(lambda: target.copy_(source, non_blocking=True), 1 if options.is_smoke else 20)
    print(f"copies to the device: {size / duration / BYTES_PER_GIGABYTE:,.1f} GB/s; {size / 1e6:,.0f} MB take "
          f"{duration * 1e3:.2f} ms")  # fmt: skip
    return {"gigabytes_per_second": size / duration / BYTES_PER_GIGABYTE}


def _training(fn: Any, types: Any, images: Any) -> Any:
    images = fn.random_resized_crop(images, size=SIZE, device="gpu")
    return fn.crop_mirror_normalize(images, mean=MEAN, std=DEVIATION, mirror=fn.random.coin_flip(), device="gpu")


def _validation(fn: Any, types: Any, images: Any) -> Any:
    images = fn.resize(images, resize_shorter=256.0, device="gpu")
    return fn.crop_mirror_normalize(images, crop=(SIZE, SIZE), mean=MEAN, std=DEVIATION, device="gpu")


def _augmented(fn: Any, types: Any, images: Any) -> Any:
    images = fn.resize(images, size=(SIZE, SIZE), device="gpu")
    images = fn.color_twist(images, hue=fn.random.uniform(range=[-20.0, 20.0]), saturation=1.2, device="gpu")
    images = fn.rotate(
        images, angle=fn.random.uniform(range=[-30.0, 30.0]), keep_size=True, fill_value=0.0, device="gpu"
    )
    return fn.crop_mirror_normalize(images, mean=MEAN, std=DEVIATION, device="gpu")


PIPELINES = {"ResNet-50 training": _training, "ResNet-50 validation": _validation, "color and rotation": _augmented}


_TRAINING = next(iter(PIPELINES))

# Names of the decoding, by the device of the decoder.
DECODERS = {"cpu": "host", "mixed": "mixed"}


def _pipeline(
    lib: SimpleNamespace, augment: Callable[..., Any], folder: str, decoder: str, size: int, threads: int
) -> Any:
    @lib.pipeline_def(batch_size=size, num_threads=threads, device_id=0, seed=1)
    def pipeline() -> Any:
        encoded, labels = lib.fn.readers.file(file_root=folder, random_shuffle=True, name="photos")
        images = lib.fn.decoders.image(encoded, device=decoder)
        return augment(lib.fn, lib.types, images if decoder == "mixed" else images.gpu()), labels.gpu()

    return pipeline()


def _print_decoded(pipeline: Any) -> None:
    """Print the number of images that the host decoded in mixed decoding."""
    for line in pipeline.explain().splitlines():
        if "decoded by the host" in line:
            print(line)


@contextmanager
def _on_device(root: str, define: Callable[..., Any], decoder: str) -> Iterator[RunBatch]:
    pipeline = define(library(root), decoder=decoder)
    with run_pipeline(pipeline) as run:

        def run_batch() -> int:
            count = run()
            synchronize()
            return count

        yield run_batch
    if root == OURS and decoder == "mixed":
        _print_decoded(pipeline)


@contextmanager
def _torchvision(folder: str, title: str, size: int, device: str) -> Iterator[RunBatch]:
    """Decode with Pillow on the host, then torchvision v2 on the device, image by image; one thread."""
    v2 = import_torchvision("torchvision.transforms.v2")
    steps: dict[str, Sequence[Any]] = {
        "ResNet-50 training": [v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()],
        "ResNet-50 validation": [v2.Resize(256, antialias=True), v2.CenterCrop(SIZE)],
        "color and rotation": [
            v2.Resize((SIZE, SIZE), antialias=True),
            v2.ColorJitter(saturation=0.2, hue=0.05),
            v2.RandomRotation(30),
        ],
    }
    means, deviations = ([value / 255 for value in values] for values in (MEAN, DEVIATION))
    finish = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(means, deviations)]
    transform = v2.Compose([*steps[title], *finish])
    files = sorted(Path(folder).glob("*/*.jpg"))
    at = 0

    def run_batch() -> int:
        nonlocal at
        images = []
        for _ in range(size):
            with Image.open(files[at % len(files)]) as image:
                pixels = torch.from_numpy(np.array(image.convert("RGB")))
            images.append(transform(pixels.to(device).permute(2, 0, 1)))
            at += 1
        torch.stack(images)
        synchronize()
        return size

    yield run_batch


@contextmanager
def _torchvision_ssd(images_folder: Path, annotations: Path, size: int, device: str) -> Iterator[RunBatch]:
    """Decode with Pillow on the host, then torchvision v2 on the device, image by image; one thread."""
    dataset = BoxDataset(images_folder, annotations, device)
    at = 0

    def run_batch() -> int:
        nonlocal at
        torch.stack([dataset[(at + index) % len(dataset)][0] for index in range(size)])
        at += size
        synchronize()
        return size

    yield run_batch


@dataclass(frozen=True)
class _Workload:
    """A pipeline to measure.

    Attributes:
        define: function of a library and `decoder`, ``cpu`` or ``mixed``, that returns a pipeline on device 0.
        rival: returns a context manager with torchvision's equivalent.
    """

    define: Callable[..., Any]
    rival: Callable[[], Any]


def _workloads(options: Options, device: str, size: int, threads: int) -> dict[str, _Workload]:
    folder = str(photo_folder(options))
    alone = min(size, 32)  # torchvision processes image by image, so the size of its batches does not matter
    found = {
        title: _Workload(
            partial(_pipeline, augment=augment, folder=folder, size=size, threads=threads),
            partial(_torchvision, folder, title, alone, device),
        )
        for title, augment in PIPELINES.items()
    }
    images, annotations = coco_files(options)
    files = {"images_folder": str(images), "annotations": str(annotations)}
    define = partial(ssd, **files, num_threads=threads, batch_size=size, device_id=0)
    found["SSD training"] = _Workload(define, partial(_torchvision_ssd, images, annotations, alone, device))
    return found


def _libraries(device: str) -> list[tuple[str, str]]:
    """Return import names and names of the libraries to measure; DALI's GPU operators do not run without a GPU."""
    names = [("dalify", "dalify"), ("nvidia.dali", "DALI")]
    return names if device != "cpu" else names[:1]


def _contenders(workload: _Workload, device: str, threads: int) -> list[Contender]:
    found = [
        Contender(
            f"{name}, {where} decoding, {threads} threads",
            partial(_on_device, root, define=workload.define, decoder=decoder),
            (root,),
        )
        for root, name in _libraries(device)
        for decoder, where in DECODERS.items()
    ]
    return [*found, Contender("torchvision v2, host decoding, 1 thread", workload.rival, ("torchvision",))]


def _decoded(files: list[str], decoder: str) -> list[np.ndarray[Any, Any]]:
    """Return decoded files, in their order."""
    lib = library(OURS)

    @lib.pipeline_def(batch_size=len(files), num_threads=1, device_id=0, prefetch_queue_depth=1)
    def pipeline() -> Any:
        encoded, _ = lib.fn.readers.file(files=files)
        return lib.fn.decoders.image(encoded, device=decoder)

    built = pipeline()
    (images,) = built.run()
    if decoder == "mixed":
        _print_decoded(built)
        images = images.as_cpu()
    return [np.asarray(image).astype(np.int16) for image in images]


def _differences(options: Options) -> dict[str, dict[str, float]]:
    """Print the differences between pixels of photographs decoded on the device and on the host, by decoder."""
    files = [str(path) for path in sorted(photo_folder(options).glob("*/*.jpg"))[:8]]
    expected = _decoded(files, "cpu")
    found: dict[str, dict[str, float]] = {}
    for name in ("nvimgcodec", "torchvision"):
        with mock.patch.dict(os.environ, {"DALIFY_DEVICE_DECODER": name}):
            key, reason = chosen_decoder()
            if key is None:
                print(f"pixels of {name} are not compared with those of the host: {reason}")
                continue
            images = _decoded(files, "mixed")
        pixels = np.concatenate([np.abs(a - b).ravel() for a, b in zip(images, expected, strict=True)])
        found[name] = {"maximum": int(pixels.max()), "mean": float(pixels.mean())}
        print(f"pixels of {name} differ from those of the host by {pixels.max()} at most and {pixels.mean():.3f} on "
              f"average, in {len(files)} photographs")  # fmt: skip
    return found


def _shares(title: str, workload: _Workload, options: Options, device: str) -> dict[str, float]:
    """Print the times of copies and kernels on the device, as fractions of the time of the batches.

    They are measured by torch's profiler. In emulation, it counts calls of torch's copy function in the calling thread,
    so the figures have no meaning.
    """
    activities = [ProfilerActivity.CPU] if device == "cpu" else [ProfilerActivity.CUDA]
    batch_count = 2 if options.is_smoke else 30
    found: dict[str, float] = {}
    for decoder, where in DECODERS.items():
        pipeline = workload.define(library("dalify"), decoder=decoder)
        pipeline.build()
        for _ in range(1 if options.is_smoke else 5):
            pipeline.run()
        synchronize()
        with profile(activities=activities) as measured:
            start = time.perf_counter()
            for _ in range(batch_count):
                pipeline.run()
            synchronize()
            elapsed_us = (time.perf_counter() - start) * 1e6
        copies, others = 0.0, 0.0
        for event in measured.key_averages() if device == "cpu" else device_events(measured):
            if device == "cpu":
                copies += event.self_cpu_time_total if event.key == "aten::copy_" else 0.0
            elif event.key.startswith("Memcpy"):
                copies += event.self_device_time_total
            else:
                others += event.self_device_time_total
        found[where] = copies / elapsed_us
        print(f"{title}, {where} decoding: copies take {copies / elapsed_us:.1%} of the time, kernels "
              f"{others / elapsed_us:.1%}")  # fmt: skip
    return found


def _during_training(title: str, workload: _Workload, options: Options, device: str) -> dict[str, float]:
    """Print the increase of the time of a training step of 20 ms by the loader; the step has its own stream."""
    step_s, step_count = (0.002, 3) if options.is_smoke else (0.02, 100)
    work = _training_step(step_s, device)

    def seconds_per_step(next_batch: Callable[[], Any]) -> float:
        for _ in range(1 if options.is_smoke else 10):
            next_batch()
            work()
        synchronize()
        start = time.perf_counter()
        for _ in range(step_count):
            next_batch()
            work()
        synchronize()
        return (time.perf_counter() - start) / step_count

    found: dict[str, float] = {}
    for decoder, where in DECODERS.items():
        pipeline = workload.define(library("dalify"), decoder=decoder)
        pipeline.build()
        # Alternately, because the clock of the device changes.
        rounds = [
            (seconds_per_step(lambda: None), seconds_per_step(pipeline.run))
            for _ in range(1 if options.is_smoke else 3)
        ]
        cost = statistics.median(loaded / alone - 1 for alone, loaded in rounds)
        alone = statistics.median(alone for alone, _ in rounds)
        found[where] = cost
        print(f"{title}, {where} decoding: during a training step of {alone * 1e3:.1f} ms the loader costs {cost:.1%}")
    return found


def _training_step(duration_s: float, device: str) -> Callable[[], None]:
    """Return a function that keeps the device busy for a time, like a training step; in emulation it sleeps."""
    if device == "cpu":
        return lambda: time.sleep(duration_s)
    matrix = torch.randn(4096, 4096, device=device, dtype=torch.bfloat16)
    once = seconds(lambda: matrix @ matrix, 20)
    count = max(1, round(duration_s / once))

    def work() -> None:
        for _ in range(count):
            torch.mm(matrix, matrix)

    return work


# For one H200 with 16 cores: name, figure in the results, minimum or maximum, and its unit.
_TARGETS: tuple[tuple[str, tuple[str, ...], str, float, str], ...] = (
    ("ResNet-50 training, mixed decoding", (_TRAINING, "mixed"), ">=", 12_000, "images/s"),
    ("ResNet-50 training, host decoding", (_TRAINING, "host"), ">=", 9_000, "images/s"),
    ("crop_mirror_normalize", ("kernels", "crop_mirror_normalize"), ">=", 0.6, "of a copy"),
    ("resize, antialiased", ("kernels", "resize, antialiased"), ">=", 0.6, "of a copy"),
    (
        "cost during a training step of 20 ms, mixed decoding",
        ("cost during training", "mixed"),
        "<",
        0.03,
        "of the step",
    ),
    ("cost during a training step of 20 ms, host decoding", ("cost during training", "host"), "<", 0.03, "of the step"),
)


def _figure(figures: dict[str, Any], place: tuple[str, ...]) -> float | None:
    """Return the measured value of a target; None if it was not measured, NaN if it cannot be measured."""
    part, name = place
    found = figures.get(part, {})
    if part == "kernels":
        rates = found.get(name, {})
        if not rates:
            return None
        rate = rates.get("triton", rates.get("torch"))
        return math.nan if rate is None else rate / found["copy"]
    if part == _TRAINING:
        return next((rate for title, rate in found.items() if title.startswith(f"dalify, {name} decoding")), None)
    return found.get(name)


def print_targets(figures: dict[str, Any]) -> None:
    """Print the targets and the measured values.

    Args:
        figures: the figures that `main` saves as JSON.
    """
    table = Table(title="targets, of one H200 with 16 cores", title_justify="left")
    for heading in ("", "target", "measured", ""):
        table.add_column(heading, justify="right" if heading else "left")
    for name, place, relation, target, unit in _TARGETS:
        value = _figure(figures, place)
        if value is None or math.isnan(value):
            verdict = ""
        elif figures["device"] is None:
            verdict = "emulation"
        else:
            is_met = value >= target if relation == ">=" else value < target
            verdict = "met" if is_met else "missed"
        if value is None:
            measured = "not measured"
        elif math.isnan(value):
            measured = "not measurable"
        else:
            measured = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        table.add_row(name, f"{relation} {target:,g} {unit}", measured, verdict)
    Console().print(table)


def main(options: Options) -> None:
    """Print the device, and run all measurements.

    Raises:
        SystemExit: measurements have failed, or the device is unusable.
    """
    kind = _accelerator()
    device = kind or "cpu"
    if kind is None:
        print("no accelerator: emulated on the CPU. The figures below say nothing about an accelerator.")
    else:
        name = torch.cuda.get_device_name() if kind == "cuda" else kind
        print(f"device: {name}; torch {torch.__version__}; {os.cpu_count()} cores; {platform.platform()}")
    size, threads = (4, 2) if options.is_smoke else (256, min(os.cpu_count() or 1, 16))
    figures: dict[str, Any] = {}
    if options.resumes and options.json is not None and options.json.exists():
        figures = json.loads(options.json.read_text())
    figures["device"] = kind
    begun: list[str] = figures.setdefault("begun", [])
    failed: list[str] = []

    def save() -> None:
        if options.json is not None:
            options.json.write_text(json.dumps(figures, indent=2))

    with mock.patch.dict(os.environ, {} if kind else {"DALIFY_DEVICE": "cpu"}):
        decoder, reason = chosen_decoder()
        print(f"mixed decoding: on the {'host' if decoder is None else 'device'} ({reason})")
        figures["decoder"] = reason
        workloads = _workloads(options, device, size, threads)

        def compared(title: str) -> dict[str, float]:
            contenders = _contenders(workloads[title], device, threads)
            try:
                turns = compare(title, contenders, options)
            except Exception:
                traceback.print_exc()
                print(f"{title}: again without other libraries")
                turns = compare(title, [one for one in contenders if one.needs == ("dalify",)], options)
            return {name: turn.samples_per_second for name, turn in turns.items()}

        def shares() -> dict[str, Any]:
            return {title: _shares(title, workload, options, device) for title, workload in workloads.items()}

        measurements: dict[str, Callable[[], dict[str, Any]]] = {
            _TRAINING: partial(compared, _TRAINING),
            "cost during training": partial(_during_training, _TRAINING, workloads[_TRAINING], options, device),
            "kernels": partial(bandwidths, options, device),
            "differences of decoders": partial(_differences, options),
            "copies": partial(_copies, options, device),
            **{title: partial(compared, title) for title in workloads if title != _TRAINING},
            "time in copies": shares,
        }
        try:
            for name, measure in measurements.items():
                if name in begun:
                    continue
                begun.append(name)
                save()  # the process may end here
                try:
                    figures[name] = measure()
                except Exception as error:  # continue with the others, because time on a device is limited
                    failed.append(name)
                    print(f"{name}: failed")
                    traceback.print_exc()
                    if not _is_usable():
                        print(f"the device is not usable any more after {name}")
                        raise SystemExit(_UNUSABLE) from error
        finally:
            print_targets(figures)
            save()
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")
