"""Indexing of graph values compared with the real DALI, on both devices."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dalify
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DTypeError, IndexingError, LayoutError, ShapeError
from tests.helpers.both import assert_same_as_dali, run_here
from tests.helpers.messages import own_text

RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(0, 256, (4, 6, 3), dtype=np.uint8) for _ in range(3)]
RAGGED = [RNG.integers(0, 256, (rows, 6, 3), dtype=np.uint8) for rows in (4, 2, 5)]
INDICES = [np.int32(value) for value in (1, -1, 0)]


@pytest.mark.parametrize("samples", [IMAGES, RAGGED])
def test_constant_indices(device, samples):
    def graph(dali, x):
        return [
            x[0], x[-1], x[:, 2], x[:, :, 0], x[0, 1, 2], x[:], x[1:], x[:-1], x[::2], x[::-1], x[:, ::-2],
            x[3:1:-1], x[-2:100], x[100:-100:-1], x[4:1], x[1, 5:0:-2, ::-1],
            x[dali.newaxis("F")], x[dali.newaxis("F"), :, 0], x[dali.newaxis], x[:, dali.newaxis, 1:3],
        ]  # fmt: skip

    assert_same_as_dali(graph, samples, layouts="HWC", device=device)


def test_indices_of_each_sample(device):
    def graph(dali, x, index):
        return [x[index], x[:, index], x[index:], x[:index], x[0, index : index + 2], x[index, ::-1, index]]

    assert_same_as_dali(graph, IMAGES, INDICES, layouts=["HWC", ""], device=device)


def test_ellipsis_stands_for_the_axes_between(device):
    results = run_here(
        lambda dali, x: [x[..., 0], x[1, ..., 2], x[...], x[..., None]], IMAGES, layouts="HWC", device=device
    )
    expected = [[x[..., 0], x[1, ..., 2], x, x[..., None]] for x in IMAGES]
    assert [layout for layout, _ in results] == ["HW", "W", "HWC", ""]
    for number, (_, samples) in enumerate(results):
        for sample, wanted in zip(samples, expected, strict=True):
            np.testing.assert_array_equal(sample, wanted[number])


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (lambda x, i: x[4], IndexingError, "index 4 is out of range for axis 0 of extent 4"),
        (lambda x, i: x[i + 7], IndexingError, "out of range for axis 0 of extent 4"),
        (lambda x, i: x[0, 0, 0, 0], IndexingError, "too many indices"),
        (lambda x, i: x[..., ...], IndexingError, "only one"),
        (lambda x, i: x[::0], ArgumentValueError, "step of a slice must not be zero"),
        (lambda x, i: x[:: i - i], ArgumentValueError, "step of a slice must not be zero"),
        (lambda x, i: x[1.5], ArgumentTypeError, "must be an integer"),
        (lambda x, i: x[[0, 2]], ArgumentTypeError, r"(?s)must be an integer.*fn\.stack\(x\[0\], x\[2\]\)"),
        (lambda x, i: x[i * 1.5], DTypeError, "must be an integer; got float32"),
        (lambda x, i: x[x], ShapeError, r"(?s)scalar integer per sample; got 3 dimensions.*Masks are not indices"),
        (lambda x, i: x[dalify.newaxis("F"), dalify.newaxis], LayoutError, "either all new axes or none"),
    ],
)
def test_mistakes_are_named(mistake, error, message):
    with pytest.raises(error) as caught:
        run_here(lambda dali, x, i: [mistake(x, i)], IMAGES, INDICES, layouts=["HWC", ""])
    assert re.search(message, own_text(caught.value))


def test_a_named_axis_needs_a_layout():
    with pytest.raises(LayoutError, match="requires data with a layout"):
        run_here(lambda dali, x: [x[dalify.newaxis("F")]], IMAGES)


def test_an_index_out_of_range_names_the_sample():
    with pytest.raises(IndexingError, match="sample 1 of the batch"):
        run_here(lambda dali, x, i: [x[i]], RAGGED, [np.int32(3), np.int32(3), np.int32(3)])
