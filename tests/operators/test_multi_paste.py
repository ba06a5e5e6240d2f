"""fn.multi_paste compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


ROW = np.arange(1, 11, dtype=np.uint8).reshape(1, 10, 1)
OTHER = ROW + 100


def regions(*values):
    return Each([np.array(value, np.int32) for value in values])


def test_chosen_samples(device):
    assert_equals_dali(
        "multi_paste", [ROW, OTHER], layouts="HWC", device=device, in_ids=[1, 0], output_size=[1, 10],
        in_anchors=regions([[0, 2], [0, 0]], [[0, 2], [0, 0]]), shapes=regions([[1, 3], [1, 2]], [[1, 3], [1, 2]]),
        out_anchors=regions([[0, 0], [0, 5]], [[0, 0], [0, 5]]),
    )  # fmt: skip


@pytest.mark.parametrize("part", [0.05, 0.15, 0.24, 0.25, 0.26, 0.3])
def test_relative_arguments(device, part):
    corners, extents = Each([np.float32([[0, part]])]), Each([np.float32([[1, part]])])
    assert_equals_dali(
        "multi_paste", [ROW], layouts="HWC", device=device, in_ids=[0], output_size=[1, 10], in_anchors_rel=corners,
        shapes_rel=extents, out_anchors_rel=corners,
    )  # fmt: skip


def test_several_inputs(device):
    assert_equals_dali(
        "multi_paste", [ROW], [OTHER], layouts="HWC", device=device, out_anchors=regions([[0, 0], [0, 5]]),
        shapes=regions([[1, 2], [1, 2]]),
    )  # fmt: skip


def test_number_of_regions_differs(device):
    assert_equals_dali(
        "multi_paste", [ROW, OTHER], layouts="HWC", device=device, in_ids=regions([0], [0, 1]),
        out_anchors=regions([[0, 1]], [[0, 0], [0, 5]]), shapes=regions([[1, 3]], [[1, 3], [1, 4]]),
    )  # fmt: skip


def test_images_of_different_extents(device):
    assert_equals_dali("multi_paste", IMAGES, layouts="HWC", device=device, in_ids=[1, 0], output_size=[60, 60])
    assert_equals_dali("multi_paste", IMAGES[:1], layouts="HWC", device=device, dtype="FLOAT", in_ids=[0])


def test_sequences(device):
    result = run_dalify(
        "multi_paste", SEQUENCES, layouts="FHWC", device=device, output_size=[40, 50], out_anchors=regions([[3, 4]])
    )[0]
    assert result.shape == (3, 40, 50, 3)
    np.testing.assert_array_equal(result[:, 3:23, 4:35], SEQUENCES[0])
    assert result.sum() == SEQUENCES[0].sum()


def test_mistakes():
    for arguments, text in (
        ({"in_anchors": regions([[0, 5]]), "shapes": regions([[1, 8]])}, "is not inside the image"),
        ({"out_anchors": regions([[0, 5]])}, "is not inside the canvas"),
        ({"in_ids": [3]}, "in_ids must be between 0 and 0"),
    ):
        with pytest.raises(IndexError, match=text):
            run_dalify("multi_paste", [ROW], layouts="HWC", **({"in_ids": [0]} | arguments))
    with pytest.raises(ShapeError, match="output_size is required for images of different extents"):
        run_dalify("multi_paste", IMAGES, layouts="HWC", in_ids=[0])
    with pytest.raises(ShapeError, match="must have the same number of channels"):
        run_dalify("multi_paste", [ROW, np.repeat(ROW, 3, 2)], layouts="HWC", in_ids=[1], output_size=[1, 10])
    with pytest.raises(ShapeError, match=r"shapes must have 2 numbers \(y and x of each region\); got 3"):
        run_dalify("multi_paste", [ROW], layouts="HWC", shapes=[1, 2, 3])
    with pytest.raises(ShapeError, match="shapes must have 2 columns; got 1 x 3"):
        run_dalify("multi_paste", [ROW], layouts="HWC", shapes=regions([[1, 2, 3]]))
    with pytest.raises(ShapeError, match=r"shapes needs a matrix per sample; the graph value has shape \(2,\)"):
        run_dalify("multi_paste", [ROW], layouts="HWC", shapes=regions([1, 2]))
    with pytest.raises(ArgumentValueError, match="specify either shapes"):
        run_dalify("multi_paste", [ROW], layouts="HWC", shapes=[1, 1], shapes_rel=[1.0, 1.0])
    with pytest.raises(ArgumentValueError, match="in_ids requires a single input"):
        run_dalify("multi_paste", [ROW], [ROW], layouts="HWC", in_ids=[0])


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_of_one_size(device, dtype, channels):
    """Regions that overlap, that leave parts uncovered, that are empty, that fill a canvas."""
    images = [RANDOM.integers(0, 100, (9, 7, channels)).astype(dtype) for _ in range(3)]
    assert_equals_dali(
        "multi_paste", images, layouts="HWC", device=device, output_size=[12, 11],
        in_ids=regions([2, 0, 1], [1, 1], [0]),
        in_anchors=regions([[1, 2], [0, 0], [3, 3]], [[0, 0], [8, 6]], [[4, 5]]),
        shapes=regions([[8, 5], [9, 7], [2, 4]], [[9, 7], [1, 1]], [[0, 2]]),
        out_anchors=regions([[4, 6], [0, 0], [1, 1]], [[3, 4], [11, 10]], [[5, 5]]),
    )  # fmt: skip


def test_random_regions_of_sequences_of_several_sizes(device):
    """Regions overlap in many ways; later ones are above earlier ones."""
    images = [
        RANDOM.integers(0, 100, (2, height, width, 3)).astype(np.int16) for height, width in ((9, 7), (6, 12), (4, 5))
    ]
    counts = (7, 1, 12)
    ids = [RANDOM.integers(0, 3, count) for count in counts]
    shapes = [RANDOM.integers(0, 5, (count, 2)) for count in counts]
    sizes = [(10, 12), (6, 5), (8, 9)]
    places = [
        np.stack([RANDOM.integers(0, limit - 4, count) for limit in size], 1)
        for size, count in zip(sizes, counts, strict=True)
    ]
    results = run_dalify(
        "multi_paste", images, layouts="FHWC", device=device, in_ids=regions(*ids), shapes=regions(*shapes),
        out_anchors=regions(*places), output_size=regions(*sizes),
    )  # fmt: skip
    for found, size, chosen, extents, corners in zip(results, sizes, ids, shapes, places, strict=True):
        expected = np.zeros((2, *size, 3), np.int16)
        for number, (height, width), (y, x) in zip(chosen, extents, corners, strict=True):
            expected[:, y : y + height, x : x + width] = images[number][:, :height, :width]
        np.testing.assert_array_equal(found, expected)
