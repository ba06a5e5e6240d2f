"""Operators as `ops`. Made by `python -m docs.stubs` from the operators' files, for editors and type checkers."""

from collections.abc import Callable as _Callable, Sequence as _Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from typing_extensions import deprecated

from dalify import types
from dalify.graph import DataNode

_T = TypeVar("_T")
_Many: TypeAlias = _T | _Sequence[_T] | _Sequence[_Sequence[_T]] | np.ndarray[Any, Any]
_Input: TypeAlias = DataNode | _Sequence[DataNode] | npt.ArrayLike
_DType: TypeAlias = types.DALIDataType | np.dtype[Any] | type[Any]

from dalify.ops import decoders as decoders, experimental as experimental, io as io, noise as noise, random as random, readers as readers, reductions as reductions, segmentation as segmentation, transforms as transforms

class Arithmetic:
    """Apply a function to every element of the operands.

    normalised = (images - 127.5) / 127.5
    """

    def __init__(
        self,
        *,
        function: str,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class AudioResample:
    """Change the sampling rate of sounds.

    sound = fn.audio_resample(sound, in_rate=rate, out_rate=16000.0)
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = None,
        in_rate: float | DataNode | None = None,
        out_length: int | DataNode | None = None,
        out_rate: float | DataNode | None = None,
        quality: float | None = 50.0,
        scale: float | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class BatchPermutation:
    """Draw a permutation of the numbers of the samples in the batch, for `fn.permute_batch`.

    others = fn.permute_batch(images, indices=fn.batch_permutation())
    """

    def __init__(
        self,
        *,
        allow_repetitions: bool | None = False,
        no_fixed_points: bool | None = False,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class BbFlip:
    """Mirror bounding boxes in relative coordinates (0 to 1) with their image.

    boxes = fn.bb_flip(boxes, ltrb=True, horizontal=fn.random.coin_flip())
    """

    def __init__(
        self,
        *,
        horizontal: int | DataNode | None = 1,
        ltrb: bool | None = False,
        vertical: int | DataNode | None = 0,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class BBoxPaste:
    """Move bounding boxes in relative coordinates with an image that is pasted on a larger canvas.

    boxes = fn.bbox_paste(boxes, ratio=2.0, paste_x=0.1, paste_y=0.6)
    """

    def __init__(
        self,
        *,
        ltrb: bool | None = False,
        paste_x: float | DataNode | None = 0.5,
        paste_y: float | DataNode | None = 0.5,
        ratio: float | DataNode,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class BBoxRotate:
    """Turn bounding boxes with their image, as fn.rotate turns it with the same `angle`, `keep_size` and `size`.

    boxes, labels = fn.bbox_rotate(
        boxes, labels, angle=30, input_shape=images.shape(), shape_layout="HWC"
    )
    """

    def __init__(
        self,
        *,
        angle: float | DataNode,
        bbox_layout: str | None = "xyXY",
        bbox_normalized: bool | None = True,
        input_shape: _Many[int] | DataNode,
        keep_size: bool | None = False,
        mode: str | None = "expand",
        remove_threshold: float | None = 0.1,
        shape_layout: str | None = "HW",
        size: _Many[float] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class BoxEncoder:
    """Assign bounding boxes to anchors (Liu et al., SSD: Single Shot MultiBox Detector, arXiv:1512.02325).

    boxes, labels = fn.box_encoder(boxes, labels, anchors=anchors)
    """

    def __init__(
        self,
        *,
        anchors: _Many[float],
        criteria: float | None = 0.5,
        means: _Many[float] | None = ...,
        offset: bool | None = False,
        scale: float | None = 1.0,
        stds: _Many[float] | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> tuple[DataNode, DataNode]: ...

class Brightness:
    """Change the brightness of images.

    images = fn.brightness(images, brightness=1.2)
    """

    def __init__(
        self,
        *,
        brightness: _Many[float] | DataNode | None = ...,
        brightness_shift: _Many[float] | DataNode | None = ...,
        dtype: _DType | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class BrightnessContrast:
    """Change the brightness and contrast of images.

    images = fn.brightness_contrast(images, brightness=1.2, contrast=0.8)
    """

    def __init__(
        self,
        *,
        brightness: _Many[float] | DataNode | None = ...,
        brightness_shift: _Many[float] | DataNode | None = ...,
        contrast: _Many[float] | DataNode | None = ...,
        contrast_center: _Many[float] | DataNode | None = None,
        dtype: _DType | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Cache:
    """Keep samples for the next epoch: what is in front of this operator is computed once for each sample of a
    reader.

    encoded, labels = fn.readers.file(file_root="photos", random_shuffle=True)
    images = fn.resize(fn.decoders.image(encoded), size=[256, 256])
    images = fn.cache(images, cache_size=4096)
    """

    def __init__(
        self,
        *,
        cache_size: int | None = 1024,
        cache_type: str | None = "threshold",
        cache_threshold: int | None = 0,
        cache_folder: str | None = "",
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class Cast:
    """Convert elements to another type.

    labels = fn.cast(labels, dtype=types.INT64)
    """

    def __init__(
        self,
        *,
        dtype: _DType,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class CastLike:
    """Convert elements to the type of other data, by the rules of `fn.cast`.

    noise = fn.cast_like(noise, images)
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Cat:
    """Join samples along one of their axes.

    wide = fn.cat(left, right, axis_name="W")
    """

    def __init__(
        self,
        *,
        axis: int | None = 0,
        axis_name: str | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Clahe:
    """Equalise histograms locally, with limited contrast (CLAHE: Zuiderveld, Graphics Gems IV, 1994).

    images = fn.clahe(images, tiles_x=8, tiles_y=8, clip_limit=2.0)
    """

    def __init__(
        self,
        *,
        bins: int | None = 256,
        clip_limit: float,
        luma_only: bool | None = True,
        tiles_x: int,
        tiles_y: int,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class ColorSpaceConversion:
    """Convert images between RGB, BGR, grey and YCbCr.

    grey = fn.color_space_conversion(
        images, image_type=types.RGB, output_type=types.GRAY
    )
    """

    def __init__(
        self,
        *,
        image_type: types.DALIImageType,
        output_type: types.DALIImageType,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class ColorTwist:
    """Change hue, saturation, contrast and brightness of images, in this order.

    images = fn.color_twist(images, brightness=1.1, contrast=0.9, hue=10, saturation=1.2)
    """

    def __init__(
        self,
        *,
        brightness: _Many[float] | DataNode | None = ...,
        contrast: _Many[float] | DataNode | None = ...,
        dtype: _DType | None = None,
        hue: _Many[float] | DataNode | None = ...,
        image_type: types.DALIImageType | None = types.RGB,
        saturation: _Many[float] | DataNode | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Constant:
    """Give every sample the same values.

    mean = fn.constant(fdata=[0.485, 0.456, 0.406])
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = None,
        fdata: _Many[float] | None = None,
        idata: _Many[int] | None = None,
        layout: str | None = "",
        shape: _Many[int] | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Contrast:
    """Change the contrast of images.

    images = fn.contrast(images, contrast=0.8)
    """

    def __init__(
        self,
        *,
        contrast: _Many[float] | DataNode | None = ...,
        contrast_center: _Many[float] | DataNode | None = None,
        dtype: _DType | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class CoordFlip:
    """Mirror points about a center: `out = 2 * center - x` in the axes that are flipped.

    points = fn.coord_flip(points, flip_x=fn.random.coin_flip())
    """

    def __init__(
        self,
        *,
        center_x: float | DataNode | None = 0.5,
        center_y: float | DataNode | None = 0.5,
        center_z: float | DataNode | None = 0.5,
        flip_x: int | DataNode | None = 1,
        flip_y: int | DataNode | None = 0,
        flip_z: int | DataNode | None = 0,
        layout: str | None = "",
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class CoordTransform:
    """Apply a matrix and a translation to points or vectors: `out = M * x + T`.

    points = fn.coord_transform(points, MT=fn.transforms.rotation(angle=30))
    """

    def __init__(
        self,
        *,
        M: _Many[float] | DataNode | None = None,
        MT: _Many[float] | DataNode | None = None,
        T: _Many[float] | DataNode | None = None,
        dtype: _DType | None = types.FLOAT,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Copy:
    """Copy the data to memory of their own.

    again = fn.copy(images)
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Crop:
    """Cut a window out of each sample.

    images = fn.crop(images, crop=[224, 224])
    """

    def __init__(
        self,
        *,
        crop: _Many[float] | DataNode | None = None,
        crop_d: float | DataNode | None = 0.0,
        crop_h: float | DataNode | None = 0.0,
        crop_pos_x: float | DataNode | None = 0.5,
        crop_pos_y: float | DataNode | None = 0.5,
        crop_pos_z: float | DataNode | None = 0.5,
        crop_w: float | DataNode | None = 0.0,
        dtype: _DType | None = None,
        fill_values: _Many[float] | None = ...,
        out_of_bounds_policy: str | None = "error",
        rounding: str | None = "round",
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class CropMirrorNormalize:
    """Cut out a window, mirror it, and normalise: `scale * (window - mean) / std + shift`, in float32.

    mean, std = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
    images = fn.crop_mirror_normalize(images, crop=[224, 224], mean=mean, std=std)
    """

    def __init__(
        self,
        *,
        crop: _Many[float] | DataNode | None = None,
        crop_d: float | DataNode | None = 0.0,
        crop_h: float | DataNode | None = 0.0,
        crop_pos_x: float | DataNode | None = 0.5,
        crop_pos_y: float | DataNode | None = 0.5,
        crop_pos_z: float | DataNode | None = 0.5,
        crop_w: float | DataNode | None = 0.0,
        dtype: _DType | None = types.FLOAT,
        fill_values: _Many[float] | None = ...,
        mean: _Many[float] | DataNode | None = ...,
        mirror: int | DataNode | None = 0,
        out_of_bounds_policy: str | None = "error",
        output_layout: str | None = "CHW",
        pad_output: bool | None = False,
        rounding: str | None = "round",
        scale: float | None = 1.0,
        shift: float | None = 0.0,
        std: _Many[float] | DataNode | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Debayer:
    """Make colour images of what a sensor behind a Bayer filter saw: each pixel gets the two colours it lacks.

    images = fn.debayer(mosaics, blue_position=[1, 1])
    """

    def __init__(
        self,
        *,
        algorithm: str | None = None,
        blue_position: _Many[int] | DataNode,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class DLTensorPythonFunction:
    """Call a Python function on DLPack capsules, which every array library can turn into its own arrays without
    a copy.

    from torch.utils.dlpack import from_dlpack, to_dlpack
    def double(capsules):
        return [to_dlpack(from_dlpack(capsule) * 2) for capsule in capsules]
    doubled = fn.dl_tensor_python_function(x, function=double)
    """

    def __init__(
        self,
        *,
        function: Any,
        num_outputs: int | None = 1,
        synchronize_stream: bool | None = True,
        batch_processing: bool | None = True,
        output_layouts: Any = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class DumpImage:
    """Write each image of the batch to a file in the working folder, and pass it on unchanged.

    images = fn.dump_image(images, suffix="augmented")
    """

    def __init__(
        self,
        *,
        input_layout: str | None = "HWC",
        suffix: str | None = "",
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class ElementExtract:
    """Take elements along the first axis, each as an output of its own.

    first, fourth = fn.element_extract(sequence, element_map=[0, 3])
    """

    def __init__(
        self,
        *,
        element_map: _Many[int],
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class Equalize:
    """Equalise the histogram of each channel of each image, so that all grey levels become about equally
    frequent.

    images = fn.equalize(images)
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Erase:
    """Fill one or more regions with a value.

    images = fn.erase(images, anchor=[0.2, 0.3], shape=[0.1, 0.2], normalized=True)
    """

    def __init__(
        self,
        *,
        anchor: _Many[float] | DataNode | None = None,
        axes: _Many[int] | None = None,
        axis_names: str | None = None,
        centered_anchor: bool | None = False,
        fill_value: _Many[float] | DataNode | None = ...,
        normalized: bool | None = False,
        normalized_anchor: bool | None = None,
        normalized_shape: bool | None = None,
        shape: _Many[float] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class ExpandDims:
    """Insert axes of extent 1.

    sequence = fn.expand_dims(images, axes=[0], new_axis_names="F")
    """

    def __init__(
        self,
        *,
        axes: _Many[int],
        new_axis_names: str | None = "",
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class ExternalSource:
    """Take data from a Python source.

    images = fn.external_source(source=lambda: np.zeros((4, 8, 8, 3), np.uint8), layout="HWC")
    """

    def __init__(
        self,
        source: Any = None,
        num_outputs: int | None = None,
        *,
        cycle: Any = None,
        layout: Any = None,
        dtype: Any = None,
        ndim: Any = None,
        cuda_stream: Any = None,
        use_copy_kernel: Any = None,
        blocking: Any = None,
        batch: bool | None = None,
        repeat_last: bool | None = False,
        parallel: bool | None = None,
        no_copy: bool | None = None,
        prefetch_queue_depth: int | None = None,
        batch_info: bool | None = False,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class Filter:
    """Weigh the neighbours of each pixel with the elements of a matrix, those of voxels with a block.

    images = fn.filter(images, np.full((3, 3), 1 / 9, np.float32))
    """

    def __init__(
        self,
        *,
        anchor: _Many[int] | DataNode | None = ...,
        border: str | None = "reflect_101",
        dtype: _DType | None = None,
        mode: str | None = "same",
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Flip:
    """Mirror each sample along the chosen axes.

    images = fn.flip(images, horizontal=fn.random.coin_flip())
    """

    def __init__(
        self,
        *,
        depthwise: int | DataNode | None = 0,
        horizontal: int | DataNode | None = 1,
        vertical: int | DataNode | None = 0,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Full:
    """Repeat a value until it fills a shape.

    grey = fn.full(128, shape=[64, 64, 3], layout="HWC")
    """

    def __init__(
        self,
        *,
        layout: str | None = None,
        shape: _Many[int] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class FullLike:
    """Repeat a value until it fills the shape of other data.

    background = fn.full_like(images, 128)
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class GaussianBlur:
    """Blur images, sequences or volumes with a Gaussian; edges are mirrored without repeating the edge pixel.

    images = fn.gaussian_blur(images, sigma=1.5)
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = None,
        sigma: _Many[float] | DataNode | None = ...,
        window_size: _Many[int] | DataNode | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class GetProperty:
    """Return a note on each sample as a text, in bytes.

    names = fn.get_property(jpegs, key="source_info")
    """

    def __init__(
        self,
        *,
        key: str,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class GridMask:
    """Black out squares of a regular grid (Chen et al., GridMask Data Augmentation, arXiv:2001.04086).

    images = fn.grid_mask(images, tile=64, ratio=0.4, angle=0.3)
    """

    def __init__(
        self,
        *,
        angle: _Many[float] | DataNode | None = ...,
        ratio: _Many[float] | DataNode | None = ...,
        shift_x: _Many[float] | DataNode | None = ...,
        shift_y: _Many[float] | DataNode | None = ...,
        tile: _Many[int] | DataNode | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Hsv:
    """Change hue, saturation and value of images.

    images = fn.hsv(images, hue=20, saturation=1.2, value=0.9)
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = types.UINT8,
        hue: _Many[float] | DataNode | None = ...,
        saturation: _Many[float] | DataNode | None = ...,
        value: _Many[float] | DataNode | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Hue:
    """Turn the hue of images by an angle.

    images = fn.hue(images, hue=fn.random.uniform(range=[-20, 20]))
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = None,
        hue: _Many[float] | DataNode | None = ...,
        image_type: types.DALIImageType | None = types.RGB,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Jitter:
    """Move every pixel by a little, at random: `out(x, y) = in(x + u, y + v)`.

    images = fn.jitter(images, nDegree=4)
    """

    def __init__(
        self,
        *,
        fill_value: float | None = 0.0,
        interp_type: types.DALIInterpType | None = types.INTERP_NN,
        mask: int | DataNode | None = 1,
        nDegree: int | None = 2,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class JpegCompressionDistortion:
    """Give images the artifacts of JPEG compression, by compressing and decompressing them.

    images = fn.jpeg_compression_distortion(images, quality=20)
    """

    def __init__(
        self,
        *,
        quality: _Many[int] | DataNode | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Laplacian:
    """Compute the Laplacian: the sum of the second derivatives along all data axes.

    edges = fn.laplacian(images, window_size=5, dtype=types.FLOAT)
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = None,
        normalized_kernel: bool | None = False,
        scale: _Many[float] | DataNode | None = None,
        smoothing_size: _Many[int] | DataNode | None = None,
        window_size: _Many[int] | DataNode | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class LookupTable:
    """Replace integers by values from a table.

    classes = fn.lookup_table(labels, keys=[3, 5], values=[0, 1], dtype=types.INT32)
    """

    def __init__(
        self,
        *,
        default_value: float | None = 0.0,
        dtype: _DType | None = types.FLOAT,
        keys: _Many[int] | None = ...,
        values: _Many[float] | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class MelFilterBank:
    """Sum a spectrum up with triangular filters whose corners are equally spaced in mel.

    mel = fn.mel_filter_bank(spectrum, nfilter=80, sample_rate=16000.0)
    """

    def __init__(
        self,
        *,
        freq_high: float | None = 0.0,
        freq_low: float | None = 0.0,
        mel_formula: str | None = "slaney",
        nfilter: int | None = 128,
        normalize: bool | None = True,
        sample_rate: float | None = 44100.0,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class MFCC:
    """Take the cosine transform of a (logarithmic) mel spectrogram along its frequencies: the cepstrum.

    coefficients = fn.mfcc(fn.to_decibels(mel), n_mfcc=13, lifter=22.0)
    """

    def __init__(
        self,
        *,
        axis: int | None = 0,
        dct_type: int | None = 2,
        lifter: float | None = 0.0,
        n_mfcc: int | None = 20,
        normalize: bool | None = False,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class MultiPaste:
    """Paste regions of several images on one canvas; what no region covers is 0, later regions cover earlier
    ones.

    mosaic = fn.multi_paste(
        images, in_ids=[0, 1], out_anchors=[0, 0, 0, 300], shapes=[300, 300] * 2, output_size=[300, 600]
    )
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = None,
        in_anchors: _Many[int] | DataNode | None = None,
        in_anchors_rel: _Many[float] | DataNode | None = None,
        in_ids: _Many[int] | DataNode | None = None,
        out_anchors: _Many[int] | DataNode | None = None,
        out_anchors_rel: _Many[float] | DataNode | None = None,
        output_size: _Many[int] | DataNode | None = None,
        shapes: _Many[int] | DataNode | None = None,
        shapes_rel: _Many[float] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class NonsilentRegion:
    """Find the part of a recording that is not silent: from the first to the last window that is loud enough.

    begin, length = fn.nonsilent_region(sound, cutoff_db=-40.0)
    sound = fn.slice(sound, begin, length, axes=[0])
    """

    def __init__(
        self,
        *,
        cutoff_db: float | None = -60.0,
        reference_power: float | None = 0.0,
        reset_interval: int | None = 8192,
        window_length: int | None = 2048,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> tuple[DataNode, DataNode]: ...

class Normalize:
    """Subtract the mean and divide by the standard deviation: (x - mean) / sqrt(stddev**2 + epsilon) * scale +
    shift.

    standard = fn.normalize(images, axis_names="HW", epsilon=1e-6)
    """

    def __init__(
        self,
        *,
        axes: _Many[int] | None = None,
        axis_names: str | None = None,
        batch: bool | None = False,
        ddof: int | None = 0,
        dtype: _DType | None = types.FLOAT,
        epsilon: float | None = 0.0,
        mean: _Many[float] | DataNode | None = None,
        scale: float | None = 1.0,
        shift: float | None = 0.0,
        stddev: _Many[float] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class OneHot:
    """Replace each class number by a vector that has `on_value` at that place and `off_value` elsewhere.

    targets = fn.one_hot(labels, num_classes=1000)
    """

    def __init__(
        self,
        *,
        axis: int | None = None,
        axis_name: str | None = None,
        dtype: _DType | None = types.FLOAT,
        num_classes: int | None = 0,
        off_value: float | None = 0.0,
        on_value: float | None = 1.0,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Ones:
    """Make data of ones.

    empty = fn.ones(shape=[3, 4])
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = types.INT32,
        layout: str | None = None,
        shape: _Many[int] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class OnesLike:
    """Make ones in the shape of other data.

    mask = fn.ones_like(images, dtype=types.BOOL)
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class OpticalFlow:
    """Estimate, for each frame but the last, where its pixels are in the next one.

    flow = fn.optical_flow(clips, output_grid=4)
    """

    def __init__(
        self,
        *,
        enable_external_hints: bool | None = False,
        enable_temporal_hints: bool | None = False,
        hint_grid: int | None = 4,
        image_type: types.DALIImageType | None = types.RGB,
        output_grid: int | None = 4,
        preset: float | None = 0.0,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Pad:
    """Pad samples at the end of the chosen axes.

    boxes = fn.pad(boxes, axes=[0], fill_value=-1)
    """

    def __init__(
        self,
        *,
        align: _Many[int] | DataNode | None = None,
        axes: _Many[int] | DataNode | None = None,
        axis_names: str | None = None,
        fill_value: float | DataNode | None = 0.0,
        shape: _Many[int] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Paste:
    """Paste each image onto a canvas of `int(ratio * extent)` pixels.

    images = fn.paste(images, ratio=1.5, fill_value=[104, 117, 123])
    """

    def __init__(
        self,
        *,
        fill_value: _Many[int],
        min_canvas_size: float | DataNode | None = 0.0,
        n_channels: int | None = 3,
        paste_x: float | DataNode | None = 0.5,
        paste_y: float | DataNode | None = 0.5,
        ratio: float | DataNode,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class PeekImageShape:
    """Read the shape of the decoded image from its header, which takes a few microseconds.

    shapes = fn.peek_image_shape(encoded)
    height = shapes[0]
    """

    def __init__(
        self,
        *,
        image_type: types.DALIImageType | None = types.RGB,
        dtype: _DType | None = types.INT64,
        adjust_orientation: bool | None = True,
        on_error: str | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class PerFrame:
    """Mark data as one entry per frame, to be used as a per-frame argument.

    images = fn.gaussian_blur(video, sigma=fn.per_frame(sigmas))
    """

    def __init__(
        self,
        *,
        replace: bool | None = False,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class PermuteBatch:
    """Put other samples of the batch in each sample's place.

    pairs = fn.permute_batch(images, indices=fn.batch_permutation())
    """

    def __init__(
        self,
        *,
        indices: _Many[int] | DataNode,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class PowerSpectrum:
    """Take the spectrum of signals along an axis: `|sum over n of x[n] * exp(-2 pi i k n / nfft)|**power` in bin
    k.

    power = fn.power_spectrum(frames, nfft=512)
    """

    def __init__(
        self,
        *,
        axis: int | None = -1,
        nfft: int | None = None,
        power: int | None = 2,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class PreemphasisFilter:
    """Subtract from each sample a part of the one before it: `y[t] = x[t] - preemph_coeff * x[t - 1]`.

    sound = fn.preemphasis_filter(sound, preemph_coeff=0.97)
    """

    def __init__(
        self,
        *,
        border: str | None = "clamp",
        dtype: _DType | None = types.FLOAT,
        preemph_coeff: float | DataNode | None = 0.97,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class PythonFunction:
    """Call a Python function on numpy arrays, in this process, for one batch after the other.

    rotated = fn.python_function(images, function=lambda image: np.rot90(image))
    """

    def __init__(
        self,
        *,
        function: Any,
        num_outputs: int | None = 1,
        batch_processing: bool | None = False,
        output_layouts: Any = None,
        deterministic: bool | None = False,
        parallel: bool | None = False,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class RandomBBoxCrop:
    """Choose a random crop window that keeps enough of the bounding boxes (Liu et al., SSD, arXiv:1512.02325).

    anchor, shape, boxes, labels = fn.random_bbox_crop(
        boxes, labels, scaling=[0.3, 1.0], aspect_ratio=[0.5, 2.0], thresholds=[0, 0.1, 0.3, 0.5]
    )
    """

    def __init__(
        self,
        *,
        all_boxes_above_threshold: bool | None = True,
        allow_no_crop: bool | None = True,
        aspect_ratio: _Many[float] | None = ...,
        bbox_layout: str | None = None,
        bbox_prune_threshold: float | None = None,
        crop_shape: _Many[int] | DataNode | None = None,
        input_shape: _Many[int] | DataNode | None = None,
        ltrb: bool | None = True,
        num_attempts: int | None = 1,
        output_bbox_indices: bool | None = False,
        quiet: bool | None = False,
        scaling: _Many[float] | None = ...,
        shape_layout: str | None = None,
        threshold_type: str | None = "iou",
        thresholds: _Many[float] | None = ...,
        total_num_attempts: int | None = -1,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class RandomCropGenerator:
    """Choose random crop windows of random area and aspect ratio, for images of given shapes.

    anchor, shape = fn.random_crop_generator(fn.peek_image_shape(files))
    images = fn.decoders.image_slice(files, start=anchor, shape=shape, axes=[0, 1])
    """

    def __init__(
        self,
        *,
        num_attempts: int | None = 10,
        random_area: _Many[float] | None = ...,
        random_aspect_ratio: _Many[float] | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> tuple[DataNode, DataNode]: ...

class RandomResizedCrop:
    """Choose a random window of random area and aspect ratio, and resize it.

    images = fn.random_resized_crop(images, size=224)
    """

    def __init__(
        self,
        *,
        antialias: bool | None = True,
        dtype: _DType | None = None,
        interp_type: types.DALIInterpType | DataNode | None = None,
        mag_filter: types.DALIInterpType | DataNode | None = None,
        min_filter: types.DALIInterpType | DataNode | None = None,
        num_attempts: int | None = 10,
        random_area: _Many[float] | None = ...,
        random_aspect_ratio: _Many[float] | None = ...,
        size: _Many[int],
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Reinterpret:
    """Take the bytes of each sample for elements of another type, and optionally of another shape.

    pairs = fn.reinterpret(int32, dtype=types.INT16)
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = None,
        layout: str | None = None,
        rel_shape: _Many[float] | DataNode | None = None,
        shape: _Many[int] | DataNode | None = None,
        src_dims: _Many[int] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Reshape:
    """Give samples another shape of as many elements, another layout, or both.

    flat = fn.reshape(images, shape=[-1])
    """

    def __init__(
        self,
        *,
        layout: str | None = None,
        rel_shape: _Many[float] | DataNode | None = None,
        shape: _Many[int] | DataNode | None = None,
        src_dims: _Many[int] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Resize:
    """Resize images, each frame of a sequence, or volumes.

    images = fn.resize(images, resize_shorter=256)
    """

    def __init__(
        self,
        *,
        antialias: bool | None = True,
        dtype: _DType | None = None,
        interp_type: types.DALIInterpType | DataNode | None = None,
        mag_filter: types.DALIInterpType | DataNode | None = None,
        max_size: _Many[float] | None = None,
        min_filter: types.DALIInterpType | DataNode | None = None,
        mode: str | None = "default",
        resize_longer: float | DataNode | None = None,
        resize_shorter: float | DataNode | None = None,
        resize_x: float | DataNode | None = None,
        resize_y: float | DataNode | None = None,
        resize_z: float | DataNode | None = None,
        roi_end: _Many[float] | DataNode | None = None,
        roi_relative: bool | None = False,
        roi_start: _Many[float] | DataNode | None = None,
        save_attrs: bool | None = False,
        size: _Many[float] | DataNode | None = None,
        subpixel_scale: bool | None = True,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class ResizeCropMirror:
    """Do what fn.resize, then fn.crop, then fn.flip do, in one resampling.

    images = fn.resize_crop_mirror(images, resize_shorter=256, crop=[224, 224])
    """

    def __init__(
        self,
        *,
        antialias: bool | None = True,
        crop: _Many[float] | DataNode | None = None,
        crop_d: float | DataNode | None = 0.0,
        crop_h: float | DataNode | None = 0.0,
        crop_pos_x: float | DataNode | None = 0.5,
        crop_pos_y: float | DataNode | None = 0.5,
        crop_pos_z: float | DataNode | None = 0.5,
        crop_w: float | DataNode | None = 0.0,
        dtype: _DType | None = None,
        interp_type: types.DALIInterpType | DataNode | None = None,
        mag_filter: types.DALIInterpType | DataNode | None = None,
        max_size: _Many[float] | None = None,
        min_filter: types.DALIInterpType | DataNode | None = None,
        mirror: int | DataNode | None = 0,
        mode: str | None = "default",
        resize_longer: float | DataNode | None = None,
        resize_shorter: float | DataNode | None = None,
        resize_x: float | DataNode | None = None,
        resize_y: float | DataNode | None = None,
        resize_z: float | DataNode | None = None,
        roi_end: _Many[float] | DataNode | None = None,
        roi_relative: bool | None = False,
        roi_start: _Many[float] | DataNode | None = None,
        rounding: str | None = "round",
        size: _Many[float] | DataNode | None = None,
        subpixel_scale: bool | None = True,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class ROIRandomCrop:
    """Place a crop window of a given shape at random so that it holds as much of a region of interest as it can.

    start = fn.roi_random_crop(
        crop_shape=[64, 64], roi_start=box[:2], roi_end=box[2:], in_shape=[480, 640]
    )
    images = fn.slice(images, start=start, shape=[64, 64], axis_names="HW")
    """

    def __init__(
        self,
        *,
        crop_shape: _Many[int] | DataNode,
        in_shape: _Many[int] | DataNode | None = None,
        roi_end: _Many[int] | DataNode | None = None,
        roi_shape: _Many[int] | DataNode | None = None,
        roi_start: _Many[int] | DataNode,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Rotate:
    """Rotate images about their centre, counter-clockwise as seen, and volumes about an axis.

    images = fn.rotate(
        images, angle=fn.random.uniform(range=[-10, 10]), fill_value=0
    )
    """

    def __init__(
        self,
        *,
        angle: _Many[float] | DataNode,
        axis: _Many[float] | DataNode | None = None,
        dtype: _DType | None = None,
        fill_value: float | None = None,
        interp_type: types.DALIInterpType | None = types.INTERP_LINEAR,
        keep_size: bool | None = False,
        size: _Many[float] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Saturation:
    """Scale the saturation of images.

    images = fn.saturation(images, saturation=0.5)
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = None,
        image_type: types.DALIImageType | None = types.RGB,
        saturation: _Many[float] | DataNode | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class SequenceRearrange:
    """Take the elements along the first axis in another order; they may be repeated or left out.

    reverse = fn.sequence_rearrange(sequence, new_order=[2, 1, 0])
    """

    def __init__(
        self,
        *,
        new_order: _Many[int] | DataNode,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Shapes:
    """Return the extents of each sample.

    height = fn.shapes(images)[0]
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = types.INT64,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Slice:
    """Cut out a part of each sample: from a begin to an end, or of a shape.

    images = fn.slice(images, rel_start=[0.25, 0.25], rel_shape=[0.5, 0.5])
    """

    def __init__(
        self,
        *,
        axes: _Many[int] | DataNode | None = None,
        axis_names: str | None = None,
        dtype: _DType | None = None,
        end: _Many[int] | DataNode | None = None,
        fill_values: _Many[float] | None = ...,
        normalized_anchor: bool | None = True,
        normalized_shape: bool | None = True,
        out_of_bounds_policy: str | None = "error",
        rel_end: _Many[float] | DataNode | None = None,
        rel_shape: _Many[float] | DataNode | None = None,
        rel_start: _Many[float] | DataNode | None = None,
        shape: _Many[int] | DataNode | None = None,
        start: _Many[int] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Spectrogram:
    """Cut a sound into overlapping windows and take the spectrum of each: the short-time Fourier transform.

    spectrum = fn.spectrogram(sound, nfft=512, window_length=400, window_step=160)
    """

    def __init__(
        self,
        *,
        center_windows: bool | None = True,
        layout: str | None = "ft",
        nfft: int | None = None,
        power: int | None = 2,
        reflect_padding: bool | None = True,
        window_fn: _Many[float] | None = None,
        window_length: int | None = 512,
        window_step: int | None = 256,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Sphere:
    """Let images look as if through a glass ball.

    images = fn.sphere(images)
    """

    def __init__(
        self,
        *,
        fill_value: float | None = 0.0,
        interp_type: types.DALIInterpType | None = types.INTERP_NN,
        mask: int | DataNode | None = 1,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Squeeze:
    """Remove axes of extent 1.

    grey = fn.squeeze(grey, axis_names="C")
    """

    def __init__(
        self,
        *,
        axes: _Many[int] | None = None,
        axis_names: str | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Stack:
    """Join samples of one shape along a new axis.

    frames = fn.stack(before, after, axis_name="F")
    """

    def __init__(
        self,
        *,
        axis: int | None = 0,
        axis_name: str | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class TensorResize:
    """Resize data of any dimensions along chosen axes.

    volumes = fn.tensor_resize(volumes, sizes=[64, 64], axis_names="DH")
    """

    def __init__(
        self,
        *,
        alignment: _Many[float] | DataNode | None = ...,
        antialias: bool | None = True,
        axes: _Many[int] | None = None,
        axis_names: str | None = None,
        dtype: _DType | None = None,
        interp_type: types.DALIInterpType | DataNode | None = None,
        mag_filter: types.DALIInterpType | DataNode | None = None,
        max_size: _Many[float] | None = None,
        min_filter: types.DALIInterpType | DataNode | None = None,
        mode: str | None = "default",
        roi_end: _Many[float] | DataNode | None = None,
        roi_relative: bool | None = False,
        roi_start: _Many[float] | DataNode | None = None,
        scales: _Many[float] | DataNode | None = None,
        size_rounding: str | None = "round",
        sizes: _Many[float] | DataNode | None = None,
        subpixel_scale: bool | None = True,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class TensorSubscript:
    """Take elements, slices and steps of each sample.

    red = images[:, :, 0]
    """

    def __init__(
        self,
        *,
        items: Any,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class ToDecibels:
    """Convert magnitudes or powers to decibels: multiplier * log10(max(10**(cutoff_db / multiplier), x /
    reference)).

    decibels = fn.to_decibels(mel, cutoff_db=-80.0)
    """

    def __init__(
        self,
        *,
        cutoff_db: float | None = -200.0,
        multiplier: float | None = 10.0,
        reference: float | None = 0.0,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Transpose:
    """Reorder the axes of each sample.

    planar = fn.transpose(images, perm=[2, 0, 1])  # HWC to CHW
    """

    def __init__(
        self,
        *,
        output_layout: str | None = None,
        perm: _Many[int] | None = None,
        transpose_layout: bool | None = True,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class WarpAffine:
    """Warp images and volumes by an affine matrix.

    images = fn.warp_affine(images, fn.transforms.rotation(angle=20), fill_value=0)
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = None,
        fill_value: float | None = None,
        interp_type: types.DALIInterpType | None = types.INTERP_LINEAR,
        inverse_map: bool | None = True,
        matrix: _Many[float] | DataNode | None = None,
        size: _Many[float] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Water:
    """Let images look as if under moving water.

    images = fn.water(images, ampl_x=5, ampl_y=5)
    """

    def __init__(
        self,
        *,
        ampl_x: float | None = 10.0,
        ampl_y: float | None = 10.0,
        fill_value: float | None = 0.0,
        freq_x: float | None = 0.04908738521234052,
        freq_y: float | None = 0.04908738521234052,
        interp_type: types.DALIInterpType | None = types.INTERP_NN,
        mask: int | DataNode | None = 1,
        phase_x: float | None = 0.0,
        phase_y: float | None = 0.0,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Zeros:
    """Make data of zeros.

    empty = fn.zeros(shape=[3, 4])
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = types.INT32,
        layout: str | None = None,
        shape: _Many[int] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class ZerosLike:
    """Make zeros in the shape of other data.

    mask = fn.zeros_like(images, dtype=types.BOOL)
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

@deprecated("is now called ops.decoders.Audio")
class AudioDecoder:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.readers.Caffe2")
class Caffe2Reader:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.readers.Caffe")
class CaffeReader:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.readers.COCO")
class COCOReader:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.random.CoinFlip")
class CoinFlip:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.ResizeCropMirror")
class FastResizeCropMirror:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.readers.File")
class FileReader:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.Image")
class ImageDecoder:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.ImageCrop")
class ImageDecoderCrop:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.ImageRandomCrop")
class ImageDecoderRandomCrop:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.ImageSlice")
class ImageDecoderSlice:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.readers.MXNet")
class MXNetReader:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.readers.NemoAsr")
class NemoAsrReader:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.random.Normal")
class NormalDistribution:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.readers.Numpy")
class NumpyReader:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.Image")
class NvJpegDecoder:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.Image")
class HostDecoder:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.ImageCrop")
class HostDecoderCrop:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.ImageRandomCrop")
class HostDecoderRandomCrop:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.ImageSlice")
class HostDecoderSlice:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.ImageCrop")
class NvJpegDecoderCrop:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.ImageRandomCrop")
class NvJpegDecoderRandomCrop:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.ImageSlice")
class NvJpegDecoderSlice:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.readers.Sequence")
class SequenceReader:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.RandomBBoxCrop")
class SsdRandomCrop:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.readers.TFRecord")
class TFRecordReader:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.transforms.Translation")
class TransformTranslation:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.random.Uniform")
class Uniform:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.readers.Video")
class VideoReader:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.readers.VideoResize")
class VideoReaderResize:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

def Compose(op_list: _Sequence[_Callable[..., Any]]) -> _Callable[..., Any]:
    """Chain operators: the outputs of one are the inputs of the next."""
    ...
