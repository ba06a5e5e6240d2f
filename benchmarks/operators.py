"""Compare each operator with DALI: CPU time per sample on one thread, with input that is typical of training.

Both libraries read the same arrays without a copy. A row measures a pipeline with one operator, from source to output.
"""

from __future__ import annotations

import operator
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.common import OURS, RIVAL, Options, check_names, library, missing_package, photo_folder, take_turn
from dalify import types
from dalify.registry import catalog

BATCH_SIZE = 16
WARM_UP_BATCHES = 3
# Operators with user functions, and expressions and sources, which have separate benchmarks.
_UNTIMED = {"arithmetic", "tensor_subscript", "external_source", "python_function", "dl_tensor_python_function"}
_RANDOM = np.random.default_rng(0)


@dataclass(frozen=True, eq=False)
class Task:
    """One row: an operator on typical input.

    Attributes:
        name: name in ``fn``.
        inputs: positional inputs, arrays or lists of samples, each with its layout.
        arguments: constants; an array contains one value per sample.
        in_dali: True if DALI supports the operator on the CPU.
        form: what distinguishes the row from others of the operator.
    """

    name: str
    inputs: tuple[tuple[Any, str], ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    in_dali: bool = True
    form: str = ""


def _task(name: str, *inputs: tuple[Any, str], in_dali: bool = True, form: str = "", **arguments: Any) -> Task:
    return Task(name, inputs, arguments, in_dali, form)


def _boxes(count: int) -> np.ndarray:
    starts = _RANDOM.uniform(0, 0.5, (count, 2))
    return np.concatenate([starts, starts + _RANDOM.uniform(0.1, 0.4, (count, 2))], axis=1).astype(np.float32)


def _photos(files: Sequence[Path], height: int, width: int) -> np.ndarray:
    images = [cv2.cvtColor(cv2.imread(str(file)), cv2.COLOR_BGR2RGB) for file in files]
    return np.stack([cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA) for image in images])


def _file(array: np.ndarray) -> np.ndarray:
    return np.frombuffer(b"\x93NUMPY\x01\x00" + _header(array) + array.tobytes(), np.uint8)


def _unpacked(array: np.ndarray) -> np.ndarray:
    """Return an LZ4 block that contains only literals, as for incompressible data."""
    data = array.tobytes()
    more, rest = divmod(len(data) - 15, 255)
    return np.frombuffer(b"\xf0" + b"\xff" * more + bytes([rest]) + data, np.uint8)


def _header(array: np.ndarray) -> bytes:
    text = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {array.shape}, }}".ljust(117) + "\n"
    return len(text).to_bytes(2, "little") + text.encode()


