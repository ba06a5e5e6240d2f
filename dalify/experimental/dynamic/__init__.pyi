"""Operators as `dynamic`. Made by `python -m docs.dynamic_stubs` from the operators' files, for editors."""

import builtins as _builtins
from collections.abc import Sequence as _Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dalify import types
from dalify.experimental.dynamic.batch import Batch as _Batch
from dalify.experimental.dynamic.devices import Device as _Device
from dalify.experimental.dynamic.dtypes import DType as _DynamicDType
from dalify.experimental.dynamic.reader import Reader as _Reader
from dalify.experimental.dynamic.rng import RNG as _RNG
from dalify.experimental.dynamic.tensor import Tensor as _Tensor

_T = TypeVar("_T")
_Many: TypeAlias = _T | _Sequence[_T] | _Sequence[_Sequence[_T]] | np.ndarray[Any, Any]
_Input: TypeAlias = Any
_Computed: TypeAlias = _Tensor | _Batch | np.ndarray[Any, Any] | np.generic
_DType: TypeAlias = _DynamicDType | types.DALIDataType | np.dtype[Any] | type[Any]

from dalify.experimental.dynamic import decoders as decoders, experimental as experimental, io as io, noise as noise, random as random, readers as readers, reductions as reductions, segmentation as segmentation, transforms as transforms

from dalify.experimental.dynamic import capture as capture
from dalify.experimental.dynamic import checkpoint as checkpoint
from dalify.experimental.dynamic import math as math
from dalify.experimental.dynamic import pytorch as pytorch
from dalify.experimental.dynamic.batch import Batch as Batch
from dalify.experimental.dynamic.context import EvalContext as EvalContext
from dalify.experimental.dynamic.context import ThreadPool as ThreadPool
from dalify.experimental.dynamic.context import get_num_threads as get_num_threads
from dalify.experimental.dynamic.context import set_num_threads as set_num_threads
from dalify.experimental.dynamic.devices import Device as Device
from dalify.experimental.dynamic.devices import device as device
from dalify.experimental.dynamic.dtypes import DataType as DataType
from dalify.experimental.dynamic.dtypes import DType as DType
from dalify.experimental.dynamic.dtypes import ImageType as ImageType
from dalify.experimental.dynamic.dtypes import InterpType as InterpType
from dalify.experimental.dynamic.dtypes import bfloat16 as bfloat16
from dalify.experimental.dynamic.dtypes import dtype as dtype
from dalify.experimental.dynamic.dtypes import float16 as float16
from dalify.experimental.dynamic.dtypes import float32 as float32
from dalify.experimental.dynamic.dtypes import float64 as float64
from dalify.experimental.dynamic.dtypes import int8 as int8
from dalify.experimental.dynamic.dtypes import int16 as int16
from dalify.experimental.dynamic.dtypes import int32 as int32
from dalify.experimental.dynamic.dtypes import int64 as int64
from dalify.experimental.dynamic.dtypes import type_id as type_id
from dalify.experimental.dynamic.dtypes import uint8 as uint8
from dalify.experimental.dynamic.dtypes import uint16 as uint16
from dalify.experimental.dynamic.dtypes import uint32 as uint32
from dalify.experimental.dynamic.dtypes import uint64 as uint64
from dalify.experimental.dynamic.dtypes import bool_ as bool
from dalify.experimental.dynamic.external import ExternalSource as ExternalSource
from dalify.experimental.dynamic.functions import as_batch as as_batch
from dalify.experimental.dynamic.functions import as_tensor as as_tensor
from dalify.experimental.dynamic.functions import batch as batch
from dalify.experimental.dynamic.functions import tensor as tensor
from dalify.experimental.dynamic.images import imread as imread
from dalify.experimental.dynamic.modes import EvalMode as EvalMode
from dalify.experimental.dynamic.streams import Stream as Stream
from dalify.experimental.dynamic.streams import get_current_stream as get_current_stream
from dalify.experimental.dynamic.streams import get_default_stream as get_default_stream
from dalify.experimental.dynamic.streams import set_current_stream as set_current_stream
from dalify.experimental.dynamic.streams import set_default_stream as set_default_stream
from dalify.experimental.dynamic.streams import stream as stream
from dalify.experimental.dynamic.tensor import Tensor as Tensor

