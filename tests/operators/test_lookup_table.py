"""fn.lookup_table compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


KEYS = [0, 2, 3, 4, 5, 3]


@pytest.mark.parametrize(
    "arguments",
    [
        {"keys": KEYS, "values": [0.2, 0.4, 0.5, 0.6, 0.7, 0.1], "default_value": 0.99},
        {"keys": KEYS, "values": [10.5, 300, 3, 4, 5, -3], "dtype": "UINT8"},
        {"keys": [200, 255, 300], "values": [1, 2, 3], "dtype": "INT32"},
        {},
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.int8])
def test_integers(device, arguments, dtype):
    data = [image.astype(dtype) for image in IMAGES]
    assert_equals_dali("lookup_table", data, device=device, **arguments)


def test_keys_outside_of_the_table(device):
    data = [np.array([1, 4, -1, 0, 100, 2, 3, 70000], np.int32)]
    assert_equals_dali("lookup_table", data, device=device, keys=KEYS, values=[1, 2, 3, 4, 5, 6], default_value=9.0)


def test_mistakes():
    with pytest.raises(DTypeError, match="must have integer elements"):
        run_dalify("lookup_table", [np.zeros(3, np.float32)])
    with pytest.raises(ArgumentValueError, match="must have the same length; got 2 and 1"):
        run_dalify("lookup_table", IMAGES, keys=[1, 2], values=[1])
    with pytest.raises(ArgumentValueError, match="between 0 and 65535; got -1 to 2"):
        run_dalify("lookup_table", IMAGES, keys=[-1, 2], values=[1, 2])
