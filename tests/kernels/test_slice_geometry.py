"""Begin and end of parts given in relative coordinates: those of the real DALI, also where they fall on halves."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError
from dalify.kernels.images.slice_geometry import slice_bounds
from tests.helpers.real_dali import Each, run_dali

EXTENTS, STARTS, SIZES = (5, 7, 15, 26, 35, 45), range(10), range(1, 11)
CASES = [(n, a / 10, s / 10) for n in EXTENTS for a in STARTS for s in SIZES if a + s <= 10]


def bounds(coordinates, *, are_inputs=False):
    names = ("start", "rel_start", "end", "rel_end", "shape", "rel_shape")
    arrays = {name: None if name not in coordinates else np.array(coordinates[name])[:, None] for name in names}
    begins, ends = slice_bounds(np.array([[n] for n, _, _ in CASES]), **arrays, are_inputs=are_inputs)
    return list(zip(begins[:, 0].tolist(), ends[:, 0].tolist(), strict=True))


def in_dali(*inputs, **arguments):
    data = [np.arange(1, n + 1, dtype=np.int32) for n, _, _ in CASES]
    parts = run_dali("slice", data, *inputs, axes=[0], out_of_bounds_policy="pad", **arguments)
    return [(int(part[0]) - 1, int(part[0]) - 1 + len(part)) if len(part) else None for part in parts]


def assert_same(ours, theirs):
    assert [one for one, other in zip(ours, theirs, strict=True) if other is not None and one != other] == []


RELATIVE_STARTS = np.float32([a for _, a, _ in CASES])
RELATIVE_SIZES = np.float32([s for _, _, s in CASES])
RELATIVE_ENDS = np.float32([a + s for _, a, s in CASES])
SECOND = np.full(len(CASES), 1, np.int32)


@pytest.mark.parametrize(
    "coordinates",
    [
        {"rel_start": RELATIVE_STARTS, "rel_end": RELATIVE_ENDS},
        {"rel_start": RELATIVE_STARTS, "rel_shape": RELATIVE_SIZES},
        {"start": SECOND, "rel_shape": RELATIVE_SIZES},
        {"rel_start": RELATIVE_STARTS},
    ],
    ids=lambda coordinates: "+".join(coordinates),
)
def test_arguments(coordinates):
    each = {name: Each([value[None] for value in values]) for name, values in coordinates.items()}
    assert_same(bounds(coordinates), in_dali(**each))


def test_inputs():
    coordinates = {"rel_start": RELATIVE_STARTS, "rel_shape": RELATIVE_SIZES}
    anchors, shapes = ([value[None] for value in values] for values in coordinates.values())
    assert_same(bounds(coordinates, are_inputs=True), in_dali(anchors, shapes))


def test_empty_part():
    extents = np.array([[5]])
    begins, ends = slice_bounds(
        extents, start=None, rel_start=[[0.7]], end=None, rel_end=None, shape=None, rel_shape=[[0.0]], are_inputs=False
    )
    assert begins == ends == 4


def test_ends_before_it_begins():
    extents = np.array([[5], [5]])
    with pytest.raises(ArgumentValueError, match="ends at 2, before its start 3") as caught:
        slice_bounds(
            extents,
            start=np.array([[1], [3]]),
            rel_start=None,
            end=np.array([[2], [2]]),
            rel_end=None,
            shape=None,
            rel_shape=None,
            are_inputs=False,
        )
    assert caught.value.sample == 1
