"""Random programs give the same results in eager mode as in a pipeline."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify import eager, fn, pipeline_def, types

COUNT = 3

sizes = st.integers(2, 12)
factors = st.floats(0.25, 2.0, width=32)
# One step: an operator from images to images, and its arguments; a list of COUNT values is one for each sample.
STEPS: dict[str, dict[str, Any]] = {
    "flip": {"horizontal": st.integers(0, 1), "vertical": st.integers(0, 1)},
    "resize": {"size": st.tuples(sizes, sizes)},
    "rotate": {"angle": st.lists(factors, min_size=COUNT, max_size=COUNT)},
    "brightness": {"brightness": factors},
    "hsv": {"hue": factors, "dtype": st.just(types.UINT8)},
    "crop": {"crop": st.tuples(sizes, sizes), "out_of_bounds_policy": st.just("pad")},
    "random_resized_crop": {"size": st.tuples(sizes, sizes), "seed": st.integers(0, 99)},
    "gaussian_blur": {"window_size": st.sampled_from([3, 5])},
    "noise.salt_and_pepper": {"prob": st.floats(0, 0.5, width=32), "seed": st.integers(0, 99)},
    "cat": {"axis": st.integers(0, 1)},
}
steps = st.one_of([st.tuples(st.just(name), st.fixed_dictionaries(given)) for name, given in STEPS.items()])


def _program(space: Any, images: Any, program: list[Any], each: Any) -> Any:
    for name, arguments in program:
        given = {key: each(value) if isinstance(value, list) else value for key, value in arguments.items()}
        inputs = (images, images) if name == "cat" else (images,)
        images = attrgetter(name)(space)(*inputs, **given)
    return images


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, min_size=1, max_size=6), st.booleans(), st.integers(0, 1000))
def test_random_programs(program: list[Any], ragged: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    images = [random.integers(0, 256, (8 + index * ragged, 9, 3), np.uint8) for index in range(COUNT)]

    @pipeline_def(batch_size=COUNT, num_threads=2, prefetch_queue_depth=1, enable_conditionals=False)
    def pipe() -> Any:
        source = fn.external_source(source=lambda: images, layout="HWC", dtype=types.UINT8)
        return _program(
            fn,
            source,
            program,
            lambda column: fn.external_source(source=lambda: np.array(column, np.float32), ndim=0, dtype=types.FLOAT),
        )

    built = pipe()
    try:
        expected = built.run()[0]
    finally:
        built.close()
    result = _program(eager, eager.batch(images, "HWC"), program, eager.batch)
    assert result.layout() == expected.layout()
    assert result.dtype == expected.dtype
    for index in range(COUNT):
        np.testing.assert_array_equal(result.at(index), expected.at(index))
