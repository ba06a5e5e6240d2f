"""Image decoders and random crop windows for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dalify import fn as dali
from dalify.base.errors import ArgumentValueError, LayoutError, option_error_text
from dalify.data import DALIInterpType
from dalify.graph import DataNode
from dalify.mediapipe.media_types import decoderStage, ftype, imgtype, randomCropType
from dalify.mediapipe.node import Lowering, Value, checked_integers, extents, operator, seed_of
from dalify.registry import Parameters

_FILTERS = {
    ftype.LINEAR: DALIInterpType.INTERP_LINEAR,
    ftype.BI_LINEAR: DALIInterpType.INTERP_LINEAR,
    ftype.LANCZOS: DALIInterpType.INTERP_LANCZOS3,
    ftype.NEAREST: DALIInterpType.INTERP_NN,
    ftype.BICUBIC: DALIInterpType.INTERP_CUBIC,
}
RANDOM_CROPS = (
    randomCropType.RANDOMIZED_AREA_AND_ASPECT_RATIO_CROP,
    randomCropType.RANDOMIZED_ASPECT_RATIO_CROP,
)
_CROPS = (randomCropType.NO_RANDOM_CROP, *RANDOM_CROPS, randomCropType.CENTER_CROP)


@dataclass(slots=True)
class RandomWindows(Parameters):
    """The random windows that a decoder crops.

    Attributes:
        scale_min: minimum fraction of the image's area for random windows.
        scale_max: maximum fraction of the image's area.
        ratio_min: minimum aspect ratio, width / height.
        ratio_max: maximum aspect ratio.
        seed: seed of the random numbers.
    """

    scale_min: float = 0.08
    scale_max: float = 1.0
    ratio_min: float = 3 / 4
    ratio_max: float = 4 / 3
    seed: int | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of dalify's operators with random windows."""
        return {
            "random_area": [self.scale_min, self.scale_max],
            "random_aspect_ratio": [self.ratio_min, self.ratio_max],
            "seed": seed_of(self.seed),
        }


def filter_of(number: int) -> DALIInterpType:
    """Return dalify's filter for a member of ``ftype``.

    Raises:
        ArgumentValueError: the filter is not supported.
    """
    if number not in _FILTERS:
        names = [f"ftype.{name}" for name, value in vars(ftype).items() if value in _FILTERS and name.isupper()]
        raise ArgumentValueError(option_error_text("resampling_mode", number, names))
    return _FILTERS[number]


def check_output(output_format: str, random_crop_type: int) -> None:
    """Check the options of a decoder.

    Raises:
        ArgumentValueError: the value is not a member of ``imgtype`` or ``randomCropType``.
    """
    if output_format not in (imgtype.RGB_I, imgtype.RGB_P):
        raise ArgumentValueError(option_error_text("output_format", output_format, ["imgtype.RGB_I", "imgtype.RGB_P"]))
    if random_crop_type not in _CROPS:
        names = [name for name in vars(randomCropType) if name.isupper()]
        raise ArgumentValueError(option_error_text("random_crop_type", random_crop_type, names))


def resize_and_center_crop(image: DataNode, height: int, width: int, interpolation: DALIInterpType) -> DataNode:
    """Resize images or clips until they cover a size, and crop the center."""
    image = dali.resize(image, size=[height, width], mode="not_smaller", interp_type=interpolation)
    return dali.crop(image, crop=[height, width])


def crop_pixels(image: DataNode, part: Any, axes: Sequence[int]) -> DataNode:
    """Apply ``crop_after_resize``: [left, top, width, height], in pixels; None for no crop.

    Raises:
        ArgumentValueError: the value has another form.
    """
    if part is None:
        return image
    left, top, width, height = checked_integers(part, 4, 0, "crop_after_resize")
    return dali.slice(image, start=[top, left], shape=[height, width], axes=axes)


def _files(value: Value) -> DataNode:
    if value.kind == "path":
        return dali.io.file.read(value.node)
    if value.kind != "file":
        raise LayoutError(
            "a decoder needs paths or files from a reader; got other data.",
            hint="Pass the first output of the reader.",
        )
    return value.node


