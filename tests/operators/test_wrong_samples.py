"""Errors of per-sample arguments name the sample, on both devices and for images of equal and of different sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.base.errors import ArgumentValueError

BAD = 3
OPERATORS: dict[str, tuple[Callable[..., Any], list[int], list[int], tuple[int, ...]]] = {
    "window_size": (fn.experimental.median_blur, [3, 3], [3, 4], (3,)),
    "blue_position": (fn.debayer, [0, 1], [0, 2], ()),
}


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("step", [0, 2], ids=["equal sizes", "different sizes"])
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.usefixtures("gpu")
def test_the_sample_is_named(name: str, step: int, device: str) -> None:
    operator, good, bad, channels = OPERATORS[name]
    layout = "HWC" if channels else "HW"

    @pipeline_def(batch_size=5, num_threads=1, device_id=None if device == "cpu" else 0)
    def pipeline() -> Any:
        images = fn.external_source(
            lambda: [np.zeros((8, 8 + step * number, *channels), np.uint8) for number in range(5)],
            layout=layout,
            dtype=types.UINT8,
        )
        values = fn.external_source(lambda: [np.array(bad if number == BAD else good, np.int32) for number in range(5)])
        return operator(images.gpu() if device == "gpu" else images, **{name: values})

    pipe = pipeline()
    for _ in range(2):
        with pytest.raises(ArgumentValueError, match=rf"{name} must be .* got \[{bad[0]}, {bad[1]}\]") as caught:
            pipe.run()
        assert caught.value.sample == BAD
