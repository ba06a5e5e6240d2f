"""torchvision's transforms on dalify's operators, as DALI's ``nvidia.dali.experimental.torchvision``.

``Compose`` takes Pillow images, tensors ``[C, H, W]`` and batches ``[..., C, H, W]``; its transforms are one pipeline.
``v2.functional`` has them as functions, which compute immediately. docs/torchvision.md lists the differences from
torchvision.
"""

from dalify.experimental.torchvision.v2.centercrop import CenterCrop
from dalify.experimental.torchvision.v2.color import ColorJitter, Grayscale, RandomGrayscale
from dalify.experimental.torchvision.v2.compose import Compose
from dalify.experimental.torchvision.v2.flips import RandomHorizontalFlip, RandomVerticalFlip
from dalify.experimental.torchvision.v2.gaussian_blur import GaussianBlur
from dalify.experimental.torchvision.v2.interpolation import InterpolationMode
from dalify.experimental.torchvision.v2.normalize import Normalize
from dalify.experimental.torchvision.v2.pad import Pad
from dalify.experimental.torchvision.v2.rand_apply import RandomApply
from dalify.experimental.torchvision.v2.randomcrop import RandomCrop, RandomResizedCrop
from dalify.experimental.torchvision.v2.resize import Resize
from dalify.experimental.torchvision.v2.totensor import PILToTensor, ToPILImage, ToPureTensor

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "GaussianBlur",
    "Grayscale",
    "InterpolationMode",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomApply",
    "RandomCrop",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
    "ToPILImage",
    "ToPureTensor",
]