def arithmetic(
    *operands: _Input,
    function: str,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Apply a function to every element of the operands.

    normalised = (images - 127.5) / 127.5
    """
    ...

def audio_resample(
    x: _Input,
    /,
    *,
    dtype: _DType | None = None,
    in_rate: float | _Computed | None = None,
    out_length: int | _Computed | None = None,
    out_rate: float | _Computed | None = None,
    quality: float | None = 50.0,
    scale: float | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Change the sampling rate of sounds.

    sound = fn.audio_resample(sound, in_rate=rate, out_rate=16000.0)
    """
    ...

def batch_permutation(
    *,
    allow_repetitions: _builtins.bool | None = False,
    no_fixed_points: _builtins.bool | None = False,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Draw a permutation of the numbers of the samples in the batch, for `fn.permute_batch`.

    others = fn.permute_batch(images, indices=fn.batch_permutation())
    """
    ...

def bb_flip(
    x: _Input,
    /,
    *,
    horizontal: int | _Computed | None = 1,
    ltrb: _builtins.bool | None = False,
    vertical: int | _Computed | None = 0,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Mirror bounding boxes in relative coordinates (0 to 1) with their image.

    boxes = fn.bb_flip(boxes, ltrb=True, horizontal=fn.random.coin_flip())
    """
    ...

def bbox_paste(
    x: _Input,
    /,
    *,
    ltrb: _builtins.bool | None = False,
    paste_x: float | _Computed | None = 0.5,
    paste_y: float | _Computed | None = 0.5,
    ratio: float | _Computed,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Move bounding boxes in relative coordinates with an image that is pasted on a larger canvas.

    boxes = fn.bbox_paste(boxes, ratio=2.0, paste_x=0.1, paste_y=0.6)
    """
    ...

def bbox_rotate(
    bboxes: _Input,
    labels: _Input | None = None,
    /,
    *,
    angle: float | _Computed,
    bbox_layout: str | None = "xyXY",
    bbox_normalized: _builtins.bool | None = True,
    input_shape: _Many[int] | _Computed,
    keep_size: _builtins.bool | None = False,
    mode: str | None = "expand",
    remove_threshold: float | None = 0.1,
    shape_layout: str | None = "HW",
    size: _Many[float] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Turn bounding boxes with their image, as fn.rotate turns it with the same `angle`, `keep_size` and `size`.

    boxes, labels = fn.bbox_rotate(
        boxes, labels, angle=30, input_shape=images.shape(), shape_layout="HWC"
    )
    """
    ...

def box_encoder(
    boxes: _Input,
    labels: _Input,
    /,
    *,
    anchors: _Many[float],
    criteria: float | None = 0.5,
    means: _Many[float] | None = ...,
    offset: _builtins.bool | None = False,
    scale: float | None = 1.0,
    stds: _Many[float] | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Assign bounding boxes to anchors (Liu et al., SSD: Single Shot MultiBox Detector, arXiv:1512.02325).

    boxes, labels = fn.box_encoder(boxes, labels, anchors=anchors)
    """
    ...

def brightness(
    x: _Input,
    /,
    *,
    brightness: _Many[float] | _Computed | None = ...,
    brightness_shift: _Many[float] | _Computed | None = ...,
    dtype: _DType | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Change the brightness of images.

    images = fn.brightness(images, brightness=1.2)
    """
    ...

def brightness_contrast(
    x: _Input,
    /,
    *,
    brightness: _Many[float] | _Computed | None = ...,
    brightness_shift: _Many[float] | _Computed | None = ...,
    contrast: _Many[float] | _Computed | None = ...,
    contrast_center: _Many[float] | _Computed | None = None,
    dtype: _DType | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Change the brightness and contrast of images.

    images = fn.brightness_contrast(images, brightness=1.2, contrast=0.8)
    """
    ...

def cache(
    *xs: _Input,
    cache_size: int | None = 1024,
    cache_type: str | None = "threshold",
    cache_threshold: int | None = 0,
    cache_folder: str | None = "",
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Keep samples for the next epoch: what is in front of this operator is computed once for each sample of a
    reader.

    encoded, labels = fn.readers.file(file_root="photos", random_shuffle=True)
    images = fn.resize(fn.decoders.image(encoded), size=[256, 256])
    images = fn.cache(images, cache_size=4096)
    """
    ...

def cast(
    x: _Input,
    /,
    *,
    dtype: _DType,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Convert elements to another type.

    labels = fn.cast(labels, dtype=types.INT64)
    """
    ...

def cast_like(
    x: _Input,
    like: _Input,
    /,
    *,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Convert elements to the type of other data, by the rules of `fn.cast`.

    noise = fn.cast_like(noise, images)
    """
    ...

def cat(
    first: _Input,
    /,
    *more: _Input,
    axis: int | None = 0,
    axis_name: str | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Join samples along one of their axes.

    wide = fn.cat(left, right, axis_name="W")
    """
    ...

def clahe(
    x: _Input,
    /,
    *,
    bins: int | None = 256,
    clip_limit: float,
    luma_only: _builtins.bool | None = True,
    tiles_x: int,
    tiles_y: int,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Equalise histograms locally, with limited contrast (CLAHE: Zuiderveld, Graphics Gems IV, 1994).

    images = fn.clahe(images, tiles_x=8, tiles_y=8, clip_limit=2.0)
    """
    ...

def color_space_conversion(
    x: _Input,
    /,
    *,
    image_type: types.DALIImageType,
    output_type: types.DALIImageType,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Convert images between RGB, BGR, grey and YCbCr.

    grey = fn.color_space_conversion(
        images, image_type=types.RGB, output_type=types.GRAY
    )
    """
    ...

def color_twist(
    x: _Input,
    /,
    *,
    brightness: _Many[float] | _Computed | None = ...,
    contrast: _Many[float] | _Computed | None = ...,
    dtype: _DType | None = None,
    hue: _Many[float] | _Computed | None = ...,
    image_type: types.DALIImageType | None = types.RGB,
    saturation: _Many[float] | _Computed | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Change hue, saturation, contrast and brightness of images, in this order.

    images = fn.color_twist(images, brightness=1.1, contrast=0.9, hue=10, saturation=1.2)
    """
    ...

def constant(
    *,
    dtype: _DType | None = None,
    fdata: _Many[float] | None = None,
    idata: _Many[int] | None = None,
    layout: str | None = "",
    shape: _Many[int] | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Give every sample the same values.

    mean = fn.constant(fdata=[0.485, 0.456, 0.406])
    """
    ...

def contrast(
    x: _Input,
    /,
    *,
    contrast: _Many[float] | _Computed | None = ...,
    contrast_center: _Many[float] | _Computed | None = None,
    dtype: _DType | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Change the contrast of images.

    images = fn.contrast(images, contrast=0.8)
    """
    ...

def coord_flip(
    x: _Input,
    /,
    *,
    center_x: float | _Computed | None = 0.5,
    center_y: float | _Computed | None = 0.5,
    center_z: float | _Computed | None = 0.5,
    flip_x: int | _Computed | None = 1,
    flip_y: int | _Computed | None = 0,
    flip_z: int | _Computed | None = 0,
    layout: str | None = "",
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Mirror points about a center: `out = 2 * center - x` in the axes that are flipped.

    points = fn.coord_flip(points, flip_x=fn.random.coin_flip())
    """
    ...

def coord_transform(
    x: _Input,
    /,
    *,
    M: _Many[float] | _Computed | None = None,
    MT: _Many[float] | _Computed | None = None,
    T: _Many[float] | _Computed | None = None,
    dtype: _DType | None = types.FLOAT,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Apply a matrix and a translation to points or vectors: `out = M * x + T`.

    points = fn.coord_transform(points, MT=fn.transforms.rotation(angle=30))
    """
    ...

def copy(
    x: _Input,
    /,
    *,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Copy the data to memory of their own.

    again = fn.copy(images)
    """
    ...

def crop(
    x: _Input,
    /,
    *,
    crop: _Many[float] | _Computed | None = None,
    crop_d: float | _Computed | None = 0.0,
    crop_h: float | _Computed | None = 0.0,
    crop_pos_x: float | _Computed | None = 0.5,
    crop_pos_y: float | _Computed | None = 0.5,
    crop_pos_z: float | _Computed | None = 0.5,
    crop_w: float | _Computed | None = 0.0,
    dtype: _DType | None = None,
    fill_values: _Many[float] | None = ...,
    out_of_bounds_policy: str | None = "error",
    rounding: str | None = "round",
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Cut a window out of each sample.

    images = fn.crop(images, crop=[224, 224])
    """
    ...

def crop_mirror_normalize(
    x: _Input,
    /,
    *,
    crop: _Many[float] | _Computed | None = None,
    crop_d: float | _Computed | None = 0.0,
    crop_h: float | _Computed | None = 0.0,
    crop_pos_x: float | _Computed | None = 0.5,
    crop_pos_y: float | _Computed | None = 0.5,
    crop_pos_z: float | _Computed | None = 0.5,
    crop_w: float | _Computed | None = 0.0,
    dtype: _DType | None = types.FLOAT,
    fill_values: _Many[float] | None = ...,
    mean: _Many[float] | _Computed | None = ...,
    mirror: int | _Computed | None = 0,
    out_of_bounds_policy: str | None = "error",
    output_layout: str | None = "CHW",
    pad_output: _builtins.bool | None = False,
    rounding: str | None = "round",
    scale: float | None = 1.0,
    shift: float | None = 0.0,
    std: _Many[float] | _Computed | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Cut out a window, mirror it, and normalise: `scale * (window - mean) / std + shift`, in float32.

    mean, std = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
    images = fn.crop_mirror_normalize(images, crop=[224, 224], mean=mean, std=std)
    """
    ...

def debayer(
    x: _Input,
    /,
    *,
    algorithm: str | None = None,
    blue_position: _Many[int] | _Computed,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Make colour images of what a sensor behind a Bayer filter saw: each pixel gets the two colours it lacks.

    images = fn.debayer(mosaics, blue_position=[1, 1])
    """
    ...

def dl_tensor_python_function(
    *xs: _Input,
    function: Any,
    num_outputs: int | None = 1,
    synchronize_stream: _builtins.bool | None = True,
    batch_processing: _builtins.bool | None = True,
    output_layouts: Any = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Call a Python function on DLPack capsules, which every array library can turn into its own arrays without
    a copy.

    from torch.utils.dlpack import from_dlpack, to_dlpack
    def double(capsules):
        return [to_dlpack(from_dlpack(capsule) * 2) for capsule in capsules]
    doubled = fn.dl_tensor_python_function(x, function=double)
    """
    ...

def dump_image(
    x: _Input,
    /,
    *,
    input_layout: str | None = "HWC",
    suffix: str | None = "",
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Write each image of the batch to a file in the working folder, and pass it on unchanged.

    images = fn.dump_image(images, suffix="augmented")
    """
    ...

def element_extract(
    x: _Input,
    /,
    *,
    element_map: _Many[int],
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Take elements along the first axis, each as an output of its own.

    first, fourth = fn.element_extract(sequence, element_map=[0, 3])
    """
    ...

def equalize(
    x: _Input,
    /,
    *,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Equalise the histogram of each channel of each image, so that all grey levels become about equally
    frequent.

    images = fn.equalize(images)
    """
    ...

def erase(
    x: _Input,
    /,
    *,
    anchor: _Many[float] | _Computed | None = None,
    axes: _Many[int] | None = None,
    axis_names: str | None = None,
    centered_anchor: _builtins.bool | None = False,
    fill_value: _Many[float] | _Computed | None = ...,
    normalized: _builtins.bool | None = False,
    normalized_anchor: _builtins.bool | None = None,
    normalized_shape: _builtins.bool | None = None,
    shape: _Many[float] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Fill one or more regions with a value.

    images = fn.erase(images, anchor=[0.2, 0.3], shape=[0.1, 0.2], normalized=True)
    """
    ...

def expand_dims(
    data: _Input,
    /,
    *,
    axes: _Many[int],
    new_axis_names: str | None = "",
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Insert axes of extent 1.

    sequence = fn.expand_dims(images, axes=[0], new_axis_names="F")
    """
    ...

def filter(
    data: _Input,
    filter: _Input,
    fill_value: _Input | None = None,
    /,
    *,
    anchor: _Many[int] | _Computed | None = ...,
    border: str | None = "reflect_101",
    dtype: _DType | None = None,
    mode: str | None = "same",
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Weigh the neighbours of each pixel with the elements of a matrix, those of voxels with a block.

    images = fn.filter(images, np.full((3, 3), 1 / 9, np.float32))
    """
    ...

def flip(
    x: _Input,
    /,
    *,
    depthwise: int | _Computed | None = 0,
    horizontal: int | _Computed | None = 1,
    vertical: int | _Computed | None = 0,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Mirror each sample along the chosen axes.

    images = fn.flip(images, horizontal=fn.random.coin_flip())
    """
    ...

def full(
    fill_value: _Input,
    /,
    *,
    layout: str | None = None,
    shape: _Many[int] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Repeat a value until it fills a shape.

    grey = fn.full(128, shape=[64, 64, 3], layout="HWC")
    """
    ...

def full_like(
    data_like: _Input,
    fill_value: _Input,
    /,
    *,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Repeat a value until it fills the shape of other data.

    background = fn.full_like(images, 128)
    """
    ...

def gaussian_blur(
    x: _Input,
    /,
    *,
    dtype: _DType | None = None,
    sigma: _Many[float] | _Computed | None = ...,
    window_size: _Many[int] | _Computed | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Blur images, sequences or volumes with a Gaussian; edges are mirrored without repeating the edge pixel.

    images = fn.gaussian_blur(images, sigma=1.5)
    """
    ...

def get_property(
    x: _Input,
    /,
    *,
    key: str,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Return a note on each sample as a text, in bytes.

    names = fn.get_property(jpegs, key="source_info")
    """
    ...

def grid_mask(
    x: _Input,
    /,
    *,
    angle: _Many[float] | _Computed | None = ...,
    ratio: _Many[float] | _Computed | None = ...,
    shift_x: _Many[float] | _Computed | None = ...,
    shift_y: _Many[float] | _Computed | None = ...,
    tile: _Many[int] | _Computed | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Black out squares of a regular grid (Chen et al., GridMask Data Augmentation, arXiv:2001.04086).

    images = fn.grid_mask(images, tile=64, ratio=0.4, angle=0.3)
    """
    ...

def hsv(
    x: _Input,
    /,
    *,
    dtype: _DType | None = types.UINT8,
    hue: _Many[float] | _Computed | None = ...,
    saturation: _Many[float] | _Computed | None = ...,
    value: _Many[float] | _Computed | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Change hue, saturation and value of images.

    images = fn.hsv(images, hue=20, saturation=1.2, value=0.9)
    """
    ...

def hue(
    x: _Input,
    /,
    *,
    dtype: _DType | None = None,
    hue: _Many[float] | _Computed | None = ...,
    image_type: types.DALIImageType | None = types.RGB,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Turn the hue of images by an angle.

    images = fn.hue(images, hue=fn.random.uniform(range=[-20, 20]))
    """
    ...

def jitter(
    x: _Input,
    /,
    *,
    fill_value: float | None = 0.0,
    interp_type: types.DALIInterpType | None = types.INTERP_NN,
    mask: int | _Computed | None = 1,
    nDegree: int | None = 2,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Move every pixel by a little, at random: `out(x, y) = in(x + u, y + v)`.

    images = fn.jitter(images, nDegree=4)
    """
    ...

def jpeg_compression_distortion(
    x: _Input,
    /,
    *,
    quality: _Many[int] | _Computed | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Give images the artifacts of JPEG compression, by compressing and decompressing them.

    images = fn.jpeg_compression_distortion(images, quality=20)
    """
    ...

def laplacian(
    x: _Input,
    /,
    *,
    dtype: _DType | None = None,
    normalized_kernel: _builtins.bool | None = False,
    scale: _Many[float] | _Computed | None = None,
    smoothing_size: _Many[int] | _Computed | None = None,
    window_size: _Many[int] | _Computed | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Compute the Laplacian: the sum of the second derivatives along all data axes.

    edges = fn.laplacian(images, window_size=5, dtype=types.FLOAT)
    """
    ...

def lookup_table(
    x: _Input,
    /,
    *,
    default_value: float | None = 0.0,
    dtype: _DType | None = types.FLOAT,
    keys: _Many[int] | None = ...,
    values: _Many[float] | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Replace integers by values from a table.

    classes = fn.lookup_table(labels, keys=[3, 5], values=[0, 1], dtype=types.INT32)
    """
    ...

def mel_filter_bank(
    x: _Input,
    /,
    *,
    freq_high: float | None = 0.0,
    freq_low: float | None = 0.0,
    mel_formula: str | None = "slaney",
    nfilter: int | None = 128,
    normalize: _builtins.bool | None = True,
    sample_rate: float | None = 44100.0,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Sum a spectrum up with triangular filters whose corners are equally spaced in mel.

    mel = fn.mel_filter_bank(spectrum, nfilter=80, sample_rate=16000.0)
    """
    ...

def mfcc(
    x: _Input,
    /,
    *,
    axis: int | None = 0,
    dct_type: int | None = 2,
    lifter: float | None = 0.0,
    n_mfcc: int | None = 20,
    normalize: _builtins.bool | None = False,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Take the cosine transform of a (logarithmic) mel spectrogram along its frequencies: the cepstrum.

    coefficients = fn.mfcc(fn.to_decibels(mel), n_mfcc=13, lifter=22.0)
    """
    ...

def multi_paste(
    x: _Input,
    /,
    *inputs: _Input,
    dtype: _DType | None = None,
    in_anchors: _Many[int] | _Computed | None = None,
    in_anchors_rel: _Many[float] | _Computed | None = None,
    in_ids: _Many[int] | _Computed | None = None,
    out_anchors: _Many[int] | _Computed | None = None,
    out_anchors_rel: _Many[float] | _Computed | None = None,
    output_size: _Many[int] | _Computed | None = None,
    shapes: _Many[int] | _Computed | None = None,
    shapes_rel: _Many[float] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Paste regions of several images on one canvas; what no region covers is 0, later regions cover earlier
    ones.

    mosaic = fn.multi_paste(
        images, in_ids=[0, 1], out_anchors=[0, 0, 0, 300], shapes=[300, 300] * 2, output_size=[300, 600]
    )
    """
    ...

def nonsilent_region(
    x: _Input,
    /,
    *,
    cutoff_db: float | None = -60.0,
    reference_power: float | None = 0.0,
    reset_interval: int | None = 8192,
    window_length: int | None = 2048,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Find the part of a recording that is not silent: from the first to the last window that is loud enough.

    begin, length = fn.nonsilent_region(sound, cutoff_db=-40.0)
    sound = fn.slice(sound, begin, length, axes=[0])
    """
    ...

def normalize(
    x: _Input,
    /,
    *,
    axes: _Many[int] | None = None,
    axis_names: str | None = None,
    batch: _builtins.bool | None = False,
    ddof: int | None = 0,
    dtype: _DType | None = types.FLOAT,
    epsilon: float | None = 0.0,
    mean: _Many[float] | _Computed | None = None,
    scale: float | None = 1.0,
    shift: float | None = 0.0,
    stddev: _Many[float] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Subtract the mean and divide by the standard deviation: (x - mean) / sqrt(stddev**2 + epsilon) * scale +
    shift.

    standard = fn.normalize(images, axis_names="HW", epsilon=1e-6)
    """
    ...

def one_hot(
    x: _Input,
    /,
    *,
    axis: int | None = None,
    axis_name: str | None = None,
    dtype: _DType | None = types.FLOAT,
    num_classes: int | None = 0,
    off_value: float | None = 0.0,
    on_value: float | None = 1.0,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Replace each class number by a vector that has `on_value` at that place and `off_value` elsewhere.

    targets = fn.one_hot(labels, num_classes=1000)
    """
    ...

def ones(
    *,
    dtype: _DType | None = types.INT32,
    layout: str | None = None,
    shape: _Many[int] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Make data of ones.

    empty = fn.ones(shape=[3, 4])
    """
    ...

def ones_like(
    data_like: _Input,
    /,
    *,
    dtype: _DType | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Make ones in the shape of other data.

    mask = fn.ones_like(images, dtype=types.BOOL)
    """
    ...

def optical_flow(
    x: _Input,
    hints: _Input | None = None,
    /,
    *,
    enable_external_hints: _builtins.bool | None = False,
    enable_temporal_hints: _builtins.bool | None = False,
    hint_grid: int | None = 4,
    image_type: types.DALIImageType | None = types.RGB,
    output_grid: int | None = 4,
    preset: float | None = 0.0,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Estimate, for each frame but the last, where its pixels are in the next one.

    flow = fn.optical_flow(clips, output_grid=4)
    """
    ...

def pad(
    x: _Input,
    /,
    *,
    align: _Many[int] | _Computed | None = None,
    axes: _Many[int] | _Computed | None = None,
    axis_names: str | None = None,
    fill_value: float | _Computed | None = 0.0,
    shape: _Many[int] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Pad samples at the end of the chosen axes.

    boxes = fn.pad(boxes, axes=[0], fill_value=-1)
    """
    ...

def paste(
    x: _Input,
    /,
    *,
    fill_value: _Many[int],
    min_canvas_size: float | _Computed | None = 0.0,
    n_channels: int | None = 3,
    paste_x: float | _Computed | None = 0.5,
    paste_y: float | _Computed | None = 0.5,
    ratio: float | _Computed,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Paste each image onto a canvas of `int(ratio * extent)` pixels.

    images = fn.paste(images, ratio=1.5, fill_value=[104, 117, 123])
    """
    ...

def peek_image_shape(
    encoded: _Input,
    /,
    *,
    image_type: types.DALIImageType | None = types.RGB,
    dtype: _DType | None = types.INT64,
    adjust_orientation: _builtins.bool | None = True,
    on_error: str | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Read the shape of the decoded image from its header, which takes a few microseconds.

    shapes = fn.peek_image_shape(encoded)
    height = shapes[0]
    """
    ...

def per_frame(
    x: _Input,
    /,
    *,
    replace: _builtins.bool | None = False,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Mark data as one entry per frame, to be used as a per-frame argument.

    images = fn.gaussian_blur(video, sigma=fn.per_frame(sigmas))
    """
    ...

def permute_batch(
    x: _Input,
    /,
    *,
    indices: _Many[int] | _Computed,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Put other samples of the batch in each sample's place.

    pairs = fn.permute_batch(images, indices=fn.batch_permutation())
    """
    ...

def power_spectrum(
    x: _Input,
    /,
    *,
    axis: int | None = -1,
    nfft: int | None = None,
    power: int | None = 2,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Take the spectrum of signals along an axis: `|sum over n of x[n] * exp(-2 pi i k n / nfft)|**power` in bin
    k.

    power = fn.power_spectrum(frames, nfft=512)
    """
    ...

def preemphasis_filter(
    x: _Input,
    /,
    *,
    border: str | None = "clamp",
    dtype: _DType | None = types.FLOAT,
    preemph_coeff: float | _Computed | None = 0.97,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Subtract from each sample a part of the one before it: `y[t] = x[t] - preemph_coeff * x[t - 1]`.

    sound = fn.preemphasis_filter(sound, preemph_coeff=0.97)
    """
    ...

def python_function(
    *xs: _Input,
    function: Any,
    num_outputs: int | None = 1,
    batch_processing: _builtins.bool | None = False,
    output_layouts: Any = None,
    deterministic: _builtins.bool | None = False,
    parallel: _builtins.bool | None = False,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Call a Python function on numpy arrays, in this process, for one batch after the other.

    rotated = fn.python_function(images, function=lambda image: np.rot90(image))
    """
    ...

def random_bbox_crop(
    boxes: _Input,
    labels: _Input | None = None,
    /,
    *,
    all_boxes_above_threshold: _builtins.bool | None = True,
    allow_no_crop: _builtins.bool | None = True,
    aspect_ratio: _Many[float] | None = ...,
    bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None,
    crop_shape: _Many[int] | _Computed | None = None,
    input_shape: _Many[int] | _Computed | None = None,
    ltrb: _builtins.bool | None = True,
    num_attempts: int | None = 1,
    output_bbox_indices: _builtins.bool | None = False,
    quiet: _builtins.bool | None = False,
    scaling: _Many[float] | None = ...,
    shape_layout: str | None = None,
    threshold_type: str | None = "iou",
    thresholds: _Many[float] | None = ...,
    total_num_attempts: int | None = -1,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Choose a random crop window that keeps enough of the bounding boxes (Liu et al., SSD, arXiv:1512.02325).

    anchor, shape, boxes, labels = fn.random_bbox_crop(
        boxes, labels, scaling=[0.3, 1.0], aspect_ratio=[0.5, 2.0], thresholds=[0, 0.1, 0.3, 0.5]
    )
    """
    ...

def random_crop_generator(
    shape: _Input,
    /,
    *,
    num_attempts: int | None = 10,
    random_area: _Many[float] | None = ...,
    random_aspect_ratio: _Many[float] | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Choose random crop windows of random area and aspect ratio, for images of given shapes.

    anchor, shape = fn.random_crop_generator(fn.peek_image_shape(files))
    images = fn.decoders.image_slice(files, start=anchor, shape=shape, axes=[0, 1])
    """
    ...

def random_resized_crop(
    x: _Input,
    /,
    *,
    antialias: _builtins.bool | None = True,
    dtype: _DType | None = None,
    interp_type: types.DALIInterpType | _Computed | None = None,
    mag_filter: types.DALIInterpType | _Computed | None = None,
    min_filter: types.DALIInterpType | _Computed | None = None,
    num_attempts: int | None = 10,
    random_area: _Many[float] | None = ...,
    random_aspect_ratio: _Many[float] | None = ...,
    size: _Many[int],
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Choose a random window of random area and aspect ratio, and resize it.

    images = fn.random_resized_crop(images, size=224)
    """
    ...

def reinterpret(
    data: _Input,
    shape_input: _Input | None = None,
    /,
    *,
    dtype: _DType | None = None,
    layout: str | None = None,
    rel_shape: _Many[float] | _Computed | None = None,
    shape: _Many[int] | _Computed | None = None,
    src_dims: _Many[int] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Take the bytes of each sample for elements of another type, and optionally of another shape.

    pairs = fn.reinterpret(int32, dtype=types.INT16)
    """
    ...

def reshape(
    data: _Input,
    shape_input: _Input | None = None,
    /,
    *,
    layout: str | None = None,
    rel_shape: _Many[float] | _Computed | None = None,
    shape: _Many[int] | _Computed | None = None,
    src_dims: _Many[int] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Give samples another shape of as many elements, another layout, or both.

    flat = fn.reshape(images, shape=[-1])
    """
    ...

def resize(
    x: _Input,
    /,
    *,
    antialias: _builtins.bool | None = True,
    dtype: _DType | None = None,
    interp_type: types.DALIInterpType | _Computed | None = None,
    mag_filter: types.DALIInterpType | _Computed | None = None,
    max_size: _Many[float] | None = None,
    min_filter: types.DALIInterpType | _Computed | None = None,
    mode: str | None = "default",
    resize_longer: float | _Computed | None = None,
    resize_shorter: float | _Computed | None = None,
    resize_x: float | _Computed | None = None,
    resize_y: float | _Computed | None = None,
    resize_z: float | _Computed | None = None,
    roi_end: _Many[float] | _Computed | None = None,
    roi_relative: _builtins.bool | None = False,
    roi_start: _Many[float] | _Computed | None = None,
    save_attrs: _builtins.bool | None = False,
    size: _Many[float] | _Computed | None = None,
    subpixel_scale: _builtins.bool | None = True,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Resize images, each frame of a sequence, or volumes.

    images = fn.resize(images, resize_shorter=256)
    """
    ...

def resize_crop_mirror(
    x: _Input,
    /,
    *,
    antialias: _builtins.bool | None = True,
    crop: _Many[float] | _Computed | None = None,
    crop_d: float | _Computed | None = 0.0,
    crop_h: float | _Computed | None = 0.0,
    crop_pos_x: float | _Computed | None = 0.5,
    crop_pos_y: float | _Computed | None = 0.5,
    crop_pos_z: float | _Computed | None = 0.5,
    crop_w: float | _Computed | None = 0.0,
    dtype: _DType | None = None,
    interp_type: types.DALIInterpType | _Computed | None = None,
    mag_filter: types.DALIInterpType | _Computed | None = None,
    max_size: _Many[float] | None = None,
    min_filter: types.DALIInterpType | _Computed | None = None,
    mirror: int | _Computed | None = 0,
    mode: str | None = "default",
    resize_longer: float | _Computed | None = None,
    resize_shorter: float | _Computed | None = None,
    resize_x: float | _Computed | None = None,
    resize_y: float | _Computed | None = None,
    resize_z: float | _Computed | None = None,
    roi_end: _Many[float] | _Computed | None = None,
    roi_relative: _builtins.bool | None = False,
    roi_start: _Many[float] | _Computed | None = None,
    rounding: str | None = "round",
    size: _Many[float] | _Computed | None = None,
    subpixel_scale: _builtins.bool | None = True,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Do what fn.resize, then fn.crop, then fn.flip do, in one resampling.

    images = fn.resize_crop_mirror(images, resize_shorter=256, crop=[224, 224])
    """
    ...

def roi_random_crop(
    x: _Input | None = None,
    /,
    *,
    crop_shape: _Many[int] | _Computed,
    in_shape: _Many[int] | _Computed | None = None,
    roi_end: _Many[int] | _Computed | None = None,
    roi_shape: _Many[int] | _Computed | None = None,
    roi_start: _Many[int] | _Computed,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Place a crop window of a given shape at random so that it holds as much of a region of interest as it can.

    start = fn.roi_random_crop(
        crop_shape=[64, 64], roi_start=box[:2], roi_end=box[2:], in_shape=[480, 640]
    )
    images = fn.slice(images, start=start, shape=[64, 64], axis_names="HW")
    """
    ...

def rotate(
    x: _Input,
    /,
    *,
    angle: _Many[float] | _Computed,
    axis: _Many[float] | _Computed | None = None,
    dtype: _DType | None = None,
    fill_value: float | None = None,
    interp_type: types.DALIInterpType | None = types.INTERP_LINEAR,
    keep_size: _builtins.bool | None = False,
    size: _Many[float] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Rotate images about their centre, counter-clockwise as seen, and volumes about an axis.

    images = fn.rotate(
        images, angle=fn.random.uniform(range=[-10, 10]), fill_value=0
    )
    """
    ...

def saturation(
    x: _Input,
    /,
    *,
    dtype: _DType | None = None,
    image_type: types.DALIImageType | None = types.RGB,
    saturation: _Many[float] | _Computed | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Scale the saturation of images.

    images = fn.saturation(images, saturation=0.5)
    """
    ...

def sequence_rearrange(
    x: _Input,
    /,
    *,
    new_order: _Many[int] | _Computed,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Take the elements along the first axis in another order; they may be repeated or left out.

    reverse = fn.sequence_rearrange(sequence, new_order=[2, 1, 0])
    """
    ...

def shapes(
    x: _Input,
    /,
    *,
    dtype: _DType | None = types.INT64,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Return the extents of each sample.

    height = fn.shapes(images)[0]
    """
    ...

def slice(
    data: _Input,
    anchor: _Input | None = None,
    shape_input: _Input | None = None,
    /,
    *,
    axes: _Many[int] | _Computed | None = None,
    axis_names: str | None = None,
    dtype: _DType | None = None,
    end: _Many[int] | _Computed | None = None,
    fill_values: _Many[float] | None = ...,
    normalized_anchor: _builtins.bool | None = True,
    normalized_shape: _builtins.bool | None = True,
    out_of_bounds_policy: str | None = "error",
    rel_end: _Many[float] | _Computed | None = None,
    rel_shape: _Many[float] | _Computed | None = None,
    rel_start: _Many[float] | _Computed | None = None,
    shape: _Many[int] | _Computed | None = None,
    start: _Many[int] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Cut out a part of each sample: from a begin to an end, or of a shape.

    images = fn.slice(images, rel_start=[0.25, 0.25], rel_shape=[0.5, 0.5])
    """
    ...

def spectrogram(
    x: _Input,
    /,
    *,
    center_windows: _builtins.bool | None = True,
    layout: str | None = "ft",
    nfft: int | None = None,
    power: int | None = 2,
    reflect_padding: _builtins.bool | None = True,
    window_fn: _Many[float] | None = None,
    window_length: int | None = 512,
    window_step: int | None = 256,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Cut a sound into overlapping windows and take the spectrum of each: the short-time Fourier transform.

    spectrum = fn.spectrogram(sound, nfft=512, window_length=400, window_step=160)
    """
    ...

def sphere(
    x: _Input,
    /,
    *,
    fill_value: float | None = 0.0,
    interp_type: types.DALIInterpType | None = types.INTERP_NN,
    mask: int | _Computed | None = 1,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Let images look as if through a glass ball.

    images = fn.sphere(images)
    """
    ...

def squeeze(
    data: _Input,
    /,
    *,
    axes: _Many[int] | None = None,
    axis_names: str | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Remove axes of extent 1.

    grey = fn.squeeze(grey, axis_names="C")
    """
    ...

def stack(
    first: _Input,
    /,
    *more: _Input,
    axis: int | None = 0,
    axis_name: str | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Join samples of one shape along a new axis.

    frames = fn.stack(before, after, axis_name="F")
    """
    ...

def tensor_resize(
    x: _Input,
    /,
    *,
    alignment: _Many[float] | _Computed | None = ...,
    antialias: _builtins.bool | None = True,
    axes: _Many[int] | None = None,
    axis_names: str | None = None,
    dtype: _DType | None = None,
    interp_type: types.DALIInterpType | _Computed | None = None,
    mag_filter: types.DALIInterpType | _Computed | None = None,
    max_size: _Many[float] | None = None,
    min_filter: types.DALIInterpType | _Computed | None = None,
    mode: str | None = "default",
    roi_end: _Many[float] | _Computed | None = None,
    roi_relative: _builtins.bool | None = False,
    roi_start: _Many[float] | _Computed | None = None,
    scales: _Many[float] | _Computed | None = None,
    size_rounding: str | None = "round",
    sizes: _Many[float] | _Computed | None = None,
    subpixel_scale: _builtins.bool | None = True,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Resize data of any dimensions along chosen axes.

    volumes = fn.tensor_resize(volumes, sizes=[64, 64], axis_names="DH")
    """
    ...

def tensor_subscript(
    x: _Input,
    /,
    *indices: _Input,
    items: Any,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Take elements, slices and steps of each sample.

    red = images[:, :, 0]
    """
    ...

def to_decibels(
    x: _Input,
    /,
    *,
    cutoff_db: float | None = -200.0,
    multiplier: float | None = 10.0,
    reference: float | None = 0.0,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Convert magnitudes or powers to decibels: multiplier * log10(max(10**(cutoff_db / multiplier), x /
    reference)).

    decibels = fn.to_decibels(mel, cutoff_db=-80.0)
    """
    ...

def transpose(
    x: _Input,
    /,
    *,
    output_layout: str | None = None,
    perm: _Many[int] | None = None,
    transpose_layout: _builtins.bool | None = True,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Reorder the axes of each sample.

    planar = fn.transpose(images, perm=[2, 0, 1])  # HWC to CHW
    """
    ...

def warp_affine(
    data: _Input,
    mtx: _Input | None = None,
    /,
    *,
    dtype: _DType | None = None,
    fill_value: float | None = None,
    interp_type: types.DALIInterpType | None = types.INTERP_LINEAR,
    inverse_map: _builtins.bool | None = True,
    matrix: _Many[float] | _Computed | None = None,
    size: _Many[float] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Warp images and volumes by an affine matrix.

    images = fn.warp_affine(images, fn.transforms.rotation(angle=20), fill_value=0)
    """
    ...

def water(
    x: _Input,
    /,
    *,
    ampl_x: float | None = 10.0,
    ampl_y: float | None = 10.0,
    fill_value: float | None = 0.0,
    freq_x: float | None = 0.04908738521234052,
    freq_y: float | None = 0.04908738521234052,
    interp_type: types.DALIInterpType | None = types.INTERP_NN,
    mask: int | _Computed | None = 1,
    phase_x: float | None = 0.0,
    phase_y: float | None = 0.0,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Let images look as if under moving water.

    images = fn.water(images, ampl_x=5, ampl_y=5)
    """
    ...

def zeros(
    *,
    dtype: _DType | None = types.INT32,
    layout: str | None = None,
    shape: _Many[int] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Make data of zeros.

    empty = fn.zeros(shape=[3, 4])
    """
    ...

def zeros_like(
    data_like: _Input,
    /,
    *,
    dtype: _DType | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Make zeros in the shape of other data.

    mask = fn.zeros_like(images, dtype=types.BOOL)
    """
    ...
