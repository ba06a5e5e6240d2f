"""Operators as `ops.decoders`. Made by `python -m docs.stubs` from the operators' files, for editors and type checkers."""

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

class Audio:
    """Decode audio of any common format: WAV, FLAC, Ogg (Vorbis, Opus), AIFF, AU, CAF, MP3.

    encoded, labels = fn.readers.file(file_root="speech")
    sound, rate = fn.decoders.audio(encoded, downmix=True, sample_rate=16000.0)
    """

    def __init__(
        self,
        *,
        downmix: bool | None = False,
        dtype: _DType | None = types.FLOAT,
        quality: float | None = 50.0,
        sample_rate: float | DataNode | None = 0.0,
        on_error: str | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> tuple[DataNode, DataNode]: ...

class Image:
    """Decode images of any common format: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF.

    encoded, labels = fn.readers.file(file_root="photos")
    images = fn.decoders.image(encoded, device="mixed", output_type=types.RGB)
    """

    def __init__(
        self,
        *,
        output_type: types.DALIImageType | None = types.RGB,
        dtype: _DType | None = types.UINT8,
        adjust_orientation: bool | None = True,
        use_fast_idct: bool | None = False,
        jpeg_fancy_upsampling: bool | None = False,
        hybrid_huffman_threshold: int | None = 1000000,
        hw_decoder_load: float | None = 0.65,
        preallocate_width_hint: int | None = 0,
        preallocate_height_hint: int | None = 0,
        device_memory_padding: int | None = 16777216,
        host_memory_padding: int | None = 8388608,
        device_memory_padding_jpeg2k: int | None = 0,
        host_memory_padding_jpeg2k: int | None = 0,
        affine: bool | None = True,
        cache_type: str | None = "",
        cache_size: int | None = 0,
        cache_threshold: int | None = 0,
        cache_batch_copy: bool | None = True,
        cache_debug: bool | None = False,
        cache_folder: str | None = "",
        on_error: str | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class ImageCrop:
    """Decode a part of the given size of images of any common format.

    images = fn.decoders.image_crop(encoded, crop=[224, 224])
    """

    def __init__(
        self,
        *,
        crop: _Many[float] | DataNode | None = None,
        crop_h: float | DataNode | None = 0.0,
        crop_w: float | DataNode | None = 0.0,
        crop_d: float | DataNode | None = 0.0,
        crop_pos_x: float | DataNode | None = 0.5,
        crop_pos_y: float | DataNode | None = 0.5,
        crop_pos_z: float | DataNode | None = 0.5,
        rounding: str | None = "round",
        output_type: types.DALIImageType | None = types.RGB,
        dtype: _DType | None = types.UINT8,
        adjust_orientation: bool | None = True,
        use_fast_idct: bool | None = False,
        jpeg_fancy_upsampling: bool | None = False,
        hybrid_huffman_threshold: int | None = 1000000,
        hw_decoder_load: float | None = 0.65,
        preallocate_width_hint: int | None = 0,
        preallocate_height_hint: int | None = 0,
        device_memory_padding: int | None = 16777216,
        host_memory_padding: int | None = 8388608,
        device_memory_padding_jpeg2k: int | None = 0,
        host_memory_padding_jpeg2k: int | None = 0,
        affine: bool | None = True,
        on_error: str | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class ImageRandomCrop:
    """Decode a randomly placed part, of random area and aspect ratio, of images of any common format.

    images = fn.decoders.image_random_crop(encoded, random_area=[0.1, 1.0])
    images = fn.resize(images, size=[224, 224])
    """

    def __init__(
        self,
        *,
        output_type: types.DALIImageType | None = types.RGB,
        dtype: _DType | None = types.UINT8,
        adjust_orientation: bool | None = True,
        use_fast_idct: bool | None = False,
        jpeg_fancy_upsampling: bool | None = False,
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
        affine: bool | None = True,
        on_error: str | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class ImageSlice:
    """Decode a part of images of any common format.

    images = fn.decoders.image_slice(encoded, rel_start=[0.25, 0.25], rel_shape=[0.5, 0.5])
    """

    def __init__(
        self,
        *,
        start: _Many[int] | DataNode | None = None,
        rel_start: _Many[float] | DataNode | None = None,
        end: _Many[int] | DataNode | None = None,
        rel_end: _Many[float] | DataNode | None = None,
        shape: _Many[int] | DataNode | None = None,
        rel_shape: _Many[float] | DataNode | None = None,
        axes: _Many[int] | DataNode | None = None,
        axis_names: str | None = "WH",
        normalized_anchor: bool | None = True,
        normalized_shape: bool | None = True,
        output_type: types.DALIImageType | None = types.RGB,
        dtype: _DType | None = types.UINT8,
        adjust_orientation: bool | None = True,
        use_fast_idct: bool | None = False,
        jpeg_fancy_upsampling: bool | None = False,
        hybrid_huffman_threshold: int | None = 1000000,
        hw_decoder_load: float | None = 0.65,
        preallocate_width_hint: int | None = 0,
        preallocate_height_hint: int | None = 0,
        device_memory_padding: int | None = 16777216,
        host_memory_padding: int | None = 8388608,
        device_memory_padding_jpeg2k: int | None = 0,
        host_memory_padding_jpeg2k: int | None = 0,
        affine: bool | None = True,
        on_error: str | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Inflate:
    """Inflate arrays that were compressed as LZ4 blocks, without frames.

    sequences = fn.decoders.inflate(data, shape=shapes, chunk_sizes=sizes, layout="HWC")
    """

    def __init__(
        self,
        *,
        shape: _Many[int] | DataNode,
        algorithm: str | None = "LZ4",
        check_output_size: bool | None = False,
        chunk_offsets: _Many[int] | DataNode | None = None,
        chunk_sizes: _Many[int] | DataNode | None = None,
        dtype: _DType | None = types.UINT8,
        layout: str | None = "",
        sequence_axis_name: str | None = "F",
        on_error: str | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Numpy:
    """Decode arrays from NumPy files (`.npy`).

    arrays = fn.decoders.numpy(contents, dtype=types.FLOAT)
    """

    def __init__(
        self,
        *,
        dtype: _DType | None = None,
        on_error: str | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Video:
    """Decode videos, or chosen frames of them, of any container and codec that FFmpeg knows.

    encoded = fn.external_source(source=films)
    clips = fn.decoders.video(encoded, start_frame=30, sequence_length=16, stride=2)
    """

    def __init__(
        self,
        *,
        affine: bool | None = True,
        build_index: bool | None = True,
        end_frame: int | DataNode | None = None,
        fill_value: _Many[int] | None = ...,
        frames: _Many[int] | DataNode | None = None,
        pad_mode: str | None = "constant",
        sequence_length: int | DataNode | None = None,
        start_frame: int | DataNode | None = None,
        stride: int | DataNode | None = None,
        on_error: str | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...