def tasks(folder: Path) -> list[Task]:
    """Create the inputs (images come from photographs) and return the rows to time."""
    files = sorted(folder.glob("*/*.jpg"))[:BATCH_SIZE]
    photo = (_photos(files, 256, 256), "HWC")
    large = (_photos(files, 375, 500), "HWC")
    mosaic = (np.ascontiguousarray(photo[0][..., 1]), "HW")
    video = (np.stack([_photos(files[n : n + 1] * 8, 112, 112) for n in range(BATCH_SIZE)]), "FHWC")
    values = (_RANDOM.normal(0, 10, (BATCH_SIZE, 100, 100)).astype(np.float32), "")
    number = (_RANDOM.normal(0, 10, BATCH_SIZE).astype(np.float32), "")
    labels = (_RANDOM.integers(0, 100, (BATCH_SIZE, 100), dtype=np.int32), "")
    mask = (_RANDOM.integers(0, 4, (BATCH_SIZE, 128, 128, 1), dtype=np.int32), "HWC")
    boxes = ([_boxes(20) for _ in range(BATCH_SIZE)], "")
    box_labels = (np.tile(np.arange(1, 21, dtype=np.int32), (BATCH_SIZE, 1)), "")
    points = (_RANDOM.normal(0, 1, (BATCH_SIZE, 1000, 2)).astype(np.float32), "")
    matrix = (_RANDOM.normal(0, 1, (BATCH_SIZE, 2, 3)).astype(np.float32), "")
    audio = (_RANDOM.normal(0, 0.1, (BATCH_SIZE, 64000)).astype(np.float32), "")
    spectrum = (np.abs(_RANDOM.normal(0, 1, (BATCH_SIZE, 257, 400))).astype(np.float32), "ft")
    jpeg = ([np.fromfile(file, np.uint8) for file in files], "")
    npy = ([_file(sample) for sample in values[0]], "")
    paths = ([np.frombuffer(str(file).encode(), np.uint8) for file in files], "")
    lz4 = ([_unpacked(sample) for sample in values[0]], "")
    window = (np.full((BATCH_SIZE, 5, 5), 0.04, np.float32), "HW")
    polygons = (np.tile(np.array([[0, 0, 3], [1, 3, 7], [2, 7, 10]], np.int32), (BATCH_SIZE, 1, 1)), "")
    vertices = (_RANDOM.normal(0, 1, (BATCH_SIZE, 10, 2)).astype(np.float32), "")
    mask_numbers = (np.tile(np.array([2, 0], np.int32), (BATCH_SIZE, 1)), "")
    maps = (np.abs(_RANDOM.normal(100, 50, (BATCH_SIZE, 256, 256))).astype(np.float32), "HW")
    angles = _RANDOM.uniform(-30, 30, BATCH_SIZE).astype(np.float32)
    factors = _RANDOM.uniform(0.6, 1.4, BATCH_SIZE).astype(np.float32)
    four = np.tile(np.arange(4, dtype=np.int32), (BATCH_SIZE, 1))
    corners = np.array([[0, 0], [0, 150], [150, 0], [150, 150]], np.int32)
    quarters = {
        "out_anchors": np.tile(corners, (BATCH_SIZE, 1, 1)),
        "shapes": np.full((BATCH_SIZE, 4, 2), 150, np.int32),
    }
    mean_std = {"mean": [124.0, 116.0, 104.0], "std": [58.0, 57.0, 57.0]}
    coin = _RANDOM.integers(0, 2, BATCH_SIZE, dtype=np.int32)
    anchors = np.concatenate([_boxes(8732)]).reshape(-1).tolist()
    sigma = _RANDOM.uniform(0.5, 2, BATCH_SIZE).astype(np.float32)
    return [
        _task("decoders.image", jpeg),
        _task("decoders.image_crop", jpeg, crop=[224, 224]),
        _task("decoders.image_random_crop", jpeg),
        _task("decoders.image_slice", jpeg, rel_start=[0.1, 0.2], rel_end=[0.7, 0.8], axis_names="HW"),
        _task("decoders.inflate", lz4, shape=[100, 100], dtype=types.FLOAT, in_dali=False),
        _task("decoders.numpy", npy),
        _task("io.file.read", paths),
        _task("peek_image_shape", jpeg),
        _task("random.beta", alpha=0.4, beta=0.4, shape=[1000]),
        _task("random.choice", values),
        _task("random.coin_flip"),
        _task("random.normal", shape=[1000]),
        _task("random.uniform", shape=[1000]),
        _task("batch_permutation"),
        _task("noise.gaussian", photo, stddev=20.0),
        _task("noise.salt_and_pepper", photo, prob=0.05),
        _task("noise.shot", photo, factor=20.0),
        _task("crop", large, crop=[224, 224]),
        _task("crop_mirror_normalize", large, crop=[224, 224], mirror=coin, **mean_std),
        _task("flip", photo, horizontal=coin),
        _task("multi_paste", photo, in_ids=four, output_size=[300, 300], **quarters),
        _task("pad", photo, axis_names="HW", align=[300]),
        _task("paste", photo, ratio=1.5, fill_value=[1, 2, 3]),
        _task("random_crop_generator", (np.full((BATCH_SIZE, 2), 256, np.int64), "")),
        _task("random_resized_crop", large, size=[224, 224]),
        _task("resize", large, size=[224, 224]),
        _task("resize_crop_mirror", large, resize_shorter=256.0, crop=[224, 224], mirror=coin),
        _task("roi_random_crop", crop_shape=[100, 100], roi_start=[10, 20], roi_end=[200, 250], in_shape=[256, 256]),
        _task("slice", photo, rel_start=[0.1, 0.2], rel_end=[0.7, 0.9], axis_names="HW"),
        _task("tensor_resize", large, sizes=[224.0, 224.0], axes=[0, 1]),
        _task("experimental.remap", photo, maps, maps, in_dali=False),
        _task("experimental.resize", large, size=[224, 224], in_dali=False),
        _task("experimental.warp_perspective", photo, matrix=[0.9, 0.2, -3.0, -0.1, 1.1, 2.0, 0.0001, 0.0002, 1.0]),
        _task("rotate", photo, angle=angles, fill_value=0.0, keep_size=True),
        _task("warp_affine", photo, matrix=[0.9, 0.2, -3.0, -0.1, 1.1, 2.0], fill_value=0.0),
        _task("bb_flip", boxes, horizontal=coin, ltrb=True),
        _task("bbox_paste", boxes, ratio=1.5, ltrb=True),
        _task("bbox_rotate", boxes, angle=angles, input_shape=[256, 256]),
        _task("box_encoder", boxes, box_labels, anchors=anchors, offset=True),
        _task("coord_flip", points, layout="xy"),
        _task("coord_transform", points, M=[0.5, 2.0, -1.0, 3.0], T=[10.0, -5.0]),
        _task("random_bbox_crop", boxes, box_labels, thresholds=[0.1, 0.5], scaling=[0.3, 1.0]),
        _task("transforms.combine", matrix, matrix),
        _task("transforms.crop", from_end=[110.0, 90.0], to_end=[1.0, 1.0]),
        _task("transforms.rotation", angle=angles, center=[5.0, 7.0]),
        _task("transforms.scale", scale=[2.0, 0.5]),
        _task("transforms.shear", shear=[0.2, -0.1]),
        _task("transforms.translation", offset=[3.0, -4.0]),
        _task("segmentation.random_mask_pixel", mask, foreground=coin),
        _task("segmentation.random_object_bbox", (mask[0][..., 0], "HW")),
        _task("segmentation.select_masks", mask_numbers, polygons, vertices),
        _task("brightness", photo, brightness=factors),
        _task("brightness_contrast", photo, brightness=factors, contrast=factors),
        _task("clahe", photo, tiles_x=8, tiles_y=8, clip_limit=2.0),
        _task("color_space_conversion", photo, image_type=types.RGB, output_type=types.YCbCr),
        _task("color_twist", photo, hue=angles, saturation=factors, brightness=factors, contrast=factors),
        _task("contrast", photo, contrast=factors),
        _task("debayer", mosaic, blue_position=[0, 1], algorithm="bilinear_ocv"),
        _task("equalize", photo),
        _task("hsv", photo, hue=angles, saturation=factors),
        _task("hue", photo, hue=angles),
        _task("lookup_table", mask, keys=[0, 2, 3], values=[0.5, 7.0, -1.0]),
        _task("saturation", photo, saturation=factors),
        _task("erase", photo, anchor=[50.0, 60.0], shape=[80.0, 90.0], axis_names="HW", fill_value=[1.0, 2.0, 3.0]),
        _task("experimental.dilate", photo, mask_size=[3, 3], in_dali=False),
        _task("experimental.erode", photo, mask_size=[3, 3], in_dali=False),
        _task("experimental.median_blur", photo, window_size=[3, 3], in_dali=False),
        _task("filter", photo, window),
        _task("gaussian_blur", photo, sigma=sigma),
        _task("grid_mask", photo, tile=60, ratio=0.4, angle=0.3),
        _task("jitter", photo, in_dali=False),
        _task("jpeg_compression_distortion", photo, quality=50),
        _task("laplacian", photo, window_size=5, normalized_kernel=True),
        _task("sphere", photo),
        _task("water", photo),
        _task("optical_flow", video, in_dali=False),
        _task("normalize", photo, axis_names="HW"),
        _task("normalize", photo, axis_names="C", form="of each pixel"),
        _task("reductions.max", photo, axis_names="HW"),
        _task("reductions.max", photo, axis_names="C", form="of each pixel"),
        _task("reductions.mean", photo, axis_names="HW"),
        _task("reductions.mean_square", photo, axis_names="HW"),
        _task("reductions.min", photo, axis_names="HW"),
        _task("reductions.rms", photo, axis_names="HW"),
        _task("reductions.std_dev", photo, number),
        _task("reductions.sum", photo, axis_names="HW"),
        _task("reductions.sum", (photo[0].astype(np.int16), "HWC"), axis_names="C", form="of each pixel, int16"),
        _task("reductions.variance", photo, number),
        _task("cast", photo, dtype=types.FLOAT),
        _task("cast_like", photo, values),
        _task("cat", photo, photo, axis_name="W"),
        _task("constant", fdata=[1.0, 2.0, 3.0], shape=[3]),
        _task("copy", photo),
        _task("element_extract", video, element_map=[5, 0]),
        _task("expand_dims", photo, axes=[0], new_axis_names="F"),
        _task("full", number, shape=[100, 100]),
        _task("full_like", photo, number),
        _task("get_property", photo, key="layout"),
        _task("one_hot", labels, num_classes=100),
        _task("ones", shape=[100, 100]),
        _task("ones_like", photo),
        _task("per_frame", values),
        _task("permute_batch", photo, indices=np.arange(BATCH_SIZE, dtype=np.int32)[::-1].copy()),
        _task("reinterpret", photo, shape=[-1]),
        _task("reshape", photo, shape=[-1]),
        _task("sequence_rearrange", video, new_order=[5, 0, 0, 1]),
        _task("shapes", photo),
        _task("squeeze", mask, axis_names="C"),
        _task("stack", values, values, axis=1),
        _task("transpose", photo, perm=[2, 0, 1]),
        _task("zeros", shape=[100, 100]),
        _task("zeros_like", photo),
        _task("audio_resample", audio, in_rate=16000.0, out_rate=22050.0),
        _task("mel_filter_bank", spectrum, nfilter=80, sample_rate=16000.0),
        _task("mfcc", spectrum, n_mfcc=20),
        _task("nonsilent_region", audio),
        _task("power_spectrum", (audio[0][:, :4096].copy(), "")),
        _task("preemphasis_filter", audio),
        _task("spectrogram", audio, nfft=512, window_length=400, window_step=160),
        _task("to_decibels", spectrum),
    ]


