"""A photograph as an array and as a file."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.photos import encode_image


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (30, 40, 3), np.uint8)


@pytest.fixture(scope="module")
def encoded(photo: np.ndarray) -> bytes:
    return encode_image(photo, "png")
