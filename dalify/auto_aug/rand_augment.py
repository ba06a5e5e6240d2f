"""RandAugment: a few augmentations for each sample, drawn from a list, all with one strength.

Source: Cubuk et al., arXiv:1909.13719.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify import types
from dalify.auto_aug import augmentations as a
from dalify.auto_aug._translations import chosen, keywords, translations
from dalify.auto_aug.core._augmentation import Augmentation
from dalify.auto_aug.core._bins import check_bin, check_bin_count, derived_seed, signed_bin
from dalify.auto_aug.core._select import check_augmentations, check_keywords, select
from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.base.source_line import SourceLine
from dalify.data.dtypes import DALIInterpType
from dalify.graph import DataNode, apply

__all__ = [
    "apply_rand_augment",
    "get_rand_augment_non_monotonic_suite",
    "get_rand_augment_suite",
    "rand_augment",
]

_MAX_TRANSLATE_ABS = 100
_MAX_TRANSLATE_REL = 100 / 224  # as far as the pixels, in the image size of the paper


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
    """Apply `n` augmentations out of 14 to each sample, one after the other, with magnitude `m`.

    Args:
        data: uint8 images HWC or sequences FHWC.
        n: how many, drawn with repetition.
        m: bin of the magnitude, 0 to `num_magnitude_bins` less one.
        num_magnitude_bins: number of bins that the ranges of magnitudes are divided into.
        shape: height and width of the images, as a graph value (more extents may follow) or two numbers: translations
            are then parts of it.
        fill_value: outside of rotated, sheared and shifted images; None: the border pixel is repeated.
        interp_type: of rotations, shears and translations: INTERP_LINEAR (default) or INTERP_NN.
        max_translate_abs: largest translation in pixels, 100 by default; a number or (of height, of width). Without
            `shape` only.
        max_translate_rel: largest translation as a part of the image, 100/224 by default, likewise. With `shape` only.
        seed: of all draws; by default that of the pipeline.
        monotonic_mag: a higher bin is always stronger. False: the ranges of the paper, in which posterize and solarize
            grow weaker, and brightness, contrast, color and sharpness go from 0.1 to 1.9.
        excluded: names of augmentations that are not wanted.

    Returns:
        Same shape, type and layout.

    Raises:
        ArgumentValueError: a number outside its range, an unknown name, or a limit that does not apply.
        ArgumentTypeError: something of another type.

    Example:
        >>> images = rand_augment(images, n=2, m=9)  # doctest: +SKIP
    """
    make = get_rand_augment_suite if monotonic_mag else get_rand_augment_non_monotonic_suite
    suite = chosen(make(shape is not None, max_translate_abs, max_translate_rel), excluded, "RandAugment")
    named = keywords(shape, fill_value, interp_type)
    named = {name: value for name, value in named.items() if any(item.takes(name) for item in suite)}
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
    """Apply to each sample `n` augmentations of a list, one after the other, with magnitude `m`.

    Args:
        augmentations: at least one.
        data: what they take.
        n: how many, drawn with repetition; 0 leaves the data alone.
        m: bin of the magnitude, 0 to `num_magnitude_bins` less one.
        num_magnitude_bins: number of bins that the ranges of magnitudes are divided into.
        seed: of all draws; by default that of the pipeline.
        kwargs: further arguments for the augmentations that have them.

    Returns:
        the augmented samples.

    Raises:
        ArgumentValueError: no augmentations, or a number outside its range.
        ArgumentTypeError: something else among them, no integers, or an argument that none of them has.
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise ArgumentTypeError(
            f"n, the number of augmentations, must be an integer; got {n!r}.", line=SourceLine.capture()
        )
    if n < 0:
        raise ArgumentValueError(
            f"n, the number of augmentations, must be at least 0; got {n}.", line=SourceLine.capture()
        )
    check_augmentations(augmentations)
    check_bin_count(num_magnitude_bins)
    check_bin(m, num_magnitude_bins, "m")
    check_keywords(augmentations, kwargs, "RandAugment")
    if n == 0:
        return data
    level: Any = m
    if any(item.randomly_negate for item in augmentations):
        level = signed_bin(m, seed=derived_seed(seed, 1), shape=(n,))
    which = apply(
        "random.uniform",
        values=list(range(len(augmentations))),
        shape=(n,),
        dtype=types.INT32,
        seed=derived_seed(seed, 0),
    )
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
    """Return the 14 augmentations with ranges in which a higher bin is stronger.

    Args:
        use_shape: translations are parts of the image's shape, which they then need as ``shape``.
        max_translate_abs: largest translation in pixels, 100 by default; a number or (of height, of width).
        max_translate_rel: largest translation as a part of the image, 100/224 by default, likewise.

    Raises:
        ArgumentValueError: the limit that does not apply was given.
    """
    return [
        *translations(use_shape, max_translate_abs, max_translate_rel, _MAX_TRANSLATE_ABS, _MAX_TRANSLATE_REL),
        a.shear_x.augmentation(mag_range=(0, 0.3)),
        a.shear_y.augmentation(mag_range=(0, 0.3)),
        a.rotate.augmentation(mag_range=(0, 30)),
        a.brightness.augmentation(mag_range=(0, 0.9)),
        a.contrast.augmentation(mag_range=(0, 0.9)),
        a.color.augmentation(mag_range=(0, 0.9)),
        a.sharpness.augmentation(mag_range=(0, 0.9)),
        a.posterize.augmentation(mag_range=(8, 4)),
        a.solarize.augmentation(mag_range=(256, 0)),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]


def get_rand_augment_non_monotonic_suite(
    use_shape: bool = False,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
) -> list[Augmentation]:
    """Return the 14 augmentations with the ranges of the papers, in which a higher bin is not always stronger.

    Args:
        use_shape: see `get_rand_augment_suite`.
        max_translate_abs: see `get_rand_augment_suite`.
        max_translate_rel: see `get_rand_augment_suite`.

    Raises:
        ArgumentValueError: the limit that does not apply was given.
    """
    straight: dict[str, Any] = {"mag_range": (0.1, 1.9), "randomly_negate": False, "mag_to_param": None}
    return [
        *translations(use_shape, max_translate_abs, max_translate_rel, _MAX_TRANSLATE_ABS, _MAX_TRANSLATE_REL),
        a.shear_x.augmentation(mag_range=(0, 0.3)),
        a.shear_y.augmentation(mag_range=(0, 0.3)),
        a.rotate.augmentation(mag_range=(0, 30)),
        a.brightness.augmentation(**straight),
        a.contrast.augmentation(**straight),
        a.color.augmentation(**straight),
        a.sharpness.augmentation(**{**straight, "mag_to_param": a.sharpness_kernel_shifted}),
        a.posterize.augmentation(mag_range=(0, 4)),
        a.solarize.augmentation(mag_range=(0, 256)),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]
