"""Operators as `dynamic.experimental.readers`. Made by `python -m docs.dynamic_stubs` from the operators' files, for editors."""

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

class Fits(_Reader):
    """Read images from FITS files.

    sky = fn.experimental.readers.fits(file_root="sky", dtypes=[types.FLOAT])
    """

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: str | _Device | None = None,
        *,
        enable_checkpointing: bool = False,
        allow_outside_root: bool | None = False,
        dtypes: _Many[_DType] | None = None,
        file_filter: str | None = "*.fits",
        file_list: str | None = None,
        file_root: str | None = None,
        files: _Many[str] | None = None,
        hdu_indices: _Many[int] | None = ...,
        random_shuffle: bool | None = False,
        initial_fill: int | None = 1024,
        num_shards: int | None = 1,
        shard_id: int | None = 0,
        stick_to_shard: bool | None = False,
        shuffle_after_epoch: bool | None = False,
        shuffle_after_epoch_seed: int | None = None,
        pad_last_batch: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        read_ahead: bool | None = False,
        tensor_init_bytes: int | None = 1048576,
        dont_use_mmap: bool | None = False,
        lazy_init: bool | None = False,
        skip_cached_images: bool | None = False,
        use_o_direct: bool | None = False,
        on_error: str | None = None,
        shard: str | None = None,
        sampler: Any = None,
        seed: int | None = None,
    ) -> None: ...

class Video(_Reader):
    """Read sequences of frames from videos of any container and codec that FFmpeg knows.

    clips, labels = fn.experimental.readers.video(file_root="films", sequence_length=16)
    """

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: str | _Device | None = None,
        *,
        enable_checkpointing: bool = False,
        sequence_length: int,
        allow_outside_root: bool | None = False,
        enable_frame_num: Any = "none",
        enable_timestamps: bool | None = False,
        file_list: str | None = "",
        file_list_format: str | None = "timestamps",
        file_list_include_end: bool | None = True,
        file_list_rounding: str | None = "start_down_end_up",
        file_root: str | None = "",
        filenames: _Many[str] | None = ...,
        fill_value: _Many[int] | None = ...,
        image_type: types.DALIImageType | None = types.RGB,
        labels: _Many[int] | None = None,
        pad_mode: str | None = "none",
        step: int | None = -1,
        stride: int | None = 1,
        uniform_sample: bool | None = False,
        random_shuffle: bool | None = False,
        initial_fill: int | None = 1024,
        num_shards: int | None = 1,
        shard_id: int | None = 0,
        stick_to_shard: bool | None = False,
        shuffle_after_epoch: bool | None = False,
        shuffle_after_epoch_seed: int | None = None,
        pad_last_batch: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        read_ahead: bool | None = False,
        tensor_init_bytes: int | None = 1048576,
        dont_use_mmap: bool | None = False,
        lazy_init: bool | None = False,
        skip_cached_images: bool | None = False,
        use_o_direct: bool | None = False,
        on_error: str | None = None,
        shard: str | None = None,
        sampler: Any = None,
        seed: int | None = None,
    ) -> None: ...
