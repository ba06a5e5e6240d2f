"""The functions compared with torchvision's and DALI's where they run on a CPU."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import dalify.experimental.dynamic as ndd
from dalify.experimental.torchvision import InterpolationMode
from dalify.experimental.torchvision.v2 import functional
from tests.experimental.torchvision.images import KINDS, difference, image

Call = Callable[[Any, Any, Any], Any]  # functions, image, names of filters

# Name: the call, and how much torchvision may differ, in levels of 255.
CALLS: dict[str, tuple[Call, float]] = {
    "center_crop": (lambda f, x, _: f.center_crop(x, [20, 31]), 0),
    "center_crop-odd": (lambda f, x, _: f.center_crop(x, [22, 33]), 0),
    "center_crop-square": (lambda f, x, _: f.center_crop(x, 30), 0),
    "center_crop-one-value": (lambda f, x, _: f.center_crop(x, [30]), 0),
    "center_crop-larger": (lambda f, x, _: f.center_crop(x, [50, 31]), 0),
    "center_crop-larger-odd": (lambda f, x, _: f.center_crop(x, [38, 57]), 0),
    "crop": (lambda f, x, _: f.crop(x, 3, 5, 20, 30), 0),
    "crop-outside": (lambda f, x, _: f.crop(x, -3, 5, 20, 80), 0),
    "horizontal_flip": (lambda f, x, _: f.horizontal_flip(x), 0),
    "vertical_flip": (lambda f, x, _: f.vertical_flip(x), 0),
    "gaussian_blur": (lambda f, x, _: f.gaussian_blur(x, [3, 3], [1.5, 1.5]), 1),
    "gaussian_blur-oblong": (lambda f, x, _: f.gaussian_blur(x, [7, 3], 1.5), 1),
    "pad": (lambda f, x, _: f.pad(x, [3, 4, 5, 6], 10), 0),
    "pad-two": (lambda f, x, _: f.pad(x, [3, 4]), 0),
    "pad-one": (lambda f, x, _: f.pad(x, [3]), 0),
    "pad-edge": (lambda f, x, _: f.pad(x, [3, 4, 5, 6], 0, "edge"), 0),
    "pad-reflect": (lambda f, x, _: f.pad(x, [3, 4, 5, 6], 0, "reflect"), 0),
    "pad-symmetric": (lambda f, x, _: f.pad(x, [3, 4, 5, 6], 0, "symmetric"), 0),
    "resized_crop": (lambda f, x, _: f.resized_crop(x, 3, 5, 20, 30, [15, 23], antialias=True), 6),
    "resize-bilinear": (lambda f, x, m: f.resize(x, [20, 33], m.BILINEAR, antialias=True), 3),
    "resize-larger": (lambda f, x, m: f.resize(x, [70, 90], m.BILINEAR, antialias=True), 2),
    "resize-plain": (lambda f, x, m: f.resize(x, [50, 60], m.BILINEAR, antialias=False), 2),
    "resize-shorter": (lambda f, x, m: f.resize(x, [25], m.BILINEAR, antialias=True), 3),
    "resize-bounded": (lambda f, x, m: f.resize(x, [25], m.BILINEAR, max_size=30, antialias=True), 3),
    "resize-longest": (lambda f, x, m: f.resize(x, None, m.BILINEAR, max_size=44, antialias=True), 3),
    "resize-bicubic": (lambda f, x, m: f.resize(x, [20, 33], m.BICUBIC, antialias=True), 4),
    "to_grayscale": (lambda f, x, _: f.to_grayscale(x, 1), 1.01),
    "to_grayscale-3": (lambda f, x, _: f.to_grayscale(x, 3), 1.01),
    "rgb_to_grayscale": (lambda f, x, _: f.rgb_to_grayscale(x), 1.01),
    "normalize": (lambda f, x, _: f.normalize(x, [0.5] * x.shape[-3], [0.2] * x.shape[-3]), 1e-3),
    "pil_to_tensor": (lambda f, x, _: f.pil_to_tensor(x), 0),
    "to_tensor": (lambda f, x, _: f.to_tensor(x), 1e-4),
    "to_pil_image": (lambda f, x, _: f.to_pil_image(x), 0),
}
COLORS = ("to_grayscale", "rgb_to_grayscale")


def _is_taken(name: str, kind: str) -> bool:
    """What the function of torchvision takes at all."""
    if name in ("pil_to_tensor", "to_tensor"):
        return kind.startswith("pil")
    if name == "to_pil_image":
        return kind.startswith(("u8", "f32"))
    if name == "normalize":
        return "f32" in kind
    if name.startswith("resize") and kind == "pil-RGBA":
        return False  # Pillow weighs colors by alpha
    if name == "resize-plain" and kind.startswith("pil"):
        return False  # Pillow has no such filter
    if name.startswith(COLORS):
        return kind not in ("pil-RGBA",)
    return True


def _cases() -> list[tuple[str, str]]:
    return [(name, kind) for name in CALLS for kind in KINDS if _is_taken(name, kind)]


@pytest.mark.parametrize(("name", "kind"), _cases())
@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_compared_with_torchvision(reference, name, kind):
    call, tolerance = CALLS[name]
    wanted = call(reference.functional, image(kind), reference.InterpolationMode)
    found = call(functional, image(kind), InterpolationMode)
    assert difference(found, wanted) <= tolerance


# Where DALI does something else than torchvision, dalify does what torchvision does.
LIKE_TORCHVISION = ("center_crop-larger", "center_crop-larger-odd", "gaussian_blur-oblong")


def _dali_takes(name: str, kind: str) -> bool:
    is_color_of_tensor = name.startswith(COLORS) and not kind.startswith("pil") and not kind.endswith("-1")
    is_refused = kind == "nested" or is_color_of_tensor or name == "pad-one"
    return not is_refused and name not in LIKE_TORCHVISION and (name, kind) != ("to_grayscale-3", "pil-L")


@pytest.mark.parametrize(("name", "kind"), [case for case in _cases() if _dali_takes(*case)])
@pytest.mark.filterwarnings("ignore")
def test_compared_with_dali(theirs, name, kind):
    call, _ = CALLS[name]
    logging.disable()  # DALI logs
    try:
        wanted = call(theirs.v2.functional, image(kind), theirs.InterpolationMode)
    finally:
        logging.disable(logging.NOTSET)
    tolerance = 1 if name.startswith(("resize", "gaussian")) else 1e-3
    assert difference(call(functional, image(kind), InterpolationMode), wanted) <= tolerance


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "nested"])
def test_nearest_and_lanczos_equal_dali(theirs, kind):
    """Torchvision's nearest takes the pixel to the upper left on tensors, DALI's the nearest center, as Pillow's."""
    for mode in ("NEAREST", "LANCZOS"):
        wanted = theirs.v2.functional.resize(image(kind), [20, 33], theirs.InterpolationMode[mode])
        assert difference(functional.resize(image(kind), [20, 33], InterpolationMode[mode]), wanted) <= 1


