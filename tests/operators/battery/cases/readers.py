"""Cases of operators: readers and external sources."""

from __future__ import annotations

from tests.operators.battery.case import (
    CODE,
    FILES_TELL,
    NO_CPU,
    NO_READER,
    OUTSIDE_NAMES,
    RESIZE_DEFAULTS,
    SAMPLES,
    Case,
    exact_case,
    reader_case,
)
from tests.operators.battery.data import PHOTOS, image_folders, photo_folder, video_files

CASES: dict[str, Case] = {
    "external_source": exact_case(
        source=lambda: PHOTOS.samples[:SAMPLES],
        layout="HWC",
        not_serialized=CODE,
        not_sample_by_sample="its source gives the batch",
        other_defaults={
            "batch": "None is True; DALI's ops.ExternalSource has None, too",
            "batch_info": "False is what DALI's None means",
        },
    ),
    "experimental.readers.video": exact_case(
        arguments=video_files, not_sample_by_sample="each run reads the next sequences", own_arguments=OUTSIDE_NAMES
    ),
    "readers.sequence": exact_case(arguments=image_folders, not_sample_by_sample="each run reads the next sequences"),
    "readers.video": exact_case(
        arguments=video_files,
        not_sample_by_sample="each run reads the next sequences",
        not_compared_with_dali=NO_CPU,
        own_arguments=OUTSIDE_NAMES,
    ),
    "readers.video_resize": exact_case(
        arguments=lambda folder: {**video_files(folder), "size": [20, 30]},
        not_sample_by_sample="each run reads the next sequences",
        not_compared_with_dali=NO_CPU,
        other_defaults={name: reason for name, reason in RESIZE_DEFAULTS.items() if name != "interp_type"},
        own_arguments=OUTSIDE_NAMES,
    ),
    "experimental.readers.fits": reader_case(
        "experimental.readers.fits", not_compared_with_dali="it wants a GPU there", own_arguments=OUTSIDE_NAMES
    ),
    "readers.arrow": reader_case("readers.arrow", not_compared_with_dali=NO_READER, known_late=FILES_TELL),
    "readers.caffe": reader_case("readers.caffe"),
    "readers.caffe2": reader_case("readers.caffe2", label_type=4, additional_inputs=0, bbox=False),
    "readers.coco": reader_case(
        "readers.coco",
        own_arguments={
            **OUTSIDE_NAMES,
            "masks": "deprecated in DALI and not in its signature, but it works",
        },
    ),
    "readers.dataset": exact_case(
        dataset=list(zip(PHOTOS.samples, range(len(PHOTOS.samples)), strict=True)),
        not_compared_with_dali=NO_READER,
        known_late="only the items tell",
        not_sample_by_sample="each run reads the next items",
    ),
    "readers.file": exact_case(
        arguments=photo_folder, not_sample_by_sample="each run reads the next files", own_arguments=OUTSIDE_NAMES
    ),
    "readers.hdf5": reader_case("readers.hdf5", not_compared_with_dali=NO_READER, known_late=FILES_TELL),
    "readers.mxnet": reader_case("readers.mxnet"),
    "readers.nemo_asr": reader_case("readers.nemo_asr", own_arguments=OUTSIDE_NAMES),
    "readers.numpy": reader_case(
        "readers.numpy", roi_start=[1], roi_axes=[0], known_late=FILES_TELL, own_arguments=OUTSIDE_NAMES
    ),
    "readers.parquet": reader_case("readers.parquet", not_compared_with_dali=NO_READER, known_late=FILES_TELL),
    "readers.tfrecord": reader_case(
        "readers.tfrecord",
        not_compared_with_dali="declarations of features are objects of its own",
        other_defaults={"index_path": "None: the index is created when the pipeline is built"},
        own_arguments={"check_crc": "DALI never checks the checksums"},
    ),
    "readers.webdataset": reader_case("readers.webdataset", dtypes=None),
    "readers.zarr": reader_case("readers.zarr", not_compared_with_dali=NO_READER, known_late=FILES_TELL),
}
