"""torchvision's functions on Pillow images and tensors; they compute immediately."""

from dalify.experimental.torchvision.v2.functional.centercrop import center_crop
from dalify.experimental.torchvision.v2.functional.color import rgb_to_grayscale, to_grayscale
from dalify.experimental.torchvision.v2.functional.crop import crop, resized_crop
from dalify.experimental.torchvision.v2.functional.flips import horizontal_flip, vertical_flip
from dalify.experimental.torchvision.v2.functional.gaussian_blur import gaussian_blur
from dalify.experimental.torchvision.v2.functional.image_metadata import get_dimensions, get_image_size, get_size
from dalify.experimental.torchvision.v2.functional.normalize import normalize
from dalify.experimental.torchvision.v2.functional.pad import pad
from dalify.experimental.torchvision.v2.functional.resize import resize
from dalify.experimental.torchvision.v2.functional.totensor import pil_to_tensor, to_pil_image, to_tensor

__all__ = [
    "center_crop",
    "crop",
    "gaussian_blur",
    "get_dimensions",
    "get_image_size",
    "get_size",
    "horizontal_flip",
    "normalize",
    "pad",
    "pil_to_tensor",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "to_grayscale",
    "to_pil_image",
    "to_tensor",
    "vertical_flip",
]
