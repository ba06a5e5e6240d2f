"""Operators as `ops.readers`. Made by `python -m docs.stubs` from the operators' files, for editors and type checkers."""

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

class Arrow:
    """Read rows of Arrow data: files, a table in memory, or a data set of Hugging Face; DALI has no such reader.

    faces = datasets.load_dataset("faces", split="train")
    encoded, label = fn.readers.arrow(source=faces, columns=["image", "label"])
    """

    def __init__(
        self,
        *,
        source: Any,
        columns: _Many[str],
        cache_bytes: int | None = 1073741824,
        memory_map: bool | None = False,
        allow_outside_root: bool | None = False,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class Caffe:
    """Read the `Datum` messages of Caffe's LMDB databases, in the order of their keys.

    encoded, labels = fn.readers.caffe(path="train_lmdb")
    """

    def __init__(
        self,
        *,
        path: _Many[str],
        image_available: bool | None = True,
        label_available: bool | None = True,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class Caffe2:
    """Read the `TensorProtos` messages of Caffe2's LMDB databases, in the order of their keys.

    encoded, labels = fn.readers.caffe2(path="train_lmdb", label_type=0)
    """

    def __init__(
        self,
        *,
        path: _Many[str],
        additional_inputs: int | None = 0,
        bbox: bool | None = False,
        image_available: bool | None = True,
        label_type: int | None = 0,
        num_labels: int | None = 1,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class COCO:
    """Read pictures of a COCO data set with the boxes, labels and masks of the objects in them.

    encoded, boxes, labels = fn.readers.coco(
        file_root="train2017", annotations_file="instances_train2017.json", ltrb=True, ratio=True
    )
    """

    def __init__(
        self,
        *,
        allow_outside_root: bool | None = False,
        annotations_file: str | None = "",
        avoid_class_remapping: bool | None = False,
        file_root: str | None = None,
        image_ids: bool | None = False,
        images: _Many[str] | None = None,
        include_iscrowd: bool | None = True,
        ltrb: bool | None = False,
        masks: bool | None = False,
        pixelwise_masks: bool | None = False,
        polygon_masks: bool | None = False,
        preprocessed_annotations: str | None = "",
        ratio: bool | None = False,
        save_preprocessed_annotations: bool | None = False,
        save_preprocessed_annotations_dir: str | None = "",
        size_threshold: float | None = 0.1,
        skip_empty: bool | None = False,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class Dataset:
    """Read a map-style data set: of PyTorch, torchvision, Hugging Face, or any object with `len()` and
    `[number]`.

    images, labels = fn.readers.dataset(dataset=cifar, random_shuffle=True, name="Reader")
    """

    def __init__(
        self,
        *,
        dataset: Any,
        num_outputs: int | None = 2,
        layout: Any = None,
        dtype: Any = None,
        ndim: Any = None,
        processes: int | None = 0,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class File:
    """Read the contents of files, with a label each.

    encoded, labels = fn.readers.file(file_root="photos", random_shuffle=True, name="train")
    images = fn.decoders.image(encoded)
    """

    def __init__(
        self,
        *,
        file_root: str | None = None,
        file_list: str | None = None,
        files: _Many[str] | None = None,
        labels: _Many[int] | None = None,
        dir_filters: _Many[str] | None = None,
        file_filters: _Many[str] | None = ...,
        case_sensitive_filter: bool | None = False,
        allow_outside_root: bool | None = False,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> tuple[DataNode, DataNode]: ...

class Hdf5:
    """Read rows of data sets in HDF5 files: a sample is the same row of each; DALI has no such reader.

    volumes, labels = fn.readers.hdf5(
        paths=["scans.h5"], datasets=["train/volumes", "train/labels"], random_shuffle=True, name="Reader"
    )
    """

    def __init__(
        self,
        *,
        paths: _Many[str],
        datasets: _Many[str],
        cache_bytes: int | None = 1073741824,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class MXNet:
    """Read encoded images and their labels from RecordIO files, as MXNet's `im2rec` writes them.

    encoded, labels = fn.readers.mxnet(path=["train.rec"], index_path=["train.idx"])
    """

    def __init__(
        self,
        *,
        path: _Many[str],
        index_path: _Many[str],
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> tuple[DataNode, DataNode]: ...

class NemoAsr:
    """Read the recordings that manifests list, decoded, with what is said in them.

    sound, rate, text = fn.readers.nemo_asr(
        manifest_filepaths=["train.json"], sample_rate=16000.0, max_duration=16.7
    )
    """

    def __init__(
        self,
        *,
        manifest_filepaths: _Many[str],
        allow_outside_root: bool | None = False,
        downmix: bool | None = True,
        dtype: _DType | None = types.FLOAT,
        max_duration: float | None = 0.0,
        min_duration: float | None = 0.0,
        quality: float | None = 50.0,
        read_idxs: bool | None = False,
        read_sample_rate: bool | None = True,
        read_text: bool | None = True,
        sample_rate: float | None = -1.0,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class Numpy:
    """Read arrays from `.npy` files, whole or a window of each.

    patch = fn.readers.numpy(file_root="volumes", roi_start=[0, 64], roi_shape=[32, 32])
    """

    def __init__(
        self,
        *,
        allow_outside_root: bool | None = False,
        cache_header_information: bool | None = False,
        file_filter: str | None = "*.npy",
        file_list: str | None = None,
        file_root: str | None = None,
        files: _Many[str] | None = None,
        fill_value: float | None = 0.0,
        out_of_bounds_policy: str | None = "error",
        register_buffers: bool | None = True,
        rel_roi_end: _Many[float] | DataNode | None = None,
        rel_roi_shape: _Many[float] | DataNode | None = None,
        rel_roi_start: _Many[float] | DataNode | None = None,
        roi_axes: _Many[int] | None = ...,
        roi_end: _Many[int] | DataNode | None = None,
        roi_shape: _Many[int] | DataNode | None = None,
        roi_start: _Many[int] | DataNode | None = None,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Parquet:
    """Read rows of Parquet files; DALI has no such reader.

    encoded, label = fn.readers.parquet(
        paths=["train-00000.parquet", "train-00001.parquet"],
        columns=["image", "label"],
        random_shuffle=True,
        name="Reader",
    )
    images = fn.decoders.image(encoded)
    """

    def __init__(
        self,
        *,
        paths: _Many[str],
        columns: _Many[str],
        cache_bytes: int | None = 1073741824,
        allow_outside_root: bool | None = False,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class Sequence:
    """Read sequences from films that were taken apart into pictures: `file_root/<film>/<picture>`.

    clips = fn.readers.sequence(file_root="films", sequence_length=8)
    """

    def __init__(
        self,
        *,
        file_root: str,
        sequence_length: int,
        image_type: types.DALIImageType | None = types.RGB,
        step: int | None = 1,
        stride: int | None = 1,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class TFRecord:
    """Read features of the `tf.Example` messages in TFRecord files.

    from dalify import tfrecord
    found = fn.readers.tfrecord(
        path="train.tfrecord",
        features={
            "image/encoded": tfrecord.FixedLenFeature([], tfrecord.string, ""),
            "image/class/label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        },
    )
    images = fn.decoders.image(found["image/encoded"])
    """

    def __init__(
        self,
        *,
        path: _Many[str],
        features: Any,
        index_path: _Many[str] | None = None,
        check_crc: bool | None = False,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class Video:
    """Read sequences of frames from videos of any container and codec that FFmpeg knows.

    clips, labels = fn.readers.video(file_root="films", sequence_length=16, device="gpu")
    """

    def __init__(
        self,
        *,
        sequence_length: int,
        additional_decode_surfaces: int | None = 2,
        allow_outside_root: bool | None = False,
        channels: int | None = 3,
        dtype: _DType | None = types.UINT8,
        enable_frame_num: Any = "none",
        enable_timestamps: bool | None = False,
        file_list: str | None = "",
        file_list_frame_num: bool | None = False,
        file_list_include_preceding_frame: bool | None = False,
        file_root: str | None = "",
        filenames: _Many[str] | None = ...,
        image_type: types.DALIImageType | None = types.RGB,
        labels: _Many[int] | None = None,
        normalized: bool | None = False,
        pad_sequences: bool | None = False,
        skip_vfr_check: bool | None = False,
        step: int | None = -1,
        stride: int | None = 1,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class VideoResize:
    """Read sequences of frames from videos and resize each frame: `fn.readers.video` and `fn.resize` in one.

    clips = fn.readers.video_resize(filenames=films, sequence_length=16, resize_shorter=256)
    """

    def __init__(
        self,
        *,
        sequence_length: int,
        additional_decode_surfaces: int | None = 2,
        allow_outside_root: bool | None = False,
        antialias: bool | None = True,
        channels: int | None = 3,
        dtype: _DType | None = types.UINT8,
        enable_frame_num: Any = "none",
        enable_timestamps: bool | None = False,
        file_list: str | None = "",
        file_list_frame_num: bool | None = False,
        file_list_include_preceding_frame: bool | None = False,
        file_root: str | None = "",
        filenames: _Many[str] | None = ...,
        image_type: types.DALIImageType | None = types.RGB,
        interp_type: types.DALIInterpType | DataNode | None = types.INTERP_LINEAR,
        labels: _Many[int] | None = None,
        mag_filter: types.DALIInterpType | DataNode | None = None,
        max_size: _Many[float] | None = None,
        min_filter: types.DALIInterpType | DataNode | None = None,
        mode: str | None = "default",
        normalized: bool | None = False,
        pad_sequences: bool | None = False,
        resize_longer: float | DataNode | None = None,
        resize_shorter: float | DataNode | None = None,
        resize_x: float | DataNode | None = None,
        resize_y: float | DataNode | None = None,
        resize_z: float | DataNode | None = None,
        roi_end: _Many[float] | DataNode | None = None,
        roi_relative: bool | None = False,
        roi_start: _Many[float] | DataNode | None = None,
        size: _Many[float] | DataNode | None = None,
        skip_vfr_check: bool | None = False,
        step: int | None = -1,
        stride: int | None = 1,
        subpixel_scale: bool | None = True,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class Webdataset:
    """Read samples from WebDataset archives: tar files in which "a.jpg" and "a.cls" are one sample.

    encoded, label = fn.readers.webdataset(
        paths=["train-0.tar", "train-1.tar"], ext=["jpg;png", "cls"], missing_component_behavior="error"
    )
    """

    def __init__(
        self,
        *,
        paths: _Many[str],
        ext: _Many[str],
        case_sensitive_extensions: bool | None = True,
        dtypes: _Many[_DType] | None = None,
        index_paths: _Many[str] | None = None,
        missing_component_behavior: str | None = "",
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class Zarr:
    """Read rows of arrays in Zarr stores: a sample is the same row of each; DALI has no such reader.

    tiles = fn.readers.zarr(paths=["map.zarr"], arrays=["tiles"], random_shuffle=True)
    """

    def __init__(
        self,
        *,
        paths: _Many[str],
        arrays: _Many[str],
        cache_bytes: int | None = 1073741824,
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
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...
