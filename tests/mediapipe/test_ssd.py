"""The operators of SSD compared with their formulas: anchors, matching, windows, mirrors."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats

from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.mediapipe import fn
from dalify.mediapipe.media_types import MetadataOps
from dalify.mediapipe.nodes.ssd import default_boxes
from dalify.mediapipe.plugins.iterator_pytorch import HPUSsdPytorchIterator
from tests.mediapipe.graphs import BATCH, Graph, given, run
from tests.mediapipe.programs import SsdPipe
from tests.mediapipe.ssd_program import SSDCropping
from tests.mediapipe.test_programs import coco, decoded

__all__ = ["coco"]

RANDOM = np.random.default_rng(1)
LENGTHS = np.array([1, 4, 30], np.uint32)
SIZES = np.array([[100, 200], [333, 500], [640, 481]], np.uint32)
BOXES = np.zeros((BATCH, 200, 4), np.float32)
LABELS = np.zeros((BATCH, 200), np.uint32)
for index, length in enumerate(LENGTHS):
    BOXES[index, :length] = np.sort(RANDOM.random((length, 2, 2)), axis=1).reshape(-1, 4)
    LABELS[index, :length] = RANDOM.integers(1, 81, length)
BOXES[0, 0] = 0.2, 0.25, 0.8, 0.9
FLIP = np.array([1, 0, 1], np.uint8)


def inputs() -> tuple[Any, ...]:
    return given(SIZES), given(BOXES), given(LABELS), given(LENGTHS)


def anchors() -> np.ndarray:
    """The 8732 anchors one after the other, in float64: centers and extents."""
    found = []
    sides = [21, 45, 99, 153, 207, 261, 315]
    for level, (cells, step) in enumerate(zip([38, 19, 10, 5, 3, 1], [8, 16, 32, 64, 100, 300], strict=True)):
        side, following = sides[level] / 300, sides[level + 1] / 300
        forms = [(side, side), (math.sqrt(side * following),) * 2]
        for ratio in [2] if level in (0, 4, 5) else [2, 3]:
            forms.append((side * ratio**0.5, side / ratio**0.5))
            forms.append((side / ratio**0.5, side * ratio**0.5))
        for width, height in forms:
            for row in range(cells):
                for column in range(cells):
                    x, y = (column + 0.5) * step / 300, (row + 0.5) * step / 300
                    found.append((min(x, 1.0), min(y, 1.0), min(width, 1.0), min(height, 1.0)))
    return np.array(found)


def overlaps(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    common = (high - low).clip(0).prod(axis=1)
    return common / ((box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(axis=1) - common)


def corners(centered: np.ndarray) -> np.ndarray:
    return np.concatenate([centered[:, :2] - centered[:, 2:] / 2, centered[:, :2] + centered[:, 2:] / 2], axis=1)


def test_anchors() -> None:
    assert default_boxes().shape == (8732, 4)
    np.testing.assert_allclose(default_boxes(), corners(anchors()), atol=1e-6)


def test_matching() -> None:
    boxes, labels = run(lambda: fn.SSDEncode()(*inputs()[1:]))
    assert boxes.dtype == np.float32
    assert labels.dtype == LABELS.dtype
    all_anchors = anchors()
    for index, length in enumerate(LENGTHS):
        own = BOXES[index, :length].astype(np.float64)
        found = np.stack([overlaps(box, corners(all_anchors)) for box in own])
        best, box_of = found.max(axis=0), found.argmax(axis=0)
        is_open = np.zeros(8732, bool)  # as good as another anchor but for rounding: either may be taken
        for box, row in enumerate(found):
            best[row.argmax()], box_of[row.argmax()] = 2, box
            equals = row > row.max() - 1e-6
            is_open |= equals if equals.sum() > 1 else False
        assert is_open.sum() < 150
        expected, classes = all_anchors.copy(), np.zeros(8732)
        for anchor in np.flatnonzero(best > 0.5):
            left, top, right, bottom = own[box_of[anchor]]
            expected[anchor] = (left + right) / 2, (top + bottom) / 2, right - left, bottom - top
            classes[anchor] = LABELS[index, box_of[anchor]]
        np.testing.assert_array_equal(labels[index][~is_open], classes[~is_open])
        np.testing.assert_allclose(boxes[index][~is_open], expected[~is_open], atol=1e-6)


def test_mirrors() -> None:
    (found,) = run(lambda: fn.SSDBBoxFlip()(given(FLIP), given(BOXES), given(LENGTHS)))
    for index, length in enumerate(LENGTHS):
        left, top, right, bottom = BOXES[index, :length].T
        expected = [1 - right, top, 1 - left, bottom] if FLIP[index] else [left, top, right, bottom]
        np.testing.assert_allclose(found[index, :length], np.stack(expected, axis=1), atol=1e-7)
    assert not found[0, 1:].any()  # what only fills up stays as it is


def test_windows() -> None:
    """Each window is one of those that SSD allows, all kinds occur, and boxes and labels follow it."""

    def make() -> Any:
        return fn.SSDCropWindowGen(seed=5)(*inputs())

    pipe = Graph(make)
    min_overlaps, whole = [], 0
    for _ in range(60):
        boxes, labels, lengths, windows = (output.as_nparray() for output in pipe.run())
        for index, length in enumerate(LENGTHS):
            own, count = BOXES[index, :length].astype(np.float64), int(lengths[index])
            scale = SIZES[index][[1, 0]].astype(np.float64)
            x, y, width, height = windows[index].astype(np.float64)
            pixels = np.concatenate([np.array([x, y]) * scale, np.array([width, height]) * scale])
            np.testing.assert_allclose(pixels, np.rint(pixels), atol=1e-2)
            window = np.array([x, y, x + width, y + height])
            assert window.min() >= 0
            assert window.max() <= 1 + 1e-6
            if (width, height) == (1, 1):
                whole += 1
                np.testing.assert_allclose(boxes[index, :count], own, atol=1e-6)
                continue
            rounding = 1 / scale
            assert (np.array([width, height]) > 0.3 - rounding).all()
            assert 0.45 < width / height < 2.2
            centers = (own[:, :2] + own[:, 2:]) / 2
            margin = 2 * rounding.max()
            surely = ((centers > window[:2] + margin) & (centers < window[2:] - margin)).all(axis=1)
            perhaps = ((centers > window[:2] - margin) & (centers < window[2:] + margin)).all(axis=1)
            assert surely.sum() <= count <= perhaps.sum()
            assert count > 0
            assert not boxes[index, count:].any()
            kept = np.flatnonzero(perhaps) if count == perhaps.sum() else np.flatnonzero(surely)
            min_overlaps.append(overlaps(window, own).min())
            if len(kept) != count:
                continue
            moved = (np.clip(own[kept], window[[0, 1, 0, 1]], window[[2, 3, 2, 3]]) - window[[0, 1, 0, 1]]) / [
                width, height, width, height,
            ]  # fmt: skip
            np.testing.assert_allclose(boxes[index, :count], moved, atol=4 * margin)
            np.testing.assert_array_equal(labels[index, :count], LABELS[index, kept])
    assert whole > 20
    assert any(least > 0.3 for least in min_overlaps)
    assert any(least < 0.1 for least in min_overlaps)


def test_windows_are_distributed_as_those_of_the_reference() -> None:
    """Compared with the reference programs of SSD: how often the crop is the whole image, its area, the boxes in it."""
    count = 400
    boxes, labels = torch.from_numpy(BOXES[1, :4].copy()), torch.arange(4)
    expected = []
    crop = SSDCropping()
    random.seed(1)
    size = (1000, 1000)
    image = Image.new("L", size)
    for _ in range(count * BATCH):
        part, extents, left, _ = crop(image, size, boxes.clone(), labels)
        expected.append((extents == size, part.width * part.height / 1e6, len(left)))
    same = [np.repeat(array[1:2], BATCH, axis=0) for array in (BOXES, LABELS, LENGTHS)]

    def make() -> Any:
        return fn.SSDCropWindowGen(seed=2)(given(np.full((BATCH, 2), 1000, np.uint32)), *map(given, same))

    pipe = Graph(make)
    found = []
    for _ in range(count):
        _, _, left, windows = (output.as_nparray() for output in pipe.run())
        areas = windows[:, 2] * windows[:, 3]
        found += list(zip(areas == 1, areas, left, strict=True))
    first, second = np.array(expected, np.float64), np.array(found, np.float64)
    deviation = np.sqrt((first.var(axis=0) + second.var(axis=0)) / len(first))
    assert (np.abs(first.mean(axis=0) - second.mean(axis=0)) < 4 * deviation).all()
    for column in (1, 2):
        assert stats.ks_2samp(first[:, column], second[:, column]).pvalue > 1e-3


def test_minimum_overlaps_are_kept() -> None:
    single = given(BOXES[:1].repeat(BATCH, axis=0)), given(LABELS), given(np.ones(BATCH, np.uint32))

    def make() -> Any:
        return fn.SSDCropWindowGen(seed=5, min_iou=[0.5] * 20, num_iterations=50)(given(SIZES), *single)

    pipe = Graph(make)
    windows = np.concatenate([pipe.run()[3].as_nparray() for _ in range(30)]).astype(np.float64)
    reached = [overlaps(BOXES[0, 0], np.concatenate([[x, y, x + w, y + h]])[None])[0] for x, y, w, h in windows]
    assert np.mean(np.array(reached) > 0.48) > 0.7  # the others are all of the image, and any window


def test_several_steps_at_once() -> None:
    def make(**options: Any) -> Any:
        sizes, boxes, labels, lengths = inputs()
        return fn.SSDMetadata(seed=5, workers=2, **options)(lengths, sizes, boxes, labels, lengths, given(FLIP))

    def one_by_one() -> Any:
        sizes, boxes, labels, lengths = inputs()
        boxes, labels, left, windows = fn.SSDCropWindowGen(seed=5)(sizes, boxes, labels, lengths)
        encoded = fn.SSDEncode()(fn.SSDBBoxFlip()(given(FLIP), boxes, left), labels, left)
        return lengths, sizes, *encoded, left, windows

    for found, expected in zip(run(make), run(one_by_one), strict=True):
        np.testing.assert_array_equal(found, expected)
    flipped = run(lambda: make(serialize=[MetadataOps.flip]))
    np.testing.assert_array_equal(flipped[2], run(lambda: fn.SSDBBoxFlip()(given(FLIP), *inputs()[1::2]))[0])
    assert len(flipped) == 5


def test_mistakes() -> None:
    sizes, boxes, labels, lengths = inputs()
    with pytest.raises(ArgumentTypeError, match="needs the input flip"):
        run(lambda: fn.SSDMetadata()(lengths, sizes, boxes, labels, lengths))
    with pytest.raises(ArgumentValueError, match=r"MetadataOps\.encode"):
        run(lambda: fn.SSDMetadata(serialize=[7])(lengths, sizes, boxes, labels, lengths))
    with pytest.raises(ArgumentValueError, match="num_iterations"):
        run(lambda: fn.SSDCropWindowGen(num_iterations=0)(sizes, boxes, labels, lengths))


def test_a_program(photo_folder: Path, photo_list: list[tuple[Path, int]], coco: Path) -> None:
    """Images follow the windows and the mirrors that the boxes follow."""
    pipe = SsdPipe(str(photo_folder), str(coco), 4)
    images, ids, (heights, widths), boxes, labels = next(iter(HPUSsdPytorchIterator(mediapipe=pipe)))
    assert images.shape == (4, 3, 300, 300)
    assert ids.tolist() == [100, 102, 103, 104]
    assert (int(heights[0]), int(widths[0])) == decoded(photo_list[0][0]).shape[:2]
    assert boxes.shape == (4, 8732, 4)
    assert (labels > 0).any(dim=1).all()
    outputs = [output.as_cpu().as_nparray() for output in pipe.last_outputs]
    assert (outputs[6] < 1).any()  # a window
    for image, number, place, flips in zip(images.cpu().numpy(), (0, 2, 3, 4), outputs[6], outputs[7], strict=True):
        photo = decoded(photo_list[number][0])
        height, width = photo.shape[:2]
        x, y, w, h = np.rint(place * [width, height, width, height]).astype(int)
        part = Image.fromarray(photo[y : y + h, x : x + w]).resize((300, 300), Image.Resampling.BILINEAR)
        expected = np.asarray(part, np.float32).transpose(2, 0, 1)
        difference = np.abs(image - (expected[..., ::-1] if flips else expected))
        assert np.quantile(difference, 0.98) < 3  # at its border a part is decoded with other colors than the whole
