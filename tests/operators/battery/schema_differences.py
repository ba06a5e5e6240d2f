"""Intended differences between the arguments of dalify's operators and DALI's, with the reason for each."""

from __future__ import annotations

__all__ = ["DEFAULTS", "MISSING", "OWN"]

_BY_TYPE = "the default depends on the element type: half of its range, 0.5 of floats"
_FOLLOWS = "not given: interp_type, then INTERP_LINEAR; DALI's code checks whether the argument was given"
_GIVEN = "not given; 0 keeps the extent. DALI's code checks whether the argument was given"
_AXES = "None: axis_names specify the axes; without both, the axes are those of DALI's default"

# "operator.argument": why the default differs.
DEFAULTS: dict[str, str] = {
    "brightness_contrast.contrast_center": _BY_TYPE,
    "contrast.contrast_center": _BY_TYPE,
    "decoders.image_slice.axes": _AXES,
    "dl_tensor_python_function.batch_processing": "True is what DALI's ops.DLTensorPythonFunction does",
    "erase.axes": _AXES,
    "erase.axis_names": _AXES,
    "erase.normalized_anchor": "not given: normalized; DALI's code checks whether the argument was given",
    "erase.normalized_shape": "not given: normalized; DALI's code checks whether the argument was given",
    "experimental.resize.interp_type": _FOLLOWS,
    "experimental.resize.mag_filter": _FOLLOWS,
    "experimental.resize.min_filter": _FOLLOWS,
    "external_source.batch": "None is True; DALI's ops.ExternalSource has None, too",
    "external_source.batch_info": "False is what DALI's None means",
    "laplacian.scale": "None is 1; normalized_kernel needs to know whether a scale was given",
    "one_hot.axis": "not given: -1, and [1] becomes a vector; DALI's code checks whether it was given",
    "random_resized_crop.interp_type": _FOLLOWS,
    "random_resized_crop.mag_filter": _FOLLOWS,
    "random_resized_crop.min_filter": _FOLLOWS,
    "readers.video_resize.mag_filter": _FOLLOWS,
    "readers.video_resize.min_filter": _FOLLOWS,
    "resize.interp_type": _FOLLOWS,
    "resize.mag_filter": _FOLLOWS,
    "resize.min_filter": _FOLLOWS,
    "resize_crop_mirror.interp_type": _FOLLOWS,
    "resize_crop_mirror.mag_filter": _FOLLOWS,
    "resize_crop_mirror.min_filter": _FOLLOWS,
    "tensor_resize.interp_type": _FOLLOWS,
    "tensor_resize.mag_filter": _FOLLOWS,
    "tensor_resize.min_filter": _FOLLOWS,
    "segmentation.random_object_bbox.background": "None is 0, or, if 0 is a class, a label that is not a class",
    "experimental.resize.resize_longer": _GIVEN,
    "experimental.resize.resize_shorter": _GIVEN,
    "experimental.resize.resize_x": _GIVEN,
    "experimental.resize.resize_y": _GIVEN,
    "experimental.resize.resize_z": _GIVEN,
    "readers.video_resize.resize_longer": _GIVEN,
    "readers.video_resize.resize_shorter": _GIVEN,
    "readers.video_resize.resize_x": _GIVEN,
    "readers.video_resize.resize_y": _GIVEN,
    "readers.video_resize.resize_z": _GIVEN,
    "resize.resize_longer": _GIVEN,
    "resize.resize_shorter": _GIVEN,
    "resize.resize_x": _GIVEN,
    "resize.resize_y": _GIVEN,
    "resize.resize_z": _GIVEN,
    "resize_crop_mirror.resize_longer": _GIVEN,
    "resize_crop_mirror.resize_shorter": _GIVEN,
    "resize_crop_mirror.resize_x": _GIVEN,
    "resize_crop_mirror.resize_y": _GIVEN,
    "resize_crop_mirror.resize_z": _GIVEN,
    "readers.tfrecord.index_path": "None: the index is created when the pipeline is built",
    "slice.axes": _AXES,
    "slice.axis_names": _AXES,
}

# Arguments of DALI that dalify's operator does not have.
MISSING: dict[str, str] = {}

# Arguments that only dalify's operator has, or an operator of this name that has other inputs.
_NAMES = "names in data cannot refer to files outside the folder of the data set unless the user allows it"
OWN: dict[str, str] = {
    "decoders.image.cache_folder": "a cache that processes share and that remains after they end",
    "python_function.deterministic": "allows fn.cache after a Python function",
    "python_function.parallel": "allows a Python function to run in worker processes",
    **dict.fromkeys(
        (
            "experimental.readers.fits.allow_outside_root",
            "experimental.readers.video.allow_outside_root",
            "io.file.read.allow_outside_root",
            "readers.coco.allow_outside_root",
            "readers.file.allow_outside_root",
            "readers.nemo_asr.allow_outside_root",
            "readers.numpy.allow_outside_root",
            "readers.video.allow_outside_root",
            "readers.video_resize.allow_outside_root",
        ),
        _NAMES,
    ),
    "readers.coco.masks": "deprecated in DALI and not in its signature, but it works",
    "readers.tfrecord.check_crc": "DALI never checks the checksums",
}
