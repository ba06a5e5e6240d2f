"""RandAugment: several random augmentations per sample, all with the same magnitude.

Source: Cubuk et al., arXiv:1909.13719.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.auto_aug import augmentations as a
from dalify.auto_aug._translations import (
    geometric_arguments,
    monotonic_augmentations,
    paper_augmentations,
    remaining,
    translations,
)
from dalify.auto_aug.core._augmentation import Augmentation
from dalify.auto_aug.core._bins import check_bin, check_bin_count, derived_seed, random_index, signed_bin
from dalify.auto_aug.core._select import check_augmentations, check_keywords, select
from dalify.base.deprecation import warn_at_line
from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.data import DALIInterpType
from dalify.graph import DataNode

__all__ = [
    "apply_rand_augment",
    "get_rand_augment_non_monotonic_suite",
    "get_rand_augment_suite",
    "rand_augment",
]

_MAX_TRANSLATE_ABS = 100
_MAX_TRANSLATE_REL = 100 / 224  # the same distance as in pixels, at the image size of the paper


def rand_augment(
    data: DataNode,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    shape: DataNode | tuple[int, int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
    seed: int | None = None,
    monotonic_mag: bool = True,
    excluded: Sequence[str] | None = None,
) -> DataNode:
    """Apply `n` augmentations, drawn from 14, to each sample in sequence, with magnitude `m`.

    The augmentations are identity, auto_contrast, equalize, and, from the first bin to the last: shear_x and shear_y
    0 to 0.3; translate_x and translate_y 0 to the maximum; rotate 0 to 30 degrees; brightness, contrast, color and
    sharpness: factor 1 ± 0 to 0.9; posterize 8 to 4 bits; solarize: threshold 256 to 0. Shears, translations, rotations
    and factors are changed in either direction with equal probability.

    Args:
        data: uint8 images HWC or sequences FHWC; all frames get the same augmentations.
        n: number of augmentations, drawn with repetition; 0 returns the data unchanged, with a warning.
        m: bin of the magnitude, 0 to `num_magnitude_bins` - 1.
        num_magnitude_bins: number of bins of the magnitude ranges.
        shape: height and width of the images, as a graph value (further extents are ignored) or two numbers;
            translations are then relative to it.
        fill_value: value outside rotated, sheared and translated images; None: border pixels are replicated.
        interp_type: interpolation of rotations, shears and translations: INTERP_LINEAR (default) or INTERP_NN.
        max_translate_abs: maximum translation in pixels, 100 by default; a number or (height, width). Only
            without `shape`.
        max_translate_rel: maximum translation as a fraction of the image, 100/224 by default, likewise. Only with
            `shape`.
        seed: seed of all random draws; by default the seed of the pipeline.
        monotonic_mag: higher bins are always stronger. False: the ranges of the paper, in which posterize and solarize
            become weaker with higher bins (0 to 4 bits, threshold 0 to 256), and the factors range from 0.1 to 1.9.
        excluded: names of augmentations to omit.

    Returns:
        Same shape, type and layout.

    Raises:
        ArgumentValueError: a number is out of range, an unknown name, or a limit that does not apply.
        ArgumentTypeError: an argument has the wrong type.

    Example:
        >>> images = rand_augment(images, n=2, m=9)  # doctest: +SKIP
    """
    make = get_rand_augment_suite if monotonic_mag else get_rand_augment_non_monotonic_suite
    suite = remaining(make(shape is not None, max_translate_abs, max_translate_rel), excluded, "RandAugment")
    named = geometric_arguments(shape, fill_value, interp_type, suite)
    return apply_rand_augment(suite, data, n, m, num_magnitude_bins=num_magnitude_bins, seed=seed, **named)


def apply_rand_augment(
    augmentations: list[Augmentation],
    data: DataNode,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    **kwargs: Any,
) -> DataNode:
    """Apply `n` random augmentations of a list in sequence to each sample, with magnitude `m`.

    Args:
        augmentations: the augmentations to draw from, at least one.
        data: input of the augmentations.
        n: number of augmentations, drawn with repetition; 0 returns the data unchanged, with a warning.
        m: bin of the magnitude, 0 to `num_magnitude_bins` - 1.
        num_magnitude_bins: number of bins of the magnitude ranges.
        seed: seed of all random draws; by default the seed of the pipeline.
        kwargs: further arguments for the augmentations that accept them.

    Raises:
        ArgumentValueError: no augmentations, unless `n` is 0, or a number is out of range.
        ArgumentTypeError: an item is not an augmentation, a number is not an integer, or an argument that no
            augmentation accepts.
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise ArgumentTypeError.here(f"n, the number of augmentations, must be an integer; got {n!r}.")
    if n < 0:
        raise ArgumentValueError.here(f"n, the number of augmentations, must be at least 0; got {n}.")
    check_bin_count(num_magnitude_bins)
    check_bin(m, num_magnitude_bins, "m", ArgumentValueError)
    if n == 0:
        warn_at_line("RandAugment with n=0 returns the data unchanged.", UserWarning)
        return data
    check_augmentations(augmentations)
    check_keywords(augmentations, kwargs, "RandAugment")
    level: Any = m
    if any(item.randomly_negate for item in augmentations):
        level = signed_bin(m, seed=derived_seed(seed, 1), shape=(n,))
    which = random_index(len(augmentations), seed=derived_seed(seed, 0), shape=(n,))
    for step in range(n):
        magnitude_bin = m if level is m else level[step]
        named = {"magnitude_bin": magnitude_bin, "num_magnitude_bins": num_magnitude_bins, **kwargs}
        data = (
            augmentations[0](data, **named)
            if len(augmentations) == 1
            else select(augmentations, which[step], data, **named)
        )
    return data


def get_rand_augment_suite(
    use_shape: bool = False,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
) -> list[Augmentation]:
    """Return the 14 augmentations with ranges in which higher bins are stronger.

    Args:
        use_shape: translate by fractions of the image shape, which must then be passed as ``shape``.
        max_translate_abs: maximum translation in pixels, 100 by default; a number or (height, width).
        max_translate_rel: maximum translation as a fraction of the image, 100/224 by default, likewise.

    Raises:
        ArgumentValueError: the limit that does not apply is specified.
    """
    return [
        *translations(use_shape, max_translate_abs, max_translate_rel, _MAX_TRANSLATE_ABS, _MAX_TRANSLATE_REL),
        *monotonic_augmentations(shear=0.3, rotation=30, enhancement=(0, 0.9), bits=4),
        a.identity,
    ]


def get_rand_augment_non_monotonic_suite(
    use_shape: bool = False,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
) -> list[Augmentation]:
    """Return the 14 augmentations with the ranges of the papers, in which higher bins are not always stronger.

    See `get_rand_augment_suite` for arguments and errors.
    """
    return [
        *translations(use_shape, max_translate_abs, max_translate_rel, _MAX_TRANSLATE_ABS, _MAX_TRANSLATE_REL),
        *paper_augmentations(),
        a.identity,
    ]
