"""The transforms RandomHorizontalFlip and RandomVerticalFlip."""

from __future__ import annotations

from dalify.experimental.torchvision.v2.checks import fraction
from dalify.experimental.torchvision.v2.operator import Device, Images, Operator


class RandomFlip(Operator):
    """Flip images with a probability.

    Args:
        p: the probability.
        horizontal: flip horizontally; otherwise vertically.
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentValueError: the probability is not between 0 and 1.
    """

    def __init__(self, p: float = 0.5, horizontal: bool = True, device: Device = "cpu") -> None:
        super().__init__(device)
        self.prob = fraction(p)
        self.horizontal = horizontal

    def _apply(self, images: Images) -> Images:
        coin = images.coin(self.prob)
        return images.call("flip", horizontal=coin if self.horizontal else 0, vertical=0 if self.horizontal else coin)


class RandomHorizontalFlip(RandomFlip):
    """Flip images horizontally with a probability.

    Args:
        p: the probability.
        device: ``cpu`` or ``gpu``.
    """

    def __init__(self, p: float = 0.5, device: Device = "cpu") -> None:
        super().__init__(p, True, device)


class RandomVerticalFlip(RandomFlip):
    """Flip images vertically with a probability.

    Args:
        p: the probability.
        device: ``cpu`` or ``gpu``.
    """

    def __init__(self, p: float = 0.5, device: Device = "cpu") -> None:
        super().__init__(p, False, device)
