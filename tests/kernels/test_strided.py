"""Copies of samples with strides, compared with NumPy's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dalify.data.samples import Samples
from dalify.kernels.arrays.strided import copy_strided

_VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "reversed axes": lambda x: x.T,
    "last axis first": lambda x: np.moveaxis(x, -1, 0),
    "first axis last": lambda x: np.moveaxis(x, 0, -1),
    "windows": lambda x: x[1:, 2:5],
    "steps": lambda x: x[::2, ::-3],
    "reversed elements": lambda x: x[::-1, ::-1, ::-1],
    "one index": lambda x: x[:, 0],
    "single elements": lambda x: x[0, 0, 0, ...],
    "new axes": lambda x: x[None, :, None],
    "nothing": lambda x: x[5:2],
}


def _samples(views: list[np.ndarray]) -> Samples:
    form = (len(views), views[0].ndim)
    shapes = np.array([view.shape for view in views], np.int64).reshape(form)
    strides = np.array([view.strides for view in views], np.int64).reshape(form) // views[0].itemsize
    addresses = np.array([view.__array_interface__["data"][0] for view in views])
    return Samples(addresses, shapes, views[0].dtype, views, strides)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
@pytest.mark.parametrize("name", _VIEWS)
def test_copies_equal_numpy(name: str, dtype: str) -> None:
    random = np.random.default_rng(1)
    shapes = [(9, 7, 3), (1, 12, 40), (20, 1, 1), (3, 20, 30), (2, 2, 2)]
    views = [_VIEWS[name](random.integers(0, 99, shape).astype(dtype)) for shape in shapes]
    copies = [np.full(view.shape, 100, dtype) for view in views]
    copy_strided(_samples(copies), _samples(views))
    for copy, view in zip(copies, views, strict=True):
        np.testing.assert_array_equal(copy, view)
