"""Parts of AutoAugment, RandAugment and TrivialAugment: ranges of magnitudes, translations, excluded augmentations.

Sources of the ranges: arXiv:1805.09501, appendix; arXiv:1909.13719; arXiv:2103.10158.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.auto_aug import augmentations as a
from dalify.auto_aug.core._augmentation import Augmentation
from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.graph import DataNode

__all__ = ["geometric_arguments", "monotonic_augmentations", "paper_augmentations", "remaining", "translations"]

_NUMBERS = (int, float, np.integer, np.floating)


def translations(
    use_shape: bool, max_translate_abs: Any, max_translate_rel: Any, default_abs: float, default_rel: float
) -> tuple[Augmentation, Augmentation]:
    """Return translate_x and translate_y with their ranges of magnitudes.

    Args:
        use_shape: translate by fractions of the image instead of pixels.
        max_translate_abs: maximum shift in pixels: a number, or (height, width).
        max_translate_rel: maximum shift as a fraction of the image, likewise.
        default_abs: default of `max_translate_abs`.
        default_rel: default of `max_translate_rel`.

    Raises:
        ArgumentValueError: the limit that does not apply is specified, or a limit is negative or not finite.
        ArgumentTypeError: a limit is neither one nor two numbers.
    """
    unused, name = (max_translate_abs, "max_translate_abs") if use_shape else (max_translate_rel, "max_translate_rel")
    if unused is not None:
        raise ArgumentValueError.here(
            f"{name} has no effect {'with' if use_shape else 'without'} the shape of the images.",
            hint="Use max_translate_rel, a fraction of the shape."
            if use_shape
            else "Use max_translate_abs, in pixels, or pass shape=fn.shapes(images) or shape=(height, width).",
        )
    if use_shape:
        height, width = _limits(max_translate_rel, default_rel, "max_translate_rel")
        return a.translate_x.augmentation(mag_range=(0, width)), a.translate_y.augmentation(mag_range=(0, height))
    height, width = _limits(max_translate_abs, default_abs, "max_translate_abs")
    return (
        a.translate_x_no_shape.augmentation(mag_range=(0, width)),
        a.translate_y_no_shape.augmentation(mag_range=(0, height)),
    )


def paper_augmentations() -> list[Augmentation]:
    """Return the augmentations of AutoAugment and RandAugment with the ranges of the papers, without translations."""
    factor: dict[str, Any] = {"mag_range": (0.1, 1.9), "randomly_negate": False, "mag_to_param": None}
    return [
        a.shear_x.augmentation(mag_range=(0, 0.3)),
        a.shear_y.augmentation(mag_range=(0, 0.3)),
        a.rotate.augmentation(mag_range=(0, 30)),
        a.brightness.augmentation(**factor),
        a.contrast.augmentation(**factor),
        a.color.augmentation(**factor),
        a.sharpness.augmentation(**{**factor, "mag_to_param": a.sharpness_kernel_shifted}),
        a.posterize.augmentation(mag_range=(0, 4)),
        a.solarize.augmentation(mag_range=(0, 256)),
        a.equalize,
        a.auto_contrast,
    ]


def monotonic_augmentations(
    *, shear: float, rotation: float, enhancement: tuple[float, float], bits: int
) -> list[Augmentation]:
    """Return augmentations with ranges in which higher bins are stronger, without translations.

    Args:
        shear: maximum shear, in pixels per pixel.
        rotation: maximum rotation in degrees.
        enhancement: range of the distance of the factors of brightness, contrast, color and sharpness from 1.
        bits: number of bits that posterize keeps at the last bin.
    """
    return [
        a.shear_x.augmentation(mag_range=(0, shear)),
        a.shear_y.augmentation(mag_range=(0, shear)),
        a.rotate.augmentation(mag_range=(0, rotation)),
        a.brightness.augmentation(mag_range=enhancement),
        a.contrast.augmentation(mag_range=enhancement),
        a.color.augmentation(mag_range=enhancement),
        a.sharpness.augmentation(mag_range=enhancement),
        a.posterize.augmentation(mag_range=(8, bits)),
        a.solarize.augmentation(mag_range=(256, 0)),
        a.equalize,
        a.auto_contrast,
    ]


def _limits(given: Any, default: float, name: str) -> tuple[float, float]:
    """Return the limits along height and width."""
    if given is None:
        return default, default
    pair = (given, given) if isinstance(given, _NUMBERS) else given
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(isinstance(one, _NUMBERS) for one in pair):
        raise ArgumentTypeError.here(f"{name} must be a number or (height, width); got {given!r}.")
    if not all(0 <= one < float("inf") for one in pair):
        raise ArgumentValueError.here(f"{name} must be finite and not negative; got {given!r}.")
    return float(pair[0]), float(pair[1])


def geometric_arguments(
    shape: Any, fill_value: int | None, interp_type: Any, suite: list[Augmentation]
) -> dict[str, Any]:
    """Return the arguments for the geometric augmentations of a suite: those that one of them accepts.

    Raises:
        ArgumentTypeError: the shape is neither a graph value nor (height, width).
    """
    result: dict[str, Any] = {"fill_value": fill_value, "interp_type": interp_type}
    if shape is not None:
        if not isinstance(shape, DataNode) and (not hasattr(shape, "__len__") or len(shape) < 2):
            raise ArgumentTypeError.here(f"shape must be a graph value or (height, width); got {shape!r}.")
        result["shape"] = shape if isinstance(shape, DataNode) else tuple(shape)
    return {name: value for name, value in result.items() if any(item.takes(name) for item in suite)}


def remaining(suite: list[Augmentation], excluded: Sequence[str] | None, scheme: str) -> list[Augmentation]:
    """Return the augmentations of a suite except those excluded by name.

    Raises:
        ArgumentTypeError: `excluded` is a single string.
        ArgumentValueError: there is no augmentation of that name, or all are excluded.
    """
    if excluded is None:
        return suite
    if isinstance(excluded, str):
        raise ArgumentTypeError.here(
            f"excluded must be a list of names; got {excluded!r}.", hint=f"Write excluded=[{excluded!r}]."
        )
    names = [item.name for item in suite]
    for name in excluded:
        if name not in names:
            raise ArgumentValueError.here(
                f"excluded contains {name!r}, which {scheme} does not have; it has {', '.join(names)}."
            )
    left = [item for item in suite if item.name not in excluded]
    if not left:
        raise ArgumentValueError.here(f"excluded must not contain all augmentations of {scheme}.")
    return left
