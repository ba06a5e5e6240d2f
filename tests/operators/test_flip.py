"""fn.flip against numpy and the real DALI."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import Each, run_dali

SHAPES = {"HWC": (4, 5, 3), "CHW": (3, 4, 5), "FHWC": (2, 4, 5, 3), "DHWC": (6, 4, 5, 1), "FCDHW": (2, 3, 4, 5, 6)}


def samples(layout: str, count: int, dtype: str = "uint8") -> list[np.ndarray]:
    generator = np.random.default_rng(len(layout))
    return [generator.integers(0, 256, SHAPES[layout]).astype(dtype) for _ in range(count)]


@pytest.mark.parametrize("layout", SHAPES)
def test_axes_per_sample(layout, device):
    choices = list(itertools.product([0, 1], repeat=3 if "D" in layout else 2))
    inputs = samples(layout, len(choices), "float32")
    flags = [np.array([choice[i] for choice in choices], np.int32) for i in range(len(choices[0]))]
    arguments = dict(zip(["horizontal", "vertical", "depthwise"], map(Each, flags), strict=False))
    got = run_dalify("flip", inputs, layouts=layout, device=device, **arguments)
    theirs = run_dali("flip", inputs, layouts=layout, **arguments)
    for n, choice in enumerate(choices):
        axes = [layout.index(letter) for letter, flag in zip("WHD", choice, strict=False) if flag]
        np.testing.assert_array_equal(got[n], np.flip(inputs[n], axes))
        np.testing.assert_array_equal(got[n], theirs[n])


def test_horizontally_by_default(device):
    inputs = samples("HWC", 2)
    got = run_dalify("flip", inputs, layouts="HWC", device=device)
    np.testing.assert_array_equal(got[1], inputs[1][:, ::-1])


def test_images_have_no_depth(device):
    inputs = samples("HWC", 2)
    got = run_dalify("flip", inputs, layouts="HWC", device=device, depthwise=1, horizontal=0)
    for one, other in zip(got, inputs, strict=True):
        np.testing.assert_array_equal(one, other)