def define(lib: SimpleNamespace, task: Task) -> Any:
    """Define a pipeline with one operator."""

    def source(values: Any, layout: str = "") -> Any:
        return lib.fn.external_source(source=lambda: values, layout=layout or None, no_copy=True)

    def argument(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return source(value)
        return getattr(lib.types, value.name) if isinstance(value, IntEnum) else value

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None, enable_conditionals=False)
    def pipeline() -> Any:
        inputs = [source(values, layout) for values, layout in task.inputs]
        result = operator.attrgetter(task.name)(lib.fn)(*inputs, **{k: argument(v) for k, v in task.arguments.items()})
        return tuple(result) if isinstance(result, (list, tuple)) else result

    return pipeline()


def _is_internal(name: str) -> bool:
    return name.startswith(("_", "readers.")) or name.rpartition(".")[2].startswith("_")


def _timed(task: Task, options: Options, libraries: Mapping[str, SimpleNamespace]) -> dict[str, list[float]]:
    """Return CPU microseconds per sample and round for each library."""
    rounds, seconds = (1, 0.005) if options.is_smoke else (options.rounds, options.seconds / 10)
    runs: dict[str, Callable[[], int]] = {}
    times: dict[str, list[float]] = {}
    with ExitStack() as stack:
        for root, lib in libraries.items():
            if root == RIVAL and not task.in_dali:
                continue
            pipeline = define(lib, task)
            pipeline.build()
            if root == OURS:
                stack.callback(pipeline.close)
            runs[root] = lambda pipeline=pipeline: len(pipeline.run()[0])
            times[root] = []
        for _ in range(rounds):
            for root, run_batch in runs.items():
                times[root].append(take_turn(run_batch, seconds, WARM_UP_BATCHES).cpu_us_per_sample)
    return times


