"""Constants of MediaPipe programs: dtypes, filters, image layouts, types of crop.

Programs import them from here: ``from dalify.mediapipe.media_types import dtype, ftype, imgtype``.
"""

from __future__ import annotations

from dalify.base.errors import check_option
from dalify.data import DALIDataType, from_numpy


class dtype:  # noqa: N801 -- the name that programs import
    """Data types, as NumPy's names. ``NDT`` stands for a list of files."""

    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    NDT = ""


class ftype:  # noqa: N801
    """Resampling filters."""

    LINEAR = 0
    LANCZOS = 1
    NEAREST = 2
    BI_LINEAR = 3
    BICUBIC = 4
    SPLINE = 5
    BOX = 6


class imgtype:  # noqa: N801
    """Layout of a decoded image: ``RGB_I`` is NumPy's HWC, ``RGB_P`` is CHW."""

    RGB_I = "rgb-i"
    RGB_P = "rgb-p"


class randomCropType:  # noqa: N801
    """Which part of an image a decoder crops."""

    NO_RANDOM_CROP = 0
    RANDOMIZED_AREA_AND_ASPECT_RATIO_CROP = 1
    RANDOMIZED_ASPECT_RATIO_CROP = 2
    CENTER_CROP = 3


class decoderStage:  # noqa: N801
    """Stages of a decoder; here all stages are always executed."""

    ENABLE_ALL_STAGES = 0


class readerOutType:  # noqa: N801
    """The output of an external reader: paths of files, or their contents."""

    FILE_LIST = 0
    BUFFER_LIST = 1


class layout:  # noqa: N801
    """Orders of dimensions, fastest-varying first: ``WHCN`` is NumPy's NCHW."""

    NA = ""
    NHWC = "CWHN"
    NCHW = "WHCN"
    FHWC = "CWHC"


class clipSampler:  # noqa: N801
    """How clips of a video are selected."""

    RANDOM_SAMPLER = 0
    UNIFORM_SAMPLER = 1


class MetadataOps:
    """Processing steps of SSD metadata."""

    crop = 0
    flip = 1
    encode = 2


# NumPy has no bfloat16: it is computed in float32 and rounded at the output of the pipeline.
_TYPES = {
    name: from_numpy("float32" if name == dtype.BFLOAT16 else name)
    for key, name in vars(dtype).items()
    if key.isupper() and name
}


def to_dalify_type(name: str) -> DALIDataType:
    """Return the data type of a member of ``dtype``, or of its name.

    Raises:
        ArgumentValueError: the type does not exist.
    """
    check_option("dtype", name, _TYPES)
    return _TYPES[name]
