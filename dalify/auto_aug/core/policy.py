"""Policies of AutoAugment: sequences of augmentations with probabilities and magnitudes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.auto_aug.core._augmentation import Augmentation
from dalify.auto_aug.core._bins import check_bin, check_bin_count
from dalify.base.deprecation import warn_at_line
from dalify.base.errors import ArgumentTypeError, ArgumentValueError

Step = tuple[Augmentation, float, "int | None"]


class Policy:
    """Sub-policies, one of which is drawn for each sample; its steps are applied in order.

    Source: Cubuk et al., AutoAugment, arXiv:1805.09501.

    Args:
        name: name in ``repr``.
        num_magnitude_bins: number of bins of the magnitude ranges.
        sub_policies: sequences of steps ``(augmentation, probability, magnitude bin)``: the augmentation is applied
            with the given probability; a probability of 0 causes a warning. For augmentations without magnitudes, the
            bin is None; other bins are ignored with a warning.

    Raises:
        ArgumentTypeError: a value has the wrong type.
        ArgumentValueError: a number is out of range, or an augmentation with magnitudes has no bin.
    """

    def __init__(self, name: str, num_magnitude_bins: int, sub_policies: Sequence[Sequence[Step]]) -> None:
        check_bin_count(num_magnitude_bins)
        for sub_policy in sub_policies:
            for step in sub_policy:
                _check_step(step, num_magnitude_bins, name)
        self.name = name
        self.num_magnitude_bins = num_magnitude_bins
        self._sub_policies, self._augmentations = _with_names(sub_policies)

    @property
    def sub_policies(self) -> tuple[tuple[Step, ...], ...]:
        """The sub-policies."""
        return self._sub_policies

    @property
    def augmentations(self) -> dict[str, Augmentation]:
        """All augmentations by name; different ones with the same name get a number as a prefix."""
        return dict(self._augmentations)

    def __repr__(self) -> str:
        rows = ",\n\t".join(
            str([(step.name, probability, level) for step, probability, level in sub_policy])
            for sub_policy in self._sub_policies
        )
        parts = ",\n\t".join(f"{name!r}: {item!r}" for name, item in self._augmentations.items())
        return (
            f"Policy(name={self.name!r}, num_magnitude_bins={self.num_magnitude_bins}, sub_policies=[\n\t{rows}], "
            f"augmentations={{\n\t{parts}}})"
        )


def _check_step(step: Any, count: int, policy: str) -> None:
    if not isinstance(step, (tuple, list)) or len(step) != 3:
        raise ArgumentTypeError.here(
            f"a step of a sub-policy must be (augmentation, probability, magnitude bin); got {step!r}.",
            hint="A policy is a list of sub-policies, each a list of steps: [[(rotate, 0.8, 3), (invert, 0.2, None)]].",
        )
    augmentation, probability, level = step
    if not isinstance(augmentation, Augmentation):
        raise ArgumentTypeError.here(
            f"a step of a sub-policy must start with an augmentation; got {augmentation!r}.",
            hint="Decorate a function (data, parameter) -> data with @augmentation.",
        )
    if not isinstance(probability, (int, float, np.number)):
        raise ArgumentTypeError.here(f"the probability of {augmentation.name} must be a number; got {probability!r}.")
    if not 0 <= probability <= 1:
        raise ArgumentValueError.here(
            f"the probability of {augmentation.name} must be between 0 and 1; got {probability!r}."
        )
    if probability == 0:
        warn_at_line(f"the probability of {augmentation.name} in the policy {policy!r} is 0.", UserWarning)
    if level is not None:
        check_bin(level, count, f"the magnitude bin of {augmentation.name}")
        if augmentation.mag_range is None:
            warn_at_line(
                f"{augmentation.name} has no magnitudes: its bin {level} in the policy {policy!r} is ignored. Write "
                "None instead.",
                UserWarning,
            )
    elif augmentation.mag_range is not None:
        raise ArgumentValueError.here(
            f"{augmentation.name} has magnitudes, but the policy {policy!r} specifies no magnitude bin for it.",
            hint=f"For example ({augmentation.name}, {probability}, 3).",
        )


def _with_names(
    sub_policies: Sequence[Sequence[Step]],
) -> tuple[tuple[tuple[Step, ...], ...], dict[str, Augmentation]]:
    """Return the sub-policies as tuples, with name clashes resolved, and all augmentations sorted by name."""
    found: dict[int, Augmentation] = {id(step[0]): step[0] for steps in sub_policies for step in steps}
    by_name: dict[str, list[Augmentation]] = {}
    for item in found.values():
        by_name.setdefault(item.name, []).append(item)
    renamed: dict[int, Augmentation] = {}
    for name, items in by_name.items():
        for number, item in enumerate(items):
            renamed[id(item)] = item if len(items) == 1 else item.augmentation(name=f"{number}__{name}")
    steps = tuple(
        tuple((renamed[id(augmentation)], probability, level) for augmentation, probability, level in sub_policy)
        for sub_policy in sub_policies
    )
    return steps, {item.name: item for item in sorted(renamed.values(), key=lambda item: item.name)}