@pytest.mark.filterwarnings("ignore:The function `get_image_size")
@pytest.mark.parametrize("name", ["get_dimensions", "get_size", "get_image_size"])
@pytest.mark.parametrize("kind", KINDS)
def test_extents(reference, name, kind):
    assert getattr(functional, name)(image(kind)) == getattr(reference.functional, name)(image(kind))


def test_extents_of_tensors():
    assert functional.get_dimensions(torch.zeros(4, 5)) == [1, 4, 5]
    assert functional.get_size(ndd.tensor(np.zeros((3, 4, 5), np.uint8))) == [4, 5]


def test_edges_of_windows_of_pillow_images_are_rounded(reference):
    window = 2.5, 3.4, 10.3, 20.2
    found = functional.crop(image("pil-RGB"), *window)
    assert difference(found, reference.functional.crop(image("pil-RGB"), *window)) == 0
    with pytest.raises(TypeError):
        functional.crop(image("u8-3"), *window)


def test_blur_draws_between_bounds():
    picture = image("f32-3")
    weakest, strongest = (functional.gaussian_blur(picture, 9, sigma).var() for sigma in (0.3, 3.0))
    drawn = [float(functional.gaussian_blur(picture, 9, (0.3, 3.0)).var()) for _ in range(20)]
    assert all(strongest - 1e-6 <= value <= weakest + 1e-6 for value in drawn)
    assert len(set(drawn)) > 10


@pytest.mark.parametrize("mode", ["I;16", "I", "F", "LA", "CMYK"])
@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_modes_of_pillow(reference, mode):
    picture = Image.fromarray(np.arange(0, 240, 2, dtype=np.uint8).reshape(10, 12))
    picture = Image.fromarray(np.arange(120, dtype=np.uint16).reshape(10, 12) * 200) if mode == "I;16" else picture
    picture = (
        picture if mode == "I;16" else picture.convert("RGB").convert(mode) if mode == "CMYK" else picture.convert(mode)
    )
    found, wanted = functional.pil_to_tensor(picture), reference.functional.pil_to_tensor(picture)
    assert torch.equal(found.to(torch.float64), wanted.to(torch.float64))
    if mode in ("LA", "CMYK"):
        back = functional.to_pil_image(found, mode)
        assert (back.mode, back.tobytes()) == (mode, picture.tobytes())


@pytest.mark.parametrize(
    "array", [np.full((2, 3, 1), 51, np.uint8), np.ones((2, 3), np.float32)], ids=["bytes", "rows"]
)
@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_arrays_are_images(reference, array):
    assert torch.equal(functional.to_tensor(array), reference.functional.to_tensor(array))


def test_images_of_one_bit_are_bytes(theirs):
    picture = Image.fromarray(np.eye(4, dtype=np.uint8) * 255).convert("1")
    assert torch.equal(functional.pil_to_tensor(picture), theirs.v2.functional.pil_to_tensor(picture))


def test_layout_of_arrays_for_pillow():
    pixels = image("u8-3")
    assert functional.to_pil_image(pixels.permute(1, 2, 0), input_layout="HWC").tobytes() == (
        functional.to_pil_image(pixels).tobytes()
    )


