"""Numbers in messages agree with their nouns."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.wording import counted


@pytest.mark.parametrize(
    ("count", "noun", "expected"),
    [
        (0, "sample", "0 samples"),
        (1, "sample", "1 sample"),
        (1500, "sample", "1,500 samples"),
        (np.int64(2), "axis", "2 axes"),
        (1, "axis", "1 axis"),
        (3, "vertex", "3 vertices"),
        (2, "box", "2 boxes"),
        (2, "batch", "2 batches"),
        (2, "entry", "2 entries"),
        (None, "dimension", "an unknown number of dimensions"),
    ],
)
def test_counted(count: int | None, noun: str, expected: str) -> None:
    assert counted(count, noun) == expected
