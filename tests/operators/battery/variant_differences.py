"""Where an operator makes something else of a variant than the real DALI, on purpose, with the reason for each."""

from __future__ import annotations

__all__ = ["DIFFERENT", "REFUSED"]

_STRADDLES = "DALI reads three channels a step, and so mixes neighbouring pixels; beyond the end of the image at last"
_AXES = "DALI takes the first two axes for height and width, whatever the layout says"
_OVERFLOW = "DALI adds up squares of 32 bits, which overflow"
_CONSTANT_MASK = "DALI takes notice of a mask only where it differs from sample to sample"
_WRAPS = "a fill value beyond the type saturates; DALI lets it wrap"
_OPENCV = "DALI takes OpenCV, which for these types rounds positions to 1/32 pixel"
_MIRROR = "DALI mirrors the rows where channels or frames stand in front"
_ONE_MEAN = "DALI reads beyond a mean that is a single number for several results"

# "operator | label": why we refuse what DALI accepts.
REFUSED: dict[str, str] = {
    "bbox_rotate | one dimension": "DALI prints an error and returns what was in memory",
    "bbox_rotate | three dimensions": "DALI prints an error and returns what was in memory",
    "box_encoder | nothing": "a label without a box; DALI takes no notice of it",
    "box_encoder | one dimension": "boxes are rows of four; DALI takes any four numbers in a row",
    "box_encoder | one row": "a label without a box; DALI takes no notice of it",
    "box_encoder | three dimensions": "boxes are rows of four; DALI takes any four numbers in a row",
    "color_twist | four channels": _STRADDLES,
    "flip | depth without D": "DALI does nothing; a depth that data do not have is a mistake",
    "grid_mask | CDHW": _AXES,
    "grid_mask | CHW": _AXES,
    "grid_mask | DHWC": _AXES,
    "grid_mask | FCHW": _AXES,
    "grid_mask | HW": "DALI takes the columns for channels, and then reads beyond the image",
    "hsv | four channels": _STRADDLES,
    "hue | four channels": _STRADDLES,
    "paste | four channels": "DALI fills the canvas with three values in turn, which do not meet the channels",
    "power_spectrum | nothing": "a signal without samples has no spectrum; DALI gives zeros",
    "saturation | four channels": _STRADDLES,
}

# "operator | label": why the result is another one.
DIFFERENT: dict[str, str] = {
    "crop | pad, beyond": _WRAPS,
    "crop_mirror_normalize | pad, beyond": _WRAPS,
    "coord_transform | nothing": "no points are still points of two coordinates; DALI forgets their number",
    "erase | beyond": _WRAPS,
    "experimental.warp_perspective | of int16": _OPENCV,
    "experimental.warp_perspective | two channels": _OPENCV,
    "grid_mask | FHWC": _AXES,
    "laplacian | of float16": "DALI rounds every derivative to float16 before it adds them up",
    "pad | negative fill": _WRAPS,
    "reductions.mean | dtype=UINT8": "DALI scales in the type of the result, where 1 / count is 0",
    "reductions.mean_square | of uint16": _OVERFLOW,
    "reductions.rms | of uint16": _OVERFLOW,
    "reductions.std_dev | axes": _ONE_MEAN,
    "reductions.variance | axes": _ONE_MEAN,
    "resize_crop_mirror | CDHW": _MIRROR,
    "resize_crop_mirror | CHW": _MIRROR,
    "resize_crop_mirror | FCHW": _MIRROR,
    "resize_crop_mirror | FHWC": _MIRROR,
    "slice | pad, beyond": _WRAPS,
    "sphere | beyond": _WRAPS,
    "sphere | masked out": _CONSTANT_MASK,
    "sphere | one pixel": "a pixel is its own centre; DALI divides by a radius of 0",
    "squeeze | negative": "DALI takes no notice of negative axes",
    "tensor_resize | mode": "DALI also scales axes that are not named: two of three channels are left",
    "water | beyond": _WRAPS,
    "water | masked out": _CONSTANT_MASK,
}
