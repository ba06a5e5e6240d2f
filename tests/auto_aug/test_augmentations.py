"""Each augmentation compared with the real DALI and Pillow and formulas."""

from __future__ import annotations

import importlib
from functools import partial

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

from dalify import fn, types
from dalify.auto_aug import augmentations
from dalify.auto_aug.core._augmentation import Augmentation
from dalify.base.errors import ArgumentTypeError, DTypeError, ShapeError
from tests.auto_aug.running import augmented, dali_augmented, picture

IMAGES = [picture(40, 52), picture(33, 47, 60, 180)]
VIDEO = [np.stack([picture(20, 31, 30 * k, 200) for k in range(3)]), np.stack([picture(20, 31), picture(20, 31)])]
GEOMETRIC = [
    "rotate",
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_x_no_shape",
    "translate_y",
    "translate_y_no_shape",
]
NAMES = [name for name in augmentations.__all__ if isinstance(getattr(augmentations, name), Augmentation)]
BINS = 11


def fixed(module, name, sign=1):
    """The augmentation with the same sign for all samples."""
    augmentation = getattr(module, name)
    if not augmentation.randomly_negate:
        return augmentation
    low, high = augmentation.mag_range
    return augmentation.augmentation(mag_range=(sign * low, sign * high), randomly_negate=False)


def call(name, sign=1, level=4, **options):
    """What to do with a batch, for either library."""
    if name in ("translate_x", "translate_y"):
        options.setdefault("shape", (40, 52))
    return lambda module, data: fixed(module, name, sign)(data, magnitude_bin=level, num_magnitude_bins=BINS, **options)


def close(ours, theirs, tolerance=1):
    """Raise unless all samples agree."""
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape
        assert np.abs(one.astype(int) - other.astype(int)).max() <= tolerance


@pytest.mark.parametrize("name", NAMES)
def test_compared_with_dali(oracle, name):
    theirs = importlib.import_module("nvidia.dali.auto_aug.augmentations")
    signs = (1, -1) if getattr(augmentations, name).randomly_negate else (1,)
    for sign in signs:
        for level in (0, 1, 7, 10):
            use = call(name, sign, level)
            close(augmented(partial(use, augmentations), IMAGES), dali_augmented(oracle, partial(use, theirs), IMAGES))
    use = call(name, level=3)
    close(
        augmented(partial(use, augmentations), VIDEO, "FHWC"),
        dali_augmented(oracle, partial(use, theirs), VIDEO, "FHWC"),
    )


@pytest.mark.parametrize("name", GEOMETRIC)
def test_borders_compared_with_dali(oracle, name):
    theirs = importlib.import_module("nvidia.dali.auto_aug.augmentations")
    for options in ({"fill_value": None}, {"fill_value": 7}):
        use = call(name, level=6, **options)
        close(augmented(partial(use, augmentations), IMAGES), dali_augmented(oracle, partial(use, theirs), IMAGES))


@pytest.mark.parametrize("name", NAMES)
def test_on_the_gpu(name, gpu):
    use = partial(call(name, level=5), augmentations)
    close(augmented(use, IMAGES, device="gpu"), augmented(use, IMAGES))
    close(augmented(use, VIDEO, "FHWC", device="gpu"), augmented(use, VIDEO, "FHWC"))


@pytest.mark.parametrize(("name", "enhance"), [("brightness", "Brightness"), ("contrast", "Contrast")])
def test_enhancements_compared_with_pillow(name, enhance):
    for sign, factor in ((1, 1.36), (-1, 0.64)):
        ours = augmented(partial(call(name, sign), augmentations), IMAGES)
        theirs = [np.array(getattr(ImageEnhance, enhance)(Image.fromarray(x)).enhance(factor)) for x in IMAGES]
        close(ours, theirs, tolerance=1)


def test_sharpness_compared_with_pillow():
    for sign, factor in ((1, 1.36), (-1, 0.64)):
        ours = augmented(partial(call("sharpness", sign), augmentations), IMAGES)
        theirs = [np.array(ImageEnhance.Sharpness(Image.fromarray(x)).enhance(factor)) for x in IMAGES]
        close([x[1:-1, 1:-1] for x in ours], [x[1:-1, 1:-1] for x in theirs])


