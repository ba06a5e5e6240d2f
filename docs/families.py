"""The sections of the operator list: families of operators, and common tasks.

Names without an operator are skipped; operators without a family are listed by namespace.
"""

from __future__ import annotations

FAMILIES: dict[str, tuple[str, ...]] = {
    "Readers and decoders": (
        "external_source",
        "readers.*",
        "inputs.*",
        "decoders.*",
        "experimental.decoders.*",
        "experimental.readers.*",
        "experimental.inputs.*",
        "io.*",
        "io.file.*",
        "peek_image_shape",
    ),
    "Size, crop and geometry": (
        "resize",
        "random_resized_crop",
        "resize_crop_mirror",
        "tensor_resize",
        "experimental.resize",
        "crop",
        "crop_mirror_normalize",
        "random_crop_generator",
        "roi_random_crop",
        "slice",
        "flip",
        "rotate",
        "warp_affine",
        "experimental.warp_perspective",
        "experimental.remap",
        "paste",
        "multi_paste",
        "pad",
        "sphere",
        "water",
    ),
    "Color": (
        "brightness",
        "contrast",
        "brightness_contrast",
        "color_twist",
        "hsv",
        "hue",
        "saturation",
        "color_space_conversion",
        "equalize",
        "clahe",
        "lookup_table",
        "debayer",
        "experimental.debayer",
    ),
    "Filters, masks and noise": (
        "gaussian_blur",
        "filter",
        "laplacian",
        "experimental.median_blur",
        "experimental.dilate",
        "experimental.erode",
        "erase",
        "grid_mask",
        "jitter",
        "jpeg_compression_distortion",
        "noise.*",
    ),
    "Audio": (
        "audio_resample",
        "spectrogram",
        "power_spectrum",
        "mel_filter_bank",
        "mfcc",
        "to_decibels",
        "preemphasis_filter",
        "nonsilent_region",
    ),
    "Sequences and video": ("element_extract", "sequence_rearrange", "per_frame", "optical_flow"),
    "Boxes, points and matrices": (
        "bb_flip",
        "bbox_paste",
        "bbox_rotate",
        "box_encoder",
        "random_bbox_crop",
        "coord_flip",
        "coord_transform",
        "transforms.*",
    ),
    "Segmentation": ("segmentation.*",),
    "Random numbers and the batch": ("random.*", "batch_permutation", "permute_batch"),
    "Tensors": (
        "cast",
        "cast_like",
        "reshape",
        "reinterpret",
        "transpose",
        "squeeze",
        "expand_dims",
        "cat",
        "stack",
        "shapes",
        "get_property",
        "one_hot",
        "constant",
        "full",
        "full_like",
        "ones",
        "ones_like",
        "zeros",
        "zeros_like",
        "copy",
        "normalize",
        "arithmetic",
        "tensor_subscript",
        "reductions.*",
    ),
    "User-defined functions": (
        "python_function",
        "dl_tensor_python_function",
        "experimental.numba_function",
        "dump_image",
    ),
}

# Common tasks and the operators to start with.
TASKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("read files of classes in folders", ("readers.file",)),
    ("read a Dataset of PyTorch or Hugging Face", ("readers.dataset",)),
    ("read a dataset in a container", ("readers.tfrecord", "readers.webdataset", "readers.mxnet", "readers.caffe")),
    ("read tables and large arrays", ("readers.parquet", "readers.arrow", "readers.hdf5", "readers.zarr")),
    ("read a detection dataset", ("readers.coco",)),
    ("feed my own arrays or generator", ("external_source",)),
    ("decode images", ("decoders.image",)),
    ("decode only a crop of an image", ("decoders.image_crop", "decoders.image_random_crop")),
    ("decode audio", ("decoders.audio", "audio_resample")),
    ("read video", ("readers.video", "readers.video_resize", "decoders.video")),
    ("resize all images to one size", ("resize", "random_resized_crop", "crop", "pad")),
    ("crop at random, as ImageNet training does", ("random_resized_crop", "decoders.image_random_crop")),
    ("normalize pixels with mean and standard deviation", ("crop_mirror_normalize", "normalize")),
    ("convert HWC to CHW", ("crop_mirror_normalize", "transpose")),
    ("mirror, rotate or warp", ("flip", "rotate", "warp_affine", "experimental.warp_perspective")),
    ("change colors", ("color_twist", "hsv", "brightness_contrast")),
    ("convert color spaces", ("color_space_conversion",)),
    ("blur or sharpen", ("gaussian_blur", "filter", "laplacian")),
    ("hide parts of an image (cutout, grid mask)", ("erase", "grid_mask")),
    ("mix images (mosaic, mixup)", ("multi_paste", "permute_batch", "random.beta")),
    ("add noise", ("noise.gaussian", "noise.shot", "noise.salt_and_pepper", "jpeg_compression_distortion")),
    ("draw random numbers", ("random.uniform", "random.normal", "random.coin_flip", "random.choice")),
    ("transform boxes together with their image", ("bb_flip", "bbox_paste", "bbox_rotate", "random_bbox_crop")),
    ("transform points together with their image", ("coord_transform", "coord_flip", "transforms.combine")),
    ("compute a spectrogram or MFCCs", ("spectrogram", "mel_filter_bank", "to_decibels", "mfcc")),
    ("cut out silence", ("nonsilent_region",)),
    ("change element types", ("cast", "cast_like")),
    ("convert class numbers to one-hot vectors", ("one_hot",)),
    ("pad boxes or labels to a common length", ("pad",)),
    (
        "compute sums, means, minima and maxima",
        ("reductions.sum", "reductions.mean", "reductions.max", "reductions.min"),
    ),
    ("call my own function", ("python_function", "experimental.numba_function")),
)


def families_of(names: list[str]) -> dict[str, list[str]]:
    """Return the existing operators by family, in the order of the families.

    Args:
        names: names of all public operators.
    """
    placed: dict[str, list[str]] = {family: [] for family in FAMILIES}
    left = list(names)
    for family, entries in FAMILIES.items():
        for entry in entries:
            found = [
                name
                for name in left
                if name == entry or (entry.endswith("*") and name.rpartition(".")[0] == entry[:-2])
            ]
            placed[family] += found
            left = [name for name in left if name not in found]
    for name in left:
        placed.setdefault(f"`fn.{name.rpartition('.')[0]}`" if "." in name else "More", []).append(name)
    return {family: found for family, found in placed.items() if found}
