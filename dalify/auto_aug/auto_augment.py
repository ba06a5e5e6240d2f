"""AutoAugment: policies of pairs of augmentations, found by search.

Source: Cubuk et al., arXiv:1805.09501.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalify import types
from dalify.auto_aug import _tables
from dalify.auto_aug import augmentations as a
from dalify.auto_aug._translations import geometric_arguments, paper_augmentations, translations
from dalify.auto_aug.core._augmentation import Augmentation
from dalify.auto_aug.core._bins import derived_seed, random_index, signed_bin
from dalify.auto_aug.core._select import check_keywords, select
from dalify.auto_aug.core.policy import Policy
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, option_error_text
from dalify.data import DALIInterpType
from dalify.graph import DataNode, apply

__all__ = [
    "apply_auto_augment",
    "auto_augment",
    "auto_augment_image_net",
    "get_image_net_policy",
    "get_reduced_cifar10_policy",
    "get_reduced_image_net_policy",
    "get_svhn_policy",
]

_BINS = 11


def auto_augment_image_net(
    data: DataNode,
    shape: DataNode | tuple[int, int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
    seed: int | None = None,
) -> DataNode:
    """Apply the policy for ImageNet: `auto_augment` with ``policy_name="image_net"``."""
    return auto_augment(data, "image_net", shape, fill_value, interp_type, max_translate_abs, max_translate_rel, seed)


def auto_augment(
    data: DataNode,
    policy_name: str = "image_net",
    shape: DataNode | tuple[int, int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
    seed: int | None = None,
) -> DataNode:
    """Apply one of the policies of the AutoAugment paper.

    Magnitudes have 11 bins, from the first to the last: shear 0 to 0.3; rotation 0 to 30 degrees; brightness, contrast,
    color and sharpness: factor 0.1 to 1.9; posterize: 0 (as 1) to 4 bits; solarize: threshold 0 to 256; solarize_add:
    0 to 110. Shear, rotation and translation are negated with probability one half.

    Args:
        data: uint8 images HWC or sequences FHWC; all frames get the same augmentations.
        policy_name: "image_net", "reduced_image_net", "svhn" or "reduced_cifar10".
        shape: height and width of the images, as a graph value (further extents are ignored) or two numbers;
            translations are then relative to it.
        fill_value: value outside rotated, sheared and translated images; None: border pixels are replicated.
        interp_type: interpolation of rotations, shears and translations: INTERP_LINEAR (default) or INTERP_NN.
        max_translate_abs: maximum translation in pixels, 250 by default; a number or (height, width). Only
            without `shape`.
        max_translate_rel: maximum translation as a fraction of the image, 1 by default, likewise. Only with `shape`.
        seed: seed of all random draws; by default the seed of the pipeline.

    Returns:
        Same shape, type and layout.

    Raises:
        ArgumentValueError: an unknown policy, or a limit that does not apply (reduced_image_net has no translations).
        ArgumentTypeError: an argument has the wrong type.

    Example:
        >>> images = auto_augment(images, "svhn", shape=fn.shapes(images))  # doctest: +SKIP
    """
    make = _POLICIES.get(policy_name) if isinstance(policy_name, str) else None
    if make is None:
        raise ArgumentValueError.here(option_error_text("policy_name", policy_name, _POLICIES))
    if make is get_reduced_image_net_policy:
        for name, value in (
            ("shape", shape), ("max_translate_abs", max_translate_abs), ("max_translate_rel", max_translate_rel)
        ):  # fmt: skip
            if value is not None:
                raise ArgumentValueError.here(
                    f"the policy reduced_image_net has no translations and does not accept {name}.",
                    hint=f"Omit {name}.",
                )
        policy = make()
    else:
        policy = make(shape is not None, max_translate_abs, max_translate_rel)
    named = geometric_arguments(shape, fill_value, interp_type, list(policy.augmentations.values()))
    return apply_auto_augment(policy, data, seed, **named)


def apply_auto_augment(policy: Policy, data: DataNode, seed: int | None = None, **kwargs: Any) -> DataNode:
    """Apply one sub-policy to each sample, drawn uniformly from a policy.

    Args:
        policy: the policy to draw from.
        data: input of the augmentations.
        seed: seed of all random draws; by default the seed of the pipeline.
        kwargs: further arguments for the augmentations that accept them.

    Raises:
        ArgumentTypeError: not a policy, or an argument that no augmentation accepts.
        ArgumentValueError: the policy has no sub-policies.
    """
    if not isinstance(policy, Policy):
        raise ArgumentTypeError.here(
            f"policy must be a Policy; got {policy!r}.",
            hint="To apply a policy by name, call auto_augment(data, name).",
        )
    if not policy.sub_policies:
        raise ArgumentValueError.here(f"the policy {policy.name} has no sub-policies.")
    items = list(policy.augmentations.values())
    check_keywords(items, kwargs, "AutoAugment")
    steps = max(len(sub_policy) for sub_policy in policy.sub_policies)
    if steps == 0:
        return data
    plans = [_step_plan(policy, step) for step in range(steps)]
    which = random_index(len(policy.sub_policies), seed=derived_seed(seed, 0))
    chance = apply("random.uniform", range=[0.0, 1.0], shape=(steps,), seed=derived_seed(seed, 1))
    columns = zip(*(tables for _, tables in plans), strict=True)
    numbers, probabilities, levels = (types.Constant(np.stack(column, axis=1))[which] for column in columns)
    # Skipped steps get number 0, the identity, so that a single selection is enough.
    chosen = numbers * (chance < probabilities)
    signed: Any = levels
    if any(item.randomly_negate for item in items):
        signed = signed_bin(levels, seed=derived_seed(seed, 2), shape=(steps,))
    for step, (operations, _) in enumerate(plans):
        data = select(
            [a.identity, *operations],
            chosen[step],
            data,
            magnitude_bin=signed[step],
            num_magnitude_bins=policy.num_magnitude_bins,
            **kwargs,
        )
    return data


def _step_plan(policy: Policy, step: int) -> tuple[list[Augmentation], tuple[np.ndarray, ...]]:
    """Return the augmentations of one step, and for each sub-policy its number (from 1), probability and bin."""
    rows = [sub_policy[step] if step < len(sub_policy) else None for sub_policy in policy.sub_policies]
    used = {row[0].name: row[0] for row in rows if row}
    names = sorted(used)
    places = {name: place for place, name in enumerate(names, 1)}
    # A sub-policy without this step gets number 0, the identity.
    numbers = np.array([places[row[0].name] if row else 0 for row in rows], np.int32)
    probabilities = np.array([row[1] if row else 0.0 for row in rows], np.float32)
    levels = np.array([row[2] or 0 if row else 0 for row in rows], np.int32)
    return [used[name] for name in names], (numbers, probabilities, levels)


def _policy(name: str, table: str, *along_axes: Augmentation) -> Policy:
    """Return the policy of a table, with the ranges of the paper and the given translations."""
    others = (a.solarize_add.augmentation(mag_range=(0, 110)), a.invert, *along_axes)
    items = {item.name: item for item in (*paper_augmentations(), *others)}
    return Policy(
        name, _BINS, [[(items[item], chance, level) for item, chance, level in row] for row in _tables.rows(table)]
    )


def _translated_policy(
    name: str, table: str, use_shape: bool, max_translate_abs: Any, max_translate_rel: Any
) -> Policy:
    return _policy(name, table, *translations(use_shape, max_translate_abs, max_translate_rel, 250, 1.0))


def get_image_net_policy(
    use_shape: bool = False,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
) -> Policy:
    """Return the policy for ImageNet.

    Args:
        use_shape: translate by fractions of the image shape, which must then be passed as ``shape``.
        max_translate_abs: maximum translation in pixels, 250 by default; a number or (height, width).
        max_translate_rel: maximum translation as a fraction of the image, 1 by default, likewise.

    Raises:
        ArgumentValueError: the limit that does not apply is specified.
    """
    return _translated_policy("ImageNetPolicy", _tables.IMAGE_NET, use_shape, max_translate_abs, max_translate_rel)


def get_reduced_image_net_policy() -> Policy:
    """Return the policy found on reduced ImageNet, which has no translations."""
    return _policy("ReducedImageNetPolicy", _tables.REDUCED_IMAGE_NET)


def get_svhn_policy(
    use_shape: bool = False,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
) -> Policy:
    """Return the policy for SVHN; arguments as in `get_image_net_policy`."""
    return _translated_policy("SvhnPolicy", _tables.SVHN, use_shape, max_translate_abs, max_translate_rel)


def get_reduced_cifar10_policy(
    use_shape: bool = False,
    max_translate_abs: int | tuple[int, int] | None = None,
    max_translate_rel: float | tuple[float, float] | None = None,
) -> Policy:
    """Return the policy found on reduced CIFAR-10; arguments as in `get_image_net_policy`."""
    return _translated_policy(
        "ReducedCifar10Policy", _tables.REDUCED_CIFAR10, use_shape, max_translate_abs, max_translate_rel
    )


_POLICIES: dict[str, Callable[..., Policy]] = {
    "image_net": get_image_net_policy,
    "reduced_image_net": get_reduced_image_net_policy,
    "svhn": get_svhn_policy,
    "reduced_cifar10": get_reduced_cifar10_policy,
}
