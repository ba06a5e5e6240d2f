"""Operators as `dynamic.decoders`. Made by `python -m docs.dynamic_stubs` from the operators' files, for editors."""

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

def audio(
    encoded: _Input,
    /,
    *,
    downmix: _builtins.bool | None = False,
    dtype: _DType | None = types.FLOAT,
    quality: float | None = 50.0,
    sample_rate: float | _Computed | None = 0.0,
    on_error: str | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Decode audio of any common format: WAV, FLAC, Ogg (Vorbis, Opus), AIFF, AU, CAF, MP3.

    encoded, labels = fn.readers.file(file_root="speech")
    sound, rate = fn.decoders.audio(encoded, downmix=True, sample_rate=16000.0)
    """
    ...

def image(
    encoded: _Input,
    /,
    *,
    output_type: types.DALIImageType | None = types.RGB,
    dtype: _DType | None = types.UINT8,
    adjust_orientation: _builtins.bool | None = True,
    use_fast_idct: _builtins.bool | None = False,
    jpeg_fancy_upsampling: _builtins.bool | None = False,
    hybrid_huffman_threshold: int | None = 1000000,
    hw_decoder_load: float | None = 0.65,
    preallocate_width_hint: int | None = 0,
    preallocate_height_hint: int | None = 0,
    device_memory_padding: int | None = 16777216,
    host_memory_padding: int | None = 8388608,
    device_memory_padding_jpeg2k: int | None = 0,
    host_memory_padding_jpeg2k: int | None = 0,
    affine: _builtins.bool | None = True,
    cache_type: str | None = "",
    cache_size: int | None = 0,
    cache_threshold: int | None = 0,
    cache_batch_copy: _builtins.bool | None = True,
    cache_debug: _builtins.bool | None = False,
    cache_folder: str | None = "",
    on_error: str | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Decode images of any common format: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF.

    encoded, labels = fn.readers.file(file_root="photos")
    images = fn.decoders.image(encoded, device="mixed", output_type=types.RGB)
    """
    ...

def image_crop(
    encoded: _Input,
    /,
    *,
    crop: _Many[float] | _Computed | None = None,
    crop_h: float | _Computed | None = 0.0,
    crop_w: float | _Computed | None = 0.0,
    crop_d: float | _Computed | None = 0.0,
    crop_pos_x: float | _Computed | None = 0.5,
    crop_pos_y: float | _Computed | None = 0.5,
    crop_pos_z: float | _Computed | None = 0.5,
    rounding: str | None = "round",
    output_type: types.DALIImageType | None = types.RGB,
    dtype: _DType | None = types.UINT8,
    adjust_orientation: _builtins.bool | None = True,
    use_fast_idct: _builtins.bool | None = False,
    jpeg_fancy_upsampling: _builtins.bool | None = False,
    hybrid_huffman_threshold: int | None = 1000000,
    hw_decoder_load: float | None = 0.65,
    preallocate_width_hint: int | None = 0,
    preallocate_height_hint: int | None = 0,
    device_memory_padding: int | None = 16777216,
    host_memory_padding: int | None = 8388608,
    device_memory_padding_jpeg2k: int | None = 0,
    host_memory_padding_jpeg2k: int | None = 0,
    affine: _builtins.bool | None = True,
    on_error: str | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Decode a part of the given size of images of any common format.

    images = fn.decoders.image_crop(encoded, crop=[224, 224])
    """
    ...

def image_random_crop(
    encoded: _Input,
    /,
    *,
    output_type: types.DALIImageType | None = types.RGB,
    dtype: _DType | None = types.UINT8,
    adjust_orientation: _builtins.bool | None = True,
    use_fast_idct: _builtins.bool | None = False,
    jpeg_fancy_upsampling: _builtins.bool | None = False,
    random_area: _Many[float] | None = ...,
    random_aspect_ratio: _Many[float] | None = ...,
    num_attempts: int | None = 10,
    hybrid_huffman_threshold: int | None = 1000000,
    hw_decoder_load: float | None = 0.65,
    preallocate_width_hint: int | None = 0,
    preallocate_height_hint: int | None = 0,
    device_memory_padding: int | None = 16777216,
    host_memory_padding: int | None = 8388608,
    device_memory_padding_jpeg2k: int | None = 0,
    host_memory_padding_jpeg2k: int | None = 0,
    affine: _builtins.bool | None = True,
    on_error: str | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Decode a randomly placed part, of random area and aspect ratio, of images of any common format.

    images = fn.decoders.image_random_crop(encoded, random_area=[0.1, 1.0])
    images = fn.resize(images, size=[224, 224])
    """
    ...

def image_slice(
    encoded: _Input,
    anchor: _Input | None = None,
    shape_input: _Input | None = None,
    /,
    *,
    start: _Many[int] | _Computed | None = None,
    rel_start: _Many[float] | _Computed | None = None,
    end: _Many[int] | _Computed | None = None,
    rel_end: _Many[float] | _Computed | None = None,
    shape: _Many[int] | _Computed | None = None,
    rel_shape: _Many[float] | _Computed | None = None,
    axes: _Many[int] | _Computed | None = None,
    axis_names: str | None = "WH",
    normalized_anchor: _builtins.bool | None = True,
    normalized_shape: _builtins.bool | None = True,
    output_type: types.DALIImageType | None = types.RGB,
    dtype: _DType | None = types.UINT8,
    adjust_orientation: _builtins.bool | None = True,
    use_fast_idct: _builtins.bool | None = False,
    jpeg_fancy_upsampling: _builtins.bool | None = False,
    hybrid_huffman_threshold: int | None = 1000000,
    hw_decoder_load: float | None = 0.65,
    preallocate_width_hint: int | None = 0,
    preallocate_height_hint: int | None = 0,
    device_memory_padding: int | None = 16777216,
    host_memory_padding: int | None = 8388608,
    device_memory_padding_jpeg2k: int | None = 0,
    host_memory_padding_jpeg2k: int | None = 0,
    affine: _builtins.bool | None = True,
    on_error: str | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Decode a part of images of any common format.

    images = fn.decoders.image_slice(encoded, rel_start=[0.25, 0.25], rel_shape=[0.5, 0.5])
    """
    ...

def inflate(
    compressed: _Input,
    /,
    *,
    shape: _Many[int] | _Computed,
    algorithm: str | None = "LZ4",
    check_output_size: _builtins.bool | None = False,
    chunk_offsets: _Many[int] | _Computed | None = None,
    chunk_sizes: _Many[int] | _Computed | None = None,
    dtype: _DType | None = types.UINT8,
    layout: str | None = "",
    sequence_axis_name: str | None = "F",
    on_error: str | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Inflate arrays that were compressed as LZ4 blocks, without frames.

    sequences = fn.decoders.inflate(data, shape=shapes, chunk_sizes=sizes, layout="HWC")
    """
    ...

def numpy(
    data: _Input,
    /,
    *,
    dtype: _DType | None = None,
    on_error: str | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Decode arrays from NumPy files (`.npy`).

    arrays = fn.decoders.numpy(contents, dtype=types.FLOAT)
    """
    ...

def video(
    encoded: _Input,
    /,
    *,
    affine: _builtins.bool | None = True,
    build_index: _builtins.bool | None = True,
    end_frame: int | _Computed | None = None,
    fill_value: _Many[int] | None = ...,
    frames: _Many[int] | _Computed | None = None,
    pad_mode: str | None = "constant",
    sequence_length: int | _Computed | None = None,
    start_frame: int | _Computed | None = None,
    stride: int | _Computed | None = None,
    on_error: str | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Decode videos, or chosen frames of them, of any container and codec that FFmpeg knows.

    encoded = fn.external_source(source=films)
    clips = fn.decoders.video(encoded, start_frame=30, sequence_length=16, stride=2)
    """
    ...
