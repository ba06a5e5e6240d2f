"""What augmentations are made of: decorator, bins of magnitudes, policies, the choice of one for each sample."""

from dalify.auto_aug.core import decorator, policy
from dalify.auto_aug.core._bins import signed_bin
from dalify.auto_aug.core._select import select
from dalify.auto_aug.core.decorator import augmentation
from dalify.auto_aug.core.policy import Policy

__all__ = ["Policy", "augmentation", "decorator", "policy", "select", "signed_bin"]
