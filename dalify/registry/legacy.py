"""Deprecated names of DALI.

Names of operators and arguments that still work, with a warning that names the replacement.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

LEGACY_NAMES: dict[str, str] = {
    "audio_decoder": "decoders.audio",
    "caffe2_reader": "readers.caffe2",
    "caffe_reader": "readers.caffe",
    "coco_reader": "readers.coco",
    "coin_flip": "random.coin_flip",
    "experimental.audio_resample": "audio_resample",
    "experimental.debayer": "debayer",
    "experimental.decoders.image": "decoders.image",
    "experimental.decoders.image_crop": "decoders.image_crop",
    "experimental.decoders.image_random_crop": "decoders.image_random_crop",
    "experimental.decoders.image_slice": "decoders.image_slice",
    "experimental.decoders.video": "decoders.video",
    "experimental.equalize": "equalize",
    "experimental.filter": "filter",
    "experimental.inflate": "decoders.inflate",
    "experimental.peek_image_shape": "peek_image_shape",
    "experimental.tensor_resize": "tensor_resize",
    "fast_resize_crop_mirror": "resize_crop_mirror",
    "file_reader": "readers.file",
    "image_decoder": "decoders.image",
    "image_decoder_crop": "decoders.image_crop",
    "image_decoder_random_crop": "decoders.image_random_crop",
    "image_decoder_slice": "decoders.image_slice",
    "mxnet_reader": "readers.mxnet",
    "nemo_asr_reader": "readers.nemo_asr",
    "normal_distribution": "random.normal",
    "numpy_reader": "readers.numpy",
    "nv_jpeg_decoder": "decoders.image",
    "host_decoder": "decoders.image",
    "host_decoder_crop": "decoders.image_crop",
    "host_decoder_random_crop": "decoders.image_random_crop",
    "host_decoder_slice": "decoders.image_slice",
    "nv_jpeg_decoder_crop": "decoders.image_crop",
    "nv_jpeg_decoder_random_crop": "decoders.image_random_crop",
    "nv_jpeg_decoder_slice": "decoders.image_slice",
    "sequence_reader": "readers.sequence",
    "ssd_random_crop": "random_bbox_crop",
    "tfrecord_reader": "readers.tfrecord",
    "transform_translation": "transforms.translation",
    "uniform": "random.uniform",
    "video_reader": "readers.video",
    "video_reader_resize": "readers.video_resize",
}

# Names that DALI's own deprecated functions, and thus serialized graphs, use for operators: for all but image decoders
# and the reader of TFRecord.
HIDDEN_NAMES: dict[str, str] = {
    **{
        f"hidden.{old}": name
        for old, name in LEGACY_NAMES.items()
        if "." not in old and not name.startswith(("decoders.image", "readers.tfrecord"))
    },
    **{
        f"experimental.hidden.{name}": LEGACY_NAMES[f"experimental.{name}"]
        for name in ("audio_resample", "debayer", "equalize", "filter", "inflate", "tensor_resize")
    },
    "experimental.decoders.hidden.video": "decoders.video",
    "hidden.constant": "constant",
    "hidden.shapes": "shapes",
    "readers.hidden.sequence": "readers.sequence",
}

# Deprecated argument -> replacement, for operators that have only the replacement.
LEGACY_ARGUMENTS: dict[str, str] = {
    "output_dtype": "dtype",
    "out_type": "dtype",
    "std": "stddev",
    "meta_files_path": "preprocessed_annotations",
    "dump_meta_files": "save_preprocessed_annotations",
    "dump_meta_files_path": "save_preprocessed_annotations_dir",
    "save_img_ids": "image_ids",
}

# The same for individual operators.
_OF_OPERATORS: dict[str, dict[str, str]] = {
    "optical_flow": {"output_format": "output_grid"},
    "shapes": {"type": "dtype"},
}

# Defaults that apply only to the deprecated name of an operator.
LEGACY_DEFAULTS: dict[str, dict[str, Any]] = {"fast_resize_crop_mirror": {"antialias": False}}

_IMAGE_DECODERS = ("decoders.image", "decoders.image_crop", "decoders.image_random_crop", "decoders.image_slice")
_OF_IMAGE_DECODERS = frozenset(
    {
        "device_memory_padding",
        "host_memory_padding",
        "hybrid_huffman_threshold",
        "memory_stats",
        "split_stages",
        "use_chunk_allocator",
    }
)
_OF_RESIZES = frozenset({"minibatch_size", "temp_buffer_hint"})
_IMAGE_TYPE = frozenset({"image_type"})

# Arguments of old releases that have no effect: accepted with a warning, by the operators that have them in DALI.
_RETIRED_ARGUMENTS: dict[str, frozenset[str]] = {
    **dict.fromkeys(_IMAGE_DECODERS, _OF_IMAGE_DECODERS),
    **dict.fromkeys(("crop", "crop_mirror_normalize", "slice"), _IMAGE_TYPE),
    **dict.fromkeys(("resize", "experimental.resize"), _OF_RESIZES | _IMAGE_TYPE),
    **dict.fromkeys(
        ("random_resized_crop", "readers.video_resize", "resize_crop_mirror", "tensor_resize"), _OF_RESIZES
    ),
    "readers.nemo_asr": frozenset({"normalize_text"}),
}

# Names of arguments of other operators, and the arguments that their users mean.
SIMILAR_ARGUMENTS: dict[str, str] = {"image_type": "output_type"}


def retired_arguments(operator: str) -> frozenset[str]:
    """Return the argument names of an operator that have no effect."""
    return _RETIRED_ARGUMENTS.get(operator, frozenset())


def old_arguments(operator: str, parameters: Container[str]) -> dict[str, str]:
    """Return the deprecated argument names of an operator and their replacements."""
    known = {**LEGACY_ARGUMENTS, **_OF_OPERATORS.get(operator, {})}
    return {old: modern for old, modern in known.items() if modern in parameters and old not in parameters}
