"""TrivialAugment: one random augmentation per sample with a random magnitude.

Source: Müller and Hutter, arXiv:2103.10158.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dalify.auto_aug import augmentations as a
from dalify.auto_aug._translations import geometric_arguments, monotonic_augmentations, remaining, translations
from dalify.auto_aug.core._augmentation import Augmentation
from dalify.auto_aug.core._bins import check_bin_count, derived_seed, random_index, signed_bin
from dalify.auto_aug.core._select import check_augmentations, check_keywords, select
from dalify.data import DALIInterpType
from dalify.graph import DataNode

__all__ = ["apply_trivial_augment", "get_trivial_augment_wide_suite", "trivial_augment_wide"]


def trivial_augment_wide(
    data: DataNode,
    num_magnitude_bins: int = 31,
    shape: DataNode | tuple[int, int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
    seed: int | None = None,
    excluded: Sequence[str] | None = None,
) -> DataNode:
    """Apply one of 14 augmentations to each sample, drawn uniformly, with a random magnitude.

    The augmentations and ranges are those of the wide search space of the paper: identity, auto_contrast, equalize,
    and, from the first bin to the last: shear_x and shear_y 0 to 0.99; translate_x and translate_y 0 to the maximum;
    rotate 0 to 135 degrees; brightness, contrast, color and sharpness: factor 1 ± 0.01 to 0.99; posterize 8 to 2 bits;
    solarize: threshold 256 to 0. Shears, translations, rotations and factors are changed in either direction with equal
    probability.

    Args:
        data: uint8 images HWC or sequences FHWC; all frames get the same augmentation.
        num_magnitude_bins: number of magnitudes to draw from.
        shape: height and width of the images, as a graph value (further extents are ignored) or two numbers;
            translations are then relative to it.
        fill_value: value outside rotated, sheared and translated images; None: border pixels are replicated.
        interp_type: interpolation of rotations, shears and translations: INTERP_LINEAR (default) or INTERP_NN.
        max_translate_abs: maximum translation in pixels, 32 by default; a number or (height, width). Only
            without `shape`.
        max_translate_rel: maximum translation as a fraction of the image, 1 by default, likewise. Only with `shape`.
        seed: seed of all random draws; by default the seed of the pipeline.
        excluded: names of augmentations to omit.

    Returns:
        Same shape, type and layout.

    Raises:
        ArgumentValueError: a number is out of range, an unknown name, or a limit that does not apply.
        ArgumentTypeError: an argument has the wrong type.

    Example:
        >>> images = trivial_augment_wide(images, shape=fn.shapes(images))  # doctest: +SKIP
    """
    suite = get_trivial_augment_wide_suite(shape is not None, max_translate_abs, max_translate_rel)
    suite = remaining(suite, excluded, "TrivialAugmentWide")
    named = geometric_arguments(shape, fill_value, interp_type, suite)
    return apply_trivial_augment(suite, data, num_magnitude_bins=num_magnitude_bins, seed=seed, **named)


def apply_trivial_augment(
    augmentations: list[Augmentation],
    data: DataNode,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    **kwargs: Any,
) -> DataNode:
    """Apply one augmentation of a list to each sample, drawn uniformly, with a random magnitude.

    Args:
        augmentations: the augmentations to draw from, at least one.
        data: input of the augmentations.
        num_magnitude_bins: number of magnitudes to draw from.
        seed: seed of all random draws; by default the seed of the pipeline.
        kwargs: further arguments for the augmentations that accept them.

    Raises:
        ArgumentValueError: no augmentations, or fewer than one bin.
        ArgumentTypeError: an item is not an augmentation, or an argument that no augmentation accepts.
    """
    check_augmentations(augmentations)
    check_bin_count(num_magnitude_bins)
    check_keywords(augmentations, kwargs, "TrivialAugment")
    levels: Any = random_index(num_magnitude_bins, seed=derived_seed(seed, 1))
    if any(item.randomly_negate for item in augmentations):
        levels = signed_bin(levels, seed=derived_seed(seed, 2))
    named = {"magnitude_bin": levels, "num_magnitude_bins": num_magnitude_bins, **kwargs}
    if len(augmentations) == 1:
        return augmentations[0](data, **named)
    which = random_index(len(augmentations), seed=derived_seed(seed, 0))
    return select(augmentations, which, data, **named)


def get_trivial_augment_wide_suite(
    use_shape: bool = False,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
) -> list[Augmentation]:
    """Return the 14 augmentations of the wide search space of the paper.

    Args:
        use_shape: translate by fractions of the image shape, which must then be passed as ``shape``.
        max_translate_abs: maximum translation in pixels, 32 by default; a number or (height, width).
        max_translate_rel: maximum translation as a fraction of the image, 1 by default, likewise.

    Raises:
        ArgumentValueError: the limit that does not apply is specified.
    """
    return [
        *translations(use_shape, max_translate_abs, max_translate_rel, 32, 1.0),
        *monotonic_augmentations(shear=0.99, rotation=135, enhancement=(0.01, 0.99), bits=2),
        a.identity,
    ]
