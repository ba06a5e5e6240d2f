"""Transforms that only select the output type of a Compose, Pillow images or tensors."""

from __future__ import annotations

from dalify.experimental.torchvision.v2.operator import Images, Operator


class ToPureTensor(Operator):
    """Return tensors ``[C, H, W]``, also for Pillow images."""

    def _apply(self, images: Images) -> Images:
        return images


class PILToTensor(Operator):
    """Return tensors ``[C, H, W]`` for Pillow images; the values are unchanged."""

    def _apply(self, images: Images) -> Images:
        return images


class ToPILImage(Operator):
    """Return Pillow images, also for tensors."""

    def _apply(self, images: Images) -> Images:
        return images
