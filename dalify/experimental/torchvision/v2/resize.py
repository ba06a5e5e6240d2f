"""The transform ``Resize``."""

from __future__ import annotations

from collections.abc import Sequence

from dalify.base.errors import ArgumentValueError
from dalify.base.torchvision_rules import resized
from dalify.experimental.torchvision.v2.checks import size_of
from dalify.experimental.torchvision.v2.interpolation import InterpolationMode, interp_type
from dalify.experimental.torchvision.v2.operator import Device, Images, Operator


class Resize(Operator):
    """Resize images.

    Args:
        size: an integer, or a list of one, for the shorter side; ``[height, width]``; or None, to use only
            ``max_size``.
        interpolation: a member of ``InterpolationMode``, of torchvision's enumeration, or Pillow's number.
        max_size: maximum of the longer side, if ``size`` is one number or None.
        antialias: whether to apply an antialiasing filter when downscaling.
        device: ``cpu`` or ``gpu``.

    Raises:
        ArgumentTypeError: the size is neither an integer nor a list.
        ArgumentValueError: sizes are missing or contradictory, or the interpolation does not exist.
        UnsupportedModeError: dalify does not support the interpolation.
    """

    def __init__(
        self,
        size: int | Sequence[int] | None,
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
        device: Device = "cpu",
    ) -> None:
        super().__init__(device)
        self.interpolation = interp_type(interpolation)
        if size is None and max_size is None:
            raise ArgumentValueError("specify size or max_size.", hint="Write Resize(224).")
        self._size = None if size is None else size_of(size)
        if max_size is not None:
            if max_size < 1:
                raise ArgumentValueError(f"max_size must be positive; got {max_size!r}.")
            if self._size is not None and len(self._size) == 2:
                raise ArgumentValueError(
                    f"max_size requires size to be one integer, the length of the shorter side; got {size!r}."
                )
            if self._size is not None and self._size[0] > max_size:
                raise ArgumentValueError(f"max_size must be at least size; got {max_size} and {self._size[0]}.")
        self.size = size
        self.max_size = max_size
        self.antialias = antialias

    def _apply(self, images: Images) -> Images:
        height, width = resized(*images.extents(), self._size, self.max_size)
        return images.call(
            "resize",
            size=images.pair(height * 1.0, width * 1.0),
            interp_type=self.interpolation,
            antialias=self.antialias is None or bool(self.antialias),
        )