def test_inputs_are_unchanged():
    before = image("batch-u8")
    kept = before.clone()
    result = functional.horizontal_flip(before)
    result += 1
    assert torch.equal(before, kept)


WRONG: dict[str, tuple[type[Exception], Call]] = {
    "array": (TypeError, lambda f, x, _: f.horizontal_flip(np.zeros((3, 4, 5), np.uint8))),
    "matrix": (TypeError, lambda f, x, _: f.horizontal_flip(torch.zeros(4, 5))),
    "vector": (ValueError, lambda f, x, _: f.to_tensor(np.ones(3))),
    "integers": (TypeError, lambda f, x, _: f.to_pil_image(torch.zeros(1, 2, 2, dtype=torch.int64))),
    "colors": (TypeError, lambda f, x, _: f.to_pil_image(torch.zeros(3, 2, 2, dtype=torch.int16))),
    "text": (TypeError, lambda f, x, _: f.crop(Image.new("RGB", (5, 4)), "a", 0, 1, 1)),
    "mode": (ValueError, lambda f, x, _: f.horizontal_flip(Image.new("P", (4, 4)))),
    "channels": (ValueError, lambda f, x, _: f.to_grayscale(x, 2)),
    "window": (ValueError, lambda f, x, _: f.gaussian_blur(x, 4)),
    "sigma": (ValueError, lambda f, x, _: f.gaussian_blur(x, 3, -1.0)),
    "bounds": (ValueError, lambda f, x, _: f.gaussian_blur(x, 3, (2.0, 1.0))),
    "size": (ValueError, lambda f, x, _: f.center_crop(x, [1, 2, 3])),
    "size-type": (TypeError, lambda f, x, _: f.center_crop(x, "12")),
    "size-zero": (ValueError, lambda f, x, _: f.center_crop(x, 0)),
    "empty": (ValueError, lambda f, x, _: f.crop(x, 0, 0, 0, 4)),
    "padding": (ValueError, lambda f, x, _: f.pad(x, [-1, 2])),
    "padding-mode": (ValueError, lambda f, x, _: f.pad(x, [1, 2], 0, "mirror")),
    "padding-count": (TypeError, lambda f, x, _: f.pad(x, [1, 2, 3])),
    "mean": (TypeError, lambda f, x, _: f.normalize(x, 0.5, [1.0])),
    "std": (ValueError, lambda f, x, _: f.normalize(x, [0.5] * 3, [1.0, 0.0, 1.0])),
    "inplace": (NotImplementedError, lambda f, x, _: f.normalize(x, [0.5] * 3, [1.0] * 3, inplace=True)),
    "image-normalize": (TypeError, lambda f, x, _: f.normalize(image("pil-RGB"), [0.5], [1.0])),
    "filter": (ValueError, lambda f, x, _: f.resize(x, [3, 4], 17)),
    "filter-name": (ValueError, lambda f, x, _: f.resize(x, [3, 4], "linear")),
    "filter-missing": (NotImplementedError, lambda f, x, m: f.resize(x, [3, 4], m.HAMMING)),
    "no-size": (ValueError, lambda f, x, _: f.resize(x, None)),
    "two-bounds": (ValueError, lambda f, x, _: f.resize(x, [3, 4], max_size=5)),
    "too-small": (ValueError, lambda f, x, _: f.resize(x, [30], max_size=5)),
    "fraction": (ValueError, lambda f, x, _: f.resize(x, [3.5, 4])),
    "to-tensor": (TypeError, lambda f, x, _: f.to_tensor([[1]])),
    "pil-to-tensor": (TypeError, lambda f, x, _: f.pil_to_tensor(x)),
    "to-pil": (TypeError, lambda f, x, _: f.to_pil_image(image("pil-L"))),
    "to-pil-batch": (ValueError, lambda f, x, _: f.to_pil_image(torch.zeros(2, 3, 4, 5))),
    "to-pil-channels": (ValueError, lambda f, x, _: f.to_pil_image(torch.zeros(7, 4, 5))),
    "dimensions": (TypeError, lambda f, x, _: f.get_dimensions(torch.zeros(4))),
    "size-of": (TypeError, lambda f, x, _: f.get_size("image")),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes(name):
    kind, call = WRONG[name]
    with pytest.raises(kind):
        call(functional, image("u8-3"), InterpolationMode)


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.filterwarnings("ignore")
def test_mistakes_raise_the_errors_of_dali(theirs, name):
    kind, call = WRONG[name]
    with pytest.raises(kind):
        call(theirs.v2.functional, image("u8-3"), theirs.InterpolationMode)


def test_names_equal_dali(theirs):
    assert set(functional.__all__) == set(importlib.import_module(theirs.v2.functional.__name__).__all__)


def test_on_a_device(emulated_gpu):
    for kind in ("u8-3", "batch-f32", "pil-RGB"):
        found = functional.resize(image(kind), [20, 33], device="gpu")
        assert difference(found, functional.resize(image(kind), [20, 33])) <= 1
