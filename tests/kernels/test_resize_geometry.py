"""Sizes and source windows of resizes, compared with a reference in Python that follows the documentation of DALI."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError
from dalify.kernels.images.resize_geometry import (
    MODES,
    ROUNDINGS,
    chunk_geometry,
    chunk_tensor_geometry,
    resize_geometry,
    tensor_geometry,
)

OF_SHAPE = ("size", "resize_shorter", "resize_longer", "resize_x", "resize_y", "resize_z", "roi_start", "roi_end")
WHOLE = {"round": lambda size: math.floor(size + 0.5), "truncate": math.floor, "ceil": math.ceil}


def float32(value: float) -> float:
    return float(np.float32(value))


def each(values: Sequence[float], axes: int) -> list[float]:
    return [float(value) for value in values] * (axes if len(values) == 1 else 1)


def reference(
    extents: Sequence[int],
    wanted: Sequence[float],
    mode: str,
    max_size: Sequence[float] | None,
    region: tuple[Sequence[float], Sequence[float]] | None,
    subpixel_scale: bool,
    rounding: str,
    alignment: Sequence[float],
) -> tuple[list[int], list[float], list[float]]:
    axes = range(len(extents))
    starts, ends = ([0.0] * len(extents), [float(max(n, 1)) for n in extents]) if region is None else map(list, region)
    for axis in axes:
        low, high = sorted((starts[axis], ends[axis]))
        if high - low < 1e-3:
            is_mirrored = starts[axis] > ends[axis]
            pair = float32(low - 0.5e-3), float32(high + 0.5e-3)
            starts[axis], ends[axis] = pair[::-1] if is_mirrored else pair
    spans = [float32(abs(ends[axis] - starts[axis])) for axis in axes]
    limits = [math.inf] * len(extents)
    if max_size is not None:
        limits = [limit if limit > 0 else math.inf for limit in each(max_size, len(extents))]
    scales = [float32(abs(wanted[axis]) / spans[axis]) for axis in axes if wanted[axis]]
    if mode in ("not_larger", "not_smaller"):
        scale = (min if mode == "not_larger" else max)(scales, default=1.0)
        scale = min(scale, *(float32(limits[axis] / spans[axis]) for axis in axes))
        given = [(limits[axis], abs(wanted[axis])) for axis in axes]
        sizes = [
            next((value for value in pair if value and float32(value / span) == scale), span * scale)
            for pair, span in zip(given, spans, strict=True)
        ]
    else:
        missing = 1.0
        if mode == "default" and scales:
            missing = float32(math.prod(scales) ** (1 / len(scales)))
        sizes = [min(abs(wanted[axis]) or spans[axis] * missing, limits[axis]) for axis in axes]
    whole: list[int] = []
    for axis in axes:
        exact = float32(max(sizes[axis], 0.1)) if sizes[axis] else 0.0
        pixels = max(1, WHOLE[rounding](exact))
        start, end = starts[axis], ends[axis]
        if wanted[axis] < 0:
            start, end = end, start
        if subpixel_scale and exact:
            fixed = (1 - alignment[axis]) * start + alignment[axis] * end
            if pixels != exact:
                start, end = (fixed + (edge - fixed) * (pixels / exact) for edge in (start, end))
        starts[axis], ends[axis] = start, end
        whole.append(pixels if extents[axis] else 0)
    return whole, starts, ends


def some_extents(chance: random.Random, axes: int) -> list[int]:
    return [chance.choice([0, 1, 2, 7, 375, 500, chance.randrange(1, 5000)]) for _ in range(axes)]


def some_size(chance: random.Random) -> float:
    return chance.choice([0, 1, 2, 224, 256, -50, -1, 0.3, chance.uniform(-600, 600), chance.uniform(0, 600)])


def some_region(chance: random.Random, extents: Sequence[int]) -> tuple[bool, dict[str, Any], Any]:
    """Return whether it is relative, the arguments, and the region in pixels."""
    if chance.random() < 0.6:
        return False, {}, None
    is_relative = chance.random() < 0.5
    top = 1 if is_relative else 600
    edges = [[chance.choice([0, top, top / 2, chance.uniform(-0.3, 1.3) * top]) for _ in extents] for _ in range(2)]
    units = [np.float32(max(extent, 1)) if is_relative else np.float32(1) for extent in extents]
    pixels = tuple([float(np.float32(value) * unit) for value, unit in zip(edge, units, strict=True)] for edge in edges)
    return is_relative, {"roi_start": edges[0], "roi_end": edges[1]}, pixels


def some_options(chance: random.Random, axes: int) -> dict[str, Any]:
    return {
        "mode": chance.choice(MODES),
        "max_size": chance.choice([None, None, [300], [chance.uniform(0, 500) for _ in range(axes)], [-1]]),
        "subpixel_scale": chance.random() < 0.7,
    }


@pytest.mark.parametrize("seed", range(400))
def test_resize(seed: int) -> None:
    chance = random.Random(seed)
    axes = chance.choice([1, 2, 2, 3])
    extents, options = some_extents(chance, axes), some_options(chance, axes)
    is_relative, region, pixels = some_region(chance, extents)
    mode, way = options["mode"], chance.randrange(4)
    if way < 2:
        name, mode = (("resize_shorter", "not_smaller"), ("resize_longer", "not_larger"))[way]
        size = abs(some_size(chance))
        given, wanted = {name: size}, [size] * axes
    elif way == 2:
        wanted = [some_size(chance) for _ in range(axes)]
        given = {"size": wanted}
    else:
        wanted = [some_size(chance) for _ in range(axes)]
        given = dict(zip(("resize_z", "resize_y", "resize_x")[3 - axes :], wanted, strict=True))
    wanted = [value if extent else 0.0 for value, extent in zip(wanted, extents, strict=True)]
    expected = reference(
        extents, wanted, mode, options["max_size"], pixels, options["subpixel_scale"], "round", [0.5] * axes
    )
    arguments = {**dict.fromkeys(OF_SHAPE), **given, **region}
    found = resize_geometry(extents, **options, roi_relative=is_relative, **arguments)
    assert (list(found.size), list(found.start), list(found.end)) == expected


@pytest.mark.parametrize("seed", range(400))
def test_tensor_resize(seed: int) -> None:
    chance = random.Random(seed)
    axes = chance.choice([1, 2, 3])
    extents, options = some_extents(chance, axes), some_options(chance, axes)
    is_relative, region, pixels = some_region(chance, extents)
    sizes = scales = None
    if chance.random() < 0.5:
        sizes = wanted = [some_size(chance) for _ in range(axes)]
    else:
        options["mode"] = chance.choice(["default", "stretch"])
        scales = [chance.choice([0.5, 0.7, 2, -1, chance.uniform(-3, 3)]) for _ in range(axes)]
        wanted = [float(np.float32(max(n, 1)) * np.float32(by)) for n, by in zip(extents, scales, strict=True)]
    rounding, alignment = chance.choice(ROUNDINGS), [chance.choice([0, 0.5, 1, chance.random()]) for _ in range(axes)]
    expected = reference(
        extents, wanted, options["mode"], options["max_size"], pixels, options["subpixel_scale"], rounding, alignment
    )
    found = tensor_geometry(
        extents,
        sizes=sizes,
        scales=scales,
        **options,
        **{"roi_start": None, "roi_end": None, **region},
        roi_relative=is_relative,
        size_rounding=rounding,
        alignment=alignment,
    )
    assert (list(found.size), list(found.start), list(found.end)) == expected


def test_a_chunk_equals_its_samples() -> None:
    chance = random.Random(1)
    extents = np.array([some_extents(chance, 2) for _ in range(50)])
    sizes = np.array([[some_size(chance), some_size(chance)] for _ in range(50)], np.float32)
    ends = np.array([[chance.uniform(-1, 2), chance.uniform(-1, 2)] for _ in range(50)], np.float32)
    options: dict[str, Any] = {"mode": "default", "max_size": [400.0], "roi_relative": True, "subpixel_scale": True}
    for given in (sizes, list(sizes)):
        found = chunk_geometry(extents, size=given, roi_start=np.zeros((50, 1)), roi_end=ends, **options)
        for n in range(50):
            arguments = {**dict.fromkeys(OF_SHAPE), "size": sizes[n], "roi_start": [0], "roi_end": ends[n]}
            one = resize_geometry(extents[n].tolist(), **options, **arguments)
            assert (one.size, one.start, one.end) == tuple(tuple(values[n].tolist()) for values in found)


def test_a_chunk_of_tensors_equals_its_samples() -> None:
    chance = random.Random(2)
    extents = np.array([some_extents(chance, 2) for _ in range(50)])
    scales = np.array([[chance.uniform(-2, 2), chance.uniform(-2, 2)] for _ in range(50)], np.float32)
    points = np.array([[chance.random()] for _ in range(50)], np.float32)
    options: dict[str, Any] = {"mode": "default", "max_size": None, "roi_relative": False, "subpixel_scale": True}
    options |= {"sizes": None, "size_rounding": "ceil", "roi_start": None, "roi_end": None}
    for given in (scales, list(scales)):
        found = chunk_tensor_geometry(extents, scales=given, alignment=points, **options)
        for n in range(50):
            one = tensor_geometry(extents[n].tolist(), scales=scales[n], alignment=points[n], **options)
            assert (one.size, one.start, one.end) == tuple(tuple(values[n].tolist()) for values in found)


@pytest.mark.parametrize("bad", [[1, 2, 3], [1, math.nan], [math.inf]])
def test_an_error_names_the_sample(bad: list[float]) -> None:
    options: dict[str, Any] = {"mode": "default", "max_size": None, "roi_relative": False, "subpixel_scale": True}
    with pytest.raises(ArgumentValueError, match="one number or 2") as caught:
        chunk_geometry(np.full((3, 2), 9), size=[np.ones(2), np.array(bad), np.ones(1)], **options)
    assert caught.value.sample == 1