def main(options: Options) -> None:
    """Time all available operators, and print a table with the ratios and their median."""
    libraries = {root: library(root) for root in (OURS, RIVAL) if not missing_package([root])}
    table = Table(title="operators: CPU µs per sample", title_justify="left")
    for heading in ("", "dalify", "DALI", "dalify is"):
        table.add_column(heading, justify="right" if heading else "left")
    ratios: list[float] = []
    timed = tasks(photo_folder(options))
    check_names("operators", options, sorted({task.name for task in timed}))
    timed = [task for task in timed if task.name in (options.only or catalog.names())]
    for task in timed:
        times = _timed(task, options, libraries)
        ours = times[OURS]
        row = [f"{task.name}, {task.form}" if task.form else task.name, f"{statistics.median(ours):,.1f}", "", ""]
        if theirs := times.get(RIVAL):
            ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
            ratios.append(ratio)
            row[2:] = [f"{statistics.median(theirs):,.1f}", f"{ratio:.2f} ×"]
        table.add_row(*row)
    console = Console()
    console.print(table)
    if not options.only and (untimed := sorted(set(catalog.names()) - {task.name for task in timed} - _UNTIMED)):
        console.print(f"without a task: {', '.join(name for name in untimed if not _is_internal(name))}")
    if ratios:
        console.print(f"median of {len(ratios)} ratios: {statistics.median(ratios):.2f} ×, minimum {min(ratios):.2f} ×")
