"""Building blocks of augmentations: the decorator, magnitude bins, policies, and per-sample selection."""

from dalify.auto_aug.core import decorator, policy
from dalify.auto_aug.core._bins import signed_bin
from dalify.auto_aug.core._select import select
from dalify.auto_aug.core.decorator import augmentation
from dalify.auto_aug.core.policy import Policy

__all__ = ["Policy", "augmentation", "decorator", "policy", "select", "signed_bin"]
