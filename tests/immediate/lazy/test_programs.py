"""Random programs give the same results in eager mode, in lazy mode and as a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify import eager, fn, lazy, pipeline_def, types

COUNT = 3
IMAGE = {"dtype": types.UINT8}

sizes = st.integers(2, 12)
pairs = st.tuples(sizes, sizes)
factors = st.floats(0.25, 2.0, width=32)
angles = st.lists(st.floats(-90, 90, width=32), min_size=COUNT, max_size=COUNT)
seeds = st.integers(0, 99)

# Operators from an image to an image, UINT8 in HWC; a list of COUNT values is one for each sample.
UNARY: dict[str, dict[str, Any]] = {
    "flip": {"horizontal": st.integers(0, 1), "vertical": st.integers(0, 1)},
    "resize": {"size": pairs},
    "rotate": {"angle": angles},
    "warp_affine": {"matrix": st.just([0.9, 0.1, 0.5, -0.1, 0.8, 1.0])},
    "crop": {"crop": pairs, "out_of_bounds_policy": st.just("pad")},
    "brightness": {"brightness": factors},
    "contrast": {"contrast": factors},
    "brightness_contrast": {"brightness": factors, "contrast": factors},
    "hsv": {"hue": factors, "saturation": factors},
    "hue": {"hue": factors},
    "saturation": {"saturation": factors},
    "color_twist": {"hue": factors, "brightness": factors},
    "color_space_conversion": {"image_type": st.just(types.RGB), "output_type": st.just(types.YCbCr)},
    "gaussian_blur": {"window_size": st.sampled_from([3, 5])},
    "transpose": {"perm": st.just([1, 0, 2]), "transpose_layout": st.just(False)},
    "grid_mask": {"ratio": st.floats(0.25, 0.75, width=32), "tile": st.integers(2, 9)},
    "erase": {"anchor": st.just([1.0, 1.0]), "shape": st.just([3.0, 2.0])},
    "sphere": {},
    "water": {},
}
RANDOM: dict[str, dict[str, Any]] = {
    "random_resized_crop": {"size": pairs, "seed": seeds},
    "noise.salt_and_pepper": {"prob": st.floats(0, 0.5, width=32), "seed": seeds},
    "noise.gaussian": {"stddev": factors, "seed": seeds},
    "noise.shot": {"factor": factors, "seed": seeds},
    "jitter": {"seed": seeds},
}
ARITHMETIC = ["add", "sub", "mul", "min", "max", "lt", "bitand"]

which = st.integers(0, 9)
steps = st.one_of(
    *(
        st.tuples(st.just(name), which, st.fixed_dictionaries(arguments))
        for name, arguments in (UNARY | RANDOM).items()
    ),
    st.tuples(st.just("arithmetic"), which, st.fixed_dictionaries({"function": st.sampled_from(ARITHMETIC)})),
    st.tuples(st.just("cat"), which, st.fixed_dictionaries({"axis": st.integers(0, 1)})),
    st.tuples(st.just("turned"), which, st.fixed_dictionaries({"seed": seeds})),
    st.tuples(st.just("centered"), which, st.just({})),
)
images_seeds = st.integers(0, 1000)

Each = Callable[[list[float]], Any]


def _column(values: list[float]) -> Any:
    return fn.external_source(source=lambda: np.array(values, np.float32), ndim=0, dtype=types.FLOAT)


def _called(space: Any, name: str, *inputs: Any, **arguments: Any) -> Any:
    for part in name.split("."):
        space = getattr(space, part)
    return space(*inputs, **arguments)


def _run(space: Any, images: Any, program: list[Any], each: Each, draws: dict[str, Any], is_seeded: bool) -> list[Any]:
    """Carry out a program: each step reads one of the values so far."""
    values = [images]
    for name, place, written in program:
        arguments = {key: each(value) if isinstance(value, list) and name == "rotate" else value
                     for key, value in written.items() if key != "seed" or is_seeded}  # fmt: skip
        image = values[place % len(values)]
        if name == "arithmetic":
            other = _called(space, "brightness", image, brightness=0.5)
            image = _called(space, "cast", _called(space, "arithmetic", image, other, **arguments), **IMAGE)
        elif name == "centered":
            mean = _called(space, "reductions.mean", image, axes=[0, 1], keep_dims=True)
            image = _called(space, "cast", _called(space, "arithmetic", image, mean, function="sub"), **IMAGE)
        elif name == "turned":
            angle = _called(space, "random.uniform", range=(-30.0, 30.0), **draws, **arguments)
            image = _called(space, "rotate", image, angle=angle, keep_size=True)
        else:
            image = _called(space, name, *([image] * (1 + (name == "cat"))), **arguments)
        values.append(image)
    # A resize with a crop as its only consumer is fused with it.
    crop = {"crop": (2, 2)} if program[-1][0] == "resize" else {}
    normalized = _called(space, "crop_mirror_normalize", values[-1], dtype=types.FLOAT, mean=[1.0, 2.0, 3.0], **crop)
    return [*values[1:-1][-1:], normalized]


def _images(seed: int, ragged: bool, encoded: bool) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    images = [random.integers(0, 256, (8 + index * ragged, 9, 3), np.uint8) for index in range(COUNT)]
    return [cv2.imencode(".png", image)[1].reshape(-1) for image in images] if encoded else images


def _decoded(space: Any, data: Any, encoded: bool) -> Any:
    return space.decoders.image(data) if encoded else data


def _assert_same(results: list[Any], expected: list[Any], program: list[Any]) -> None:
    for place, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        # The two together round other intermediate values.
        is_fused = place == len(expected) - 1 and program[-1][0] == "resize"
        assert result.layout() == wanted.layout()
        assert result.dtype == wanted.dtype
        assert len(result) == len(wanted)
        for index in range(len(wanted)):
            np.testing.assert_allclose(np.array(result.at(index)), np.array(wanted.at(index)), atol=is_fused, rtol=0)


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, min_size=1, max_size=6), st.booleans(), st.booleans(), images_seeds)
def test_batches(program: list[Any], ragged: bool, encoded: bool, seed: int) -> None:
    """A program with seeds for its random operators gives equal results three times."""
    images = _images(seed, ragged, encoded)

    @pipeline_def(batch_size=COUNT, num_threads=2, prefetch_queue_depth=1, enable_conditionals=False)
    def pipe() -> Any:
        layout, ndim = (None, 1) if encoded else ("HWC", None)
        source = fn.external_source(source=lambda: images, layout=layout, ndim=ndim, dtype=types.UINT8)
        return tuple(_run(fn, _decoded(fn, source, encoded), program, _column, {}, True))

    built = pipe()
    try:
        expected = list(built.run())
    finally:
        built.close()
    given = images if encoded else eager.batch(images, "HWC")
    draws = {"batch_size": COUNT}
    at_once = _run(eager, _decoded(eager, given, encoded), program, eager.batch, draws, True)
    with lazy(num_threads=2):
        lazily = _run(eager, _decoded(eager, given, encoded), program, eager.batch, draws, True)
    _assert_same(at_once, expected, program)
    _assert_same([value.get() for value in reversed(lazily)][::-1], expected, program)


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, min_size=1, max_size=6), st.booleans(), images_seeds, st.integers(0, 2))
def test_random_numbers_depend_on_the_order_of_calls(program: list[Any], alone: bool, seed: int, first: int) -> None:
    """Without seeds, eager and lazy mode give the same batches and samples, whichever value is read first."""
    images = _images(seed, True, False)
    given = eager.tensor(images[0], "HWC") if alone else eager.batch(images, "HWC")
    each = (lambda values: np.float32(values[0])) if alone else eager.batch
    draws = {} if alone else {"batch_size": COUNT}
    eager.seed(seed)
    at_once = _run(eager, given, program, each, draws, False)
    eager.seed(seed)
    with lazy(num_threads=1):
        lazily = _run(eager, given, program, each, draws, False)
        lazily[first % len(lazily)].get()
        lazy.flush()
    assert all(value.is_computed for value in lazily)
    if alone:
        at_once, lazily = ([eager.batch([value]) for value in values] for values in (at_once, lazily))
    _assert_same(lazily, at_once, program)
