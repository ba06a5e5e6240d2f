"""Measure the bandwidth of kernels on an accelerator, compared with that of a copy."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from benchmarks.common import Options, library
from dalify import types
from dalify.kernels.dispatch import reason_against

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
DEVIATION = [0.229 * 255, 0.224 * 255, 0.225 * 255]
SIZE = 224
BYTES_PER_GIGABYTE = 1e9
# A kernel cannot be faster than a copy, except because of measurement errors and data in a cache.
_LARGEST_RATIO = 1.2

Graph = Callable[[Any, Any], Any]


def synchronize() -> None:
    """Wait for the device, if there is one."""
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()


def seconds(run: Callable[[], Any], rounds: int) -> float:
    """Return the median duration in seconds of a function that launches kernels on the device."""
    for _ in range(3 if rounds > 1 else 1):
        run()
    found = []
    for _ in range(rounds):
        synchronize()
        start = time.perf_counter()
        run()
        synchronize()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def _device_seconds(run: Callable[[], Any], rounds: int, device: str) -> float:
    """Return the time of the device for one call of a function, in seconds, measured by torch's profiler.

    0 if the function launches no kernels, on other devices than CUDA, and if the profiler records no kernels.
    """
    if not device.startswith("cuda"):
        return 0.0
    for _ in range(3):
        run()
    synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as measured:
        for _ in range(rounds):
            run()
        synchronize()
    return sum(event.self_device_time_total for event in device_events(measured)) / rounds / 1e6


def device_events(measured: profile) -> list[Any]:
    """Return the events of torch's profiler on the device.

    Events on the host, such as launches, are excluded, because their device time may include that of kernels.
    """
    return [event for event in measured.key_averages() if event.device_type != DeviceType.CPU]


def _kernels(height: int, width: int) -> dict[str, Graph]:
    """Return functions with one operator each, for images on the device."""
    matrix = [1.1, 0.1, -9.0, -0.1, 0.9, 7.0]
    normalized = {"mean": MEAN, "std": DEVIATION}
    return {
        "crop_mirror_normalize": lambda fn, x: fn.crop_mirror_normalize(x, **normalized),
        "resize, antialiased": lambda fn, x: fn.resize(x, size=(SIZE, SIZE)),
        "resize, cubic": lambda fn, x: fn.resize(x, size=(SIZE, SIZE), interp_type=types.INTERP_CUBIC),
        "random_resized_crop": lambda fn, x: fn.random_resized_crop(x, size=SIZE),
        "color_twist": lambda fn, x: fn.color_twist(x, hue=20.0, saturation=1.2, contrast=0.9),
        "brightness_contrast": lambda fn, x: fn.brightness_contrast(x, brightness=1.1, contrast=0.9),
        "warp_affine": lambda fn, x: fn.warp_affine(x, matrix=matrix, fill_value=0.0),
        "rotate": lambda fn, x: fn.rotate(x, angle=20.0, keep_size=True, fill_value=0.0),
        "gaussian_blur": lambda fn, x: fn.gaussian_blur(x, sigma=1.0),
        "erase": lambda fn, x: fn.erase(x, anchor=[0.2, 0.3], shape=[0.3, 0.4], normalized=True),
        "flip": lambda fn, x: fn.flip(x, horizontal=1),
        "cast": lambda fn, x: fn.cast(x, dtype=types.FLOAT),
    }


def _measured(graph: Graph, images: Any, rounds: int, device: str) -> tuple[float, int]:
    """Return the time of a kernel for a batch on the device, and the bytes that it reads and writes.

    The time is the difference between pipelines with and without the operator, both with images on the device.
    """
    lib = library("dalify")

    def opened(operator: Graph | None) -> Any:
        @lib.pipeline_def(batch_size=len(images), num_threads=1, device_id=None, prefetch_queue_depth=1)
        def pipeline() -> Any:
            x = lib.fn.external_source(source=lambda: images, layout="HWC", device="gpu", no_copy=True)
            return x if operator is None else operator(lib.fn, x)

        built = pipeline()
        built.build()
        return built

    with_operator, without = opened(graph), opened(None)
    (output,) = with_operator.run()
    size = sum(sample.nbytes for sample in images)
    written = sum(np.asarray(sample).nbytes for sample in output.as_cpu())
    both = with_operator.run, without.run
    with_seconds, without_seconds = (_device_seconds(run, rounds, device) for run in both)
    if not with_seconds:  # not measured; without the operator, 0 is a measured value. Both include the time of the host
        with_seconds, without_seconds = (seconds(run, rounds) for run in both)
    return with_seconds - without_seconds, size + written


def _ratio(duration: float, size: int, copy: float) -> float | None:
    """Return the bandwidth of a kernel as a fraction of that of a copy; None if the measurement is implausible.

    Args:
        duration: measured time of the kernel in seconds; may be negative.
        size: bytes that it reads and writes.
        copy: bandwidth of a copy in bytes per second.
    """
    if duration <= 0 or size > _LARGEST_RATIO * copy * duration:
        return None
    return size / duration / copy


def bandwidths(options: Options, device: str) -> dict[str, Any]:
    """Print the bandwidth of each kernel, with Triton and with torch, and that of a copy on the device.

    Returns:
        Bandwidths in GB/s by kernel and kind; None for those that cannot be measured.
    """
    count, height, width = (4, 40, 60) if options.is_smoke else (256, 375, 500)
    rounds = 1 if options.is_smoke else 20
    images = torch.randint(0, 256, (count, height, width, 3), dtype=torch.uint8).to(device)
    block = torch.empty(max(count * height * width * 3 * 4, 1 << 16), dtype=torch.uint8, device=device)
    other = torch.empty_like(block)

    def run() -> None:
        other.copy_(block)

    copy = 2 * block.numel() / (_device_seconds(run, rounds, device) or seconds(run, rounds))
    reason = reason_against(device)
    table = Table(title=f"{count} images {height} x {width}, GB/s read and written", title_justify="left")
    for heading in ("", "Triton", "of a copy", "torch", "of a copy"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row("copy on the device", "", "", f"{copy / BYTES_PER_GIGABYTE:,.1f}", "100 %")
    figures: dict[str, Any] = {"copy": copy / BYTES_PER_GIGABYTE}
    for name, graph in _kernels(height, width).items():
        row: dict[str, float | None] = {}
        cells: list[str] = []
        for kind in ("triton", "torch"):
            if kind == "triton" and reason is not None:
                cells += ["", ""]
                continue
            with mock.patch.dict(os.environ, {"DALIFY_TRITON": "0"} if kind == "torch" else {}):
                ratio = _ratio(*_measured(graph, images, rounds, device), copy)
            row[kind] = None if ratio is None else ratio * figures["copy"]
            cells += ["not measurable", ""] if ratio is None else [f"{row[kind]:,.1f}", f"{ratio:.0%}"]
        table.add_row(name, *cells)
        figures[name] = row
    Console().print(table)
    if reason is not None:
        print(f"no Triton kernels: {reason}")
    return figures
