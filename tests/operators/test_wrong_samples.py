"""Errors of per-sample arguments name the sample, on both devices and for images of equal and of different sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.base.errors import ArgumentValueError

BAD = 3
# Operator, argument, good and bad values, text of the error, shape of a pixel.
OPERATORS: dict[str, tuple[Callable[..., Any], str, list[int], list[int], str, tuple[int, ...]]] = {
    "median_blur": (fn.experimental.median_blur, "window_size", [3, 3], [3, 4], r"\[3, 4\]", (3,)),
    "debayer": (fn.debayer, "blue_position", [0, 1], [0, 2], r"\[0, 2\]", ()),
    "dilate": (fn.experimental.dilate, "mask_size", [3, 3], [3, 0], r"\[3, 0\]", (3,)),
    "laplacian": (fn.laplacian, "window_size", [3, 5], [3, 4], "4", (3,)),
    "gaussian_blur": (fn.gaussian_blur, "window_size", [3, 5], [3, 4], "4", (3,)),
    "tensor_resize": (partial(fn.tensor_resize, axes=[0]), "sizes", [3], [3, 4], r"\[3.0, 4.0\]", (3,)),
    "rotate": (partial(fn.rotate, angle=9), "size", [3, 4], [-3, 4], r"\[-3.0, 4.0\]", (3,)),
    "warp_affine": (
        partial(fn.warp_affine, matrix=[1, 0, 0, 0, 1, 0]),
        "size",
        [3, 4],
        [3, -4],
        r"\[3.0, -4.0\]",
        (3,),
    ),
}


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("step", [0, 2], ids=["equal sizes", "different sizes"])
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.usefixtures("gpu")
def test_the_sample_is_named(name: str, step: int, device: str) -> None:
    operator, argument, good, bad, text, channels = OPERATORS[name]
    layout = "HWC" if channels else "HW"

    @pipeline_def(batch_size=5, num_threads=1, device_id=None if device == "cpu" else 0)
    def pipeline() -> Any:
        images = fn.external_source(
            lambda: [np.zeros((8, 8 + step * number, *channels), np.uint8) for number in range(5)],
            layout=layout,
            dtype=types.UINT8,
        )
        values = fn.external_source(lambda: [np.array(bad if number == BAD else good, np.int32) for number in range(5)])
        return operator(images.gpu() if device == "gpu" else images, **{argument: values})

    pipe = pipeline()
    for _ in range(2):
        with pytest.raises(ArgumentValueError, match=rf"{argument} must (?:not )?be .* got {text}") as caught:
            pipe.run()
        assert caught.value.sample == BAD