@operator()
def CropWindowGen(
    files: Value,
    /,
    *,
    resize_width: int = 0,
    resize_height: int = 0,
    type: int = randomCropType.RANDOMIZED_AREA_AND_ASPECT_RATIO_CROP,
    windows: RandomWindows,
) -> Value:
    """Choose a random window of each image, reading only its header.

    As torchvision's ``RandomResizedCrop``: area, logarithm of the aspect ratio, and position are uniform.

    Args:
        files: paths or files of images.
        resize_width: accepted but ignored: the decoder determines the size.
        resize_height: accepted but ignored.
        type: type of window, see ``randomCropType``; the decoder handles CENTER_CROP and no crop.
        windows: area, aspect ratio and seed of random windows.

    Returns:
        float32 ``[4]`` for each image: x, y, width, height as fractions of the image's width and height.
    """
    del resize_width, resize_height
    if type not in RANDOM_CROPS:
        options = ["RANDOMIZED_AREA_AND_ASPECT_RATIO_CROP", "RANDOMIZED_ASPECT_RATIO_CROP"]
        raise ArgumentValueError(option_error_text("type", type, options))
    shape = dali.peek_image_shape(_files(files))
    anchor, size = dali.random_crop_generator(shape, **windows.arguments())
    height, width = shape[0], shape[1]
    return Value(dali.stack(anchor[1] / width, anchor[0] / height, size[1] / width, size[0] / height))


@operator()
def ImageDecoder(
    context: Lowering,
    files: Value,
    window: Value | None = None,
    /,
    *,
    resize: Sequence[int],
    output_format: str = imgtype.RGB_I,
    resampling_mode: int = ftype.BI_LINEAR,
    random_crop_type: int = randomCropType.NO_RANDOM_CROP,
    windows: RandomWindows,
    decoder_stage: int = decoderStage.ENABLE_ALL_STAGES,
    crop_after_resize: Sequence[int] | None = None,
) -> Value:
    """Decode images, crop a part of each, and resize it.

    Without a crop, the image is resized without keeping its aspect ratio. Downscaling uses antialiasing, as in
    DALI. All formats of ``fn.decoders.image`` are supported, not only JPEG.

    Args:
        context: the graph.
        files: paths or files.
        window: the window to crop, from ``CropWindowGen``.
        resize: [width, height] of the result.
        output_format: ``imgtype.RGB_I`` (NumPy's HWC) or ``imgtype.RGB_P`` (CHW).
        resampling_mode: LINEAR, BI_LINEAR, LANCZOS, NEAREST or BICUBIC of ``ftype``.
        random_crop_type: see ``randomCropType``. Both random types crop a random area and aspect ratio; CENTER_CROP
            resizes until the image covers the size and crops the center.
        windows: area, aspect ratio and seed of random windows.
        decoder_stage: accepted but ignored; all stages are executed.
        crop_after_resize: [left, top, width, height] in pixels, cropped from the resized image.

    Returns:
        uint8 images.
    """
    del decoder_stage
    height, width = extents(resize, 2, "resize")
    check_output(output_format, random_crop_type)
    interpolation = filter_of(resampling_mode)
    device = "mixed" if context.is_accelerated else "cpu"
    encoded = _files(files)
    if window is not None:
        image = dali.decoders.image_slice(encoded, window.node[0:2], window.node[2:4], device=device)
    elif random_crop_type in RANDOM_CROPS:
        image = dali.decoders.image_random_crop(encoded, device=device, **windows.arguments())
    else:
        image = dali.decoders.image(encoded, device=device)
    if window is None and random_crop_type == randomCropType.CENTER_CROP:
        image = resize_and_center_crop(image, height, width, interpolation)
    else:
        image = dali.resize(image, size=[height, width], interp_type=interpolation)
    image = crop_pixels(image, crop_after_resize, [0, 1])
    if output_format == imgtype.RGB_P:
        return replace(Value(dali.transpose(image, perm=[2, 0, 1]), "CHW"), interleaved=image)
    return Value(image, "HWC")