def test_values_compared_with_pillow():
    def plain(name, **options):
        return augmented(partial(call(name, **options), augmentations), IMAGES)

    images = [Image.fromarray(x) for x in IMAGES]
    close(plain("invert"), [np.array(ImageOps.invert(x)) for x in images], 0)
    close(plain("solarize"), [np.array(ImageOps.solarize(x, 154)) for x in images], 0)  # 256 * (1 - 4/10), rounded up
    close(plain("posterize", level=5), [np.array(ImageOps.posterize(x, 2)) for x in images], 0)
    close(plain("auto_contrast"), [np.array(ImageOps.autocontrast(x)) for x in images])
    close(plain("solarize_add"), [np.where(x < 128, x + 44, x) for x in IMAGES], 0)
    close(plain("identity"), IMAGES, 0)


def test_a_channel_of_one_value_keeps_it():
    flat = np.full((3, 4, 3), 9, np.uint8)
    flat[0, 0, 1] = 200
    (result,) = augmented(augmentations.auto_contrast, [flat])
    np.testing.assert_array_equal(result[..., 0], 9)
    assert set(result[..., 1].flat) == {0, 255}


def test_a_single_pixel():
    pixel = [np.array([[[5, 100, 250]]], np.uint8)]
    for name in NAMES:
        (result,) = augmented(partial(call(name), augmentations), pixel)
        assert result.shape == (1, 1, 3)


def test_gray_contrast_of_one_channel():
    gray = IMAGES[0][..., :1]
    (result,) = augmented(partial(call("contrast"), augmentations), [gray])
    expected = np.clip(gray.mean() + (gray - gray.mean()) * 1.36, 0, 255)
    assert np.abs(result - expected).max() <= 0.51


def test_translation_by_the_shape_of_each_sample():
    def use(data):
        moved = augmentations.translate_y.augmentation(randomly_negate=False)
        return moved(data, magnitude_bin=5, num_magnitude_bins=BINS, shape=data.shape(), fill_value=0)

    samples = [np.full((40, 10, 3), 50, np.uint8), np.full((20, 12, 3), 50, np.uint8)]
    for sample, result in zip(samples, augmented(use, samples), strict=True):
        half = len(sample) // 2
        assert not result[:half].any()
        assert (result[half:] == 50).all()


def test_nearest_neighbor_keeps_values():
    use = partial(call("rotate", interp_type=types.INTERP_NN, fill_value=None), augmentations)
    for result, image in zip(augmented(use, IMAGES), IMAGES, strict=True):
        assert set(map(tuple, result.reshape(-1, 3))) <= set(map(tuple, image.reshape(-1, 3)))


def test_a_rotation_that_keeps_no_size():
    use = partial(call("rotate", level=10, rotate_keep_size=False), augmentations)
    (result,) = augmented(use, IMAGES[:1])
    assert result.shape[0] > 40


@pytest.mark.parametrize("name", ["auto_contrast", "contrast", "solarize", "solarize_add", "equalize"])
def test_bytes_only(name):
    with pytest.raises(DTypeError, match="uint8"):
        augmented(partial(call(name), augmentations), [np.zeros((4, 5, 3), np.float32)])


def test_mistakes():
    with pytest.raises(ShapeError, match="1 or 3 channels"):
        augmented(partial(call("contrast"), augmentations), [np.zeros((4, 5, 2), np.uint8)])
    with pytest.raises(ArgumentTypeError, match="translate_x requires the argument shape"):
        augmented(lambda x: augmentations.translate_x(x, magnitude_bin=1, num_magnitude_bins=3), IMAGES)
    with pytest.raises(ArgumentTypeError, match="requires magnitude_bin"):
        augmented(augmentations.rotate, IMAGES)
    with pytest.raises(ArgumentTypeError, match="requires num_magnitude_bins"):
        augmented(lambda x: augmentations.rotate(x, magnitude_bin=1), IMAGES)
    assert augmented(lambda x: augmentations.invert(x, unused=fn.shapes), IMAGES)


def test_parameters_compared_with_dali(oracle):
    theirs = importlib.import_module("nvidia.dali.auto_aug.augmentations")
    for name in set(augmentations.__all__) - set(NAMES):
        for magnitude in (0, 0.3, 1, 2.5, 3.5, 4, 7.6, 8, 90):
            if name == "poster_mask_uint8" and magnitude == 90:
                continue  # wraps in DALI
            ours, others = (np.asarray(getattr(module, name)(magnitude)) for module in (augmentations, theirs))
            np.testing.assert_allclose(ours, others, rtol=1e-6)
