"""Where the arguments of our operators differ from DALI's on purpose, with the reason for each."""

from __future__ import annotations

__all__ = ["DEFAULTS", "MISSING", "OWN"]

_BY_TYPE = "the default depends on the element type: half of its range, 0.5 of floats"
_FOLLOWS = "not given: interp_type, then INTERP_LINEAR; DALI tells in its code whether the argument was given"
_GIVEN = "not given; 0 keeps the extent. DALI tells in its code whether the argument was given"
_AXES = "None, for axis_names decide; which axes are meant where neither is given is DALI's default"

# "operator.argument": why the default is another one.
DEFAULTS: dict[str, str] = {
    "brightness_contrast.contrast_center": _BY_TYPE,
    "contrast.contrast_center": _BY_TYPE,
    "decoders.image_slice.axes": _AXES,
    "dl_tensor_python_function.batch_processing": "True is what DALI does, by its ops.DLTensorPythonFunction",
    "erase.axes": _AXES,
    "erase.axis_names": _AXES,
    "erase.normalized_anchor": "not given: normalized; DALI tells in its code whether the argument was given",
    "erase.normalized_shape": "not given: normalized; DALI tells in its code whether the argument was given",
    "experimental.resize.interp_type": _FOLLOWS,
    "experimental.resize.mag_filter": _FOLLOWS,
    "experimental.resize.min_filter": _FOLLOWS,
    "external_source.batch": "None is True; DALI's ops.ExternalSource has None, too",
    "external_source.batch_info": "False is what DALI's None means",
    "laplacian.scale": "None is 1 and tells that none was given, which normalized_kernel needs to know",
    "one_hot.axis": "not given: -1, and [1] becomes a vector; DALI tells in its code whether it was given",
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
    "segmentation.random_object_bbox.background": "None is 0, or a label that is no class where 0 is one",
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
    "readers.tfrecord.index_path": "None: the index is made when the pipeline is built",
    "slice.axes": _AXES,
    "slice.axis_names": _AXES,
}

# Arguments of DALI that an operator here does not have.
MISSING: dict[str, str] = {}

# Arguments that only the operator here has, or, by its name alone, an operator whose inputs are others.
_NAMES = "names in data do not lead out of the data set's folder unless the user allows it"
OWN: dict[str, str] = {
    "decoders.image.cache_folder": "a cache that processes share and that outlasts them",
    "python_function.deterministic": "lets fn.cache stand behind a Python function",
    "python_function.parallel": "lets a Python function run in worker processes",
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
    "readers.coco.masks": "deprecated there and not in the signature, but it works",
    "readers.tfrecord.check_crc": "DALI never looks at the check sums",
}
