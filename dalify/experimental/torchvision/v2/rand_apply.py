"""The transform ``RandomApply``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dalify.experimental.torchvision.v2.checks import fraction
from dalify.experimental.torchvision.v2.operator import Device, Images, Operator, checked_transforms, sometimes


class RandomApply(Operator):
    """Apply a list of transforms with a probability.

    Args:
        op_list: transforms; either all transforms are applied, or none.
        p: the probability, independent for each image.
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentValueError: the probability is not between 0 and 1.
        WrongObjectError: an item is not a transform of this package.
    """

    def __init__(self, op_list: Sequence[Callable[..., Any]], p: float = 0.5, device: Device = "cpu") -> None:
        super().__init__(device)
        self.p = fraction(p)
        self._op_list: Sequence[Any] = checked_transforms(op_list)

    def _apply(self, images: Images) -> Images:
        def apply_all(found: Images) -> Images:
            for op in self._op_list:
                found = op._invoke(found)
            return found.moved(images.device)

        return sometimes(images, self.p, apply_all)
