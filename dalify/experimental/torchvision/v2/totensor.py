"""What a Compose returns: Pillow images or tensors. These transforms change no data."""

from __future__ import annotations

from dalify.experimental.torchvision.v2.operator import Images, Operator

__all__ = ["PILToTensor", "ToPILImage", "ToPureTensor"]


class ToPureTensor(Operator):
    """Return tensors ``[C, H, W]``, also for Pillow images."""

    def _apply(self, images: Images) -> Images:
        return images


class PILToTensor(Operator):
    """Return tensors ``[C, H, W]`` for Pillow images; the values stay as they are."""

    def _apply(self, images: Images) -> Images:
        return images


class ToPILImage(Operator):
    """Return Pillow images, also for tensors."""

    def _apply(self, images: Images) -> Images:
        return images
