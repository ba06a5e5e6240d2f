"""Typical use of every operator: what the battery cannot read from a schema. One short entry each, in `CASES`."""

from __future__ import annotations

import io
import tempfile
import wave
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import dalify
from dalify import types
from tests.helpers.photos import drawn_photo, write_photo_folder
from tests.operators.readers.datasets import DATASETS

__all__ = ["CASES", "SAMPLES", "Case", "Data", "Each"]

SAMPLES = 5
_NEIGHBOURS = ["cases.py", "run_case.py", "test_battery.py", "variants.py", "cases.py", "record.py"]
_RANDOM = np.random.default_rng(7)


def _restart(seed: str) -> None:
    """Begin the random numbers anew: recorded results stay true whatever data are added before or behind."""
    _RANDOM.bit_generator.state = np.random.default_rng(zlib.crc32(seed.encode())).bit_generator.state


@dataclass(frozen=True, eq=False)
class Data:
    """One input: samples of one shape and one more of another, the odd one, which makes a batch ragged."""

    samples: list[np.ndarray]
    layout: str = ""


@dataclass(frozen=True, eq=False)
class Each:
    """An argument that differs from sample to sample; like `Data`, with a value for the odd sample at the end."""

    values: list[np.ndarray]
    layout: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """Typical use of one operator.

    Attributes:
        inputs: positional.
        arguments: by name, `Each` for those that differ; or a function from an empty folder to them.
        atol: largest absolute difference to DALI.
        rtol: largest difference to DALI relative to the value, and on float results also to the largest value.
        not_sample_by_sample: why one sample alone gives another result than in its batch.
        not_beside_dali: why there is nothing to compare with.
        not_serialised: why the graph cannot be written down.
        known_late: why type and dimensions of the result are not known when the graph is built.
        share: largest part of the elements that may differ from DALI by more than the tolerance.
    """

    inputs: tuple[Data, ...] = ()
    arguments: Mapping[str, Any] | Callable[[Path], Mapping[str, Any]] = field(default_factory=dict)
    atol: float = 0.0
    rtol: float = 0.0
    not_sample_by_sample: str = ""
    not_beside_dali: str = ""
    not_serialised: str = ""
    known_late: str = ""
    share: float = 0.0

    def given(self, folder: Path) -> Mapping[str, Any]:
        """Return the arguments; files that they name lie in ``folder``."""
        return self.arguments(folder) if callable(self.arguments) else self.arguments


def _case(*inputs: Data, **given: Any) -> Case:
    own = {name: given.pop(name) for name in Case.__dataclass_fields__ if name in given}
    return Case(inputs=inputs, arguments=own.pop("arguments", given), **own)


def _image(*inputs: Data, **given: Any) -> Case:
    """Bytes of an image, rounded: DALI may be one off."""
    return _case(*inputs, atol=1, **given)


def _float(*inputs: Data, **given: Any) -> Case:
    return _case(*inputs, rtol=1e-5, **given)


def _data(
    draw: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], odd: tuple[int, ...], layout: str = ""
) -> Data:
    _restart(f"{shape} {odd} {layout}")
    return Data([draw(shape) for _ in range(SAMPLES)] + [draw(odd)], layout)


def _bytes(shape: tuple[int, ...]) -> np.ndarray:
    return _RANDOM.integers(0, 256, shape, dtype=np.uint8)


def _floats(shape: tuple[int, ...]) -> np.ndarray:
    return _RANDOM.normal(0, 10, shape).astype(np.float32)


def _unit(shape: tuple[int, ...]) -> np.ndarray:
    return _RANDOM.uniform(0.05, 0.95, shape).astype(np.float32)


def _labels(shape: tuple[int, ...]) -> np.ndarray:
    return _RANDOM.integers(0, 4, shape, dtype=np.int32)


def _anchors(count: int) -> list[float]:
    _restart(f"anchors {count}")
    return _box_rows((count, 4)).reshape(-1).tolist()


def _box_rows(shape: tuple[int, ...]) -> np.ndarray:
    starts = _RANDOM.uniform(0.02, 0.5, (shape[0], 2))
    return np.concatenate([starts, starts + _RANDOM.uniform(0.1, 0.45, (shape[0], 2))], axis=1).astype(np.float32)


def _tones(shape: tuple[int, ...]) -> np.ndarray:
    time = np.arange(shape[0]) / 16000
    tone = sum(
        np.sin(2 * np.pi * f * time + p)
        for f, p in zip(_RANDOM.uniform(80, 4000, 4), _RANDOM.uniform(0, 6, 4), strict=True)
    )
    return (0.2 * tone + _RANDOM.normal(0, 0.01, shape[0])).astype(np.float32)


def _encoded(extension: str) -> Data:
    pictures = [drawn_photo(24 + 8 * number, 40, number) for number in range(SAMPLES + 1)]
    return Data([cv2.imencode(extension, picture[..., ::-1])[1].reshape(-1) for picture in pictures])


def _sound() -> Data:
    def encode(sound: np.ndarray) -> np.ndarray:
        file = io.BytesIO()
        with wave.open(file, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(16000)
            out.writeframes((sound * 20000).clip(-32768, 32767).astype("<i2").tobytes())
        return np.frombuffer(file.getvalue(), np.uint8)

    _restart("sound")
    return Data([encode(_tones((800 + 100 * number,))) for number in range(SAMPLES + 1)])


def _film(path: Path, frames: np.ndarray) -> None:
    """Write a Motion JPEG film, which every decoder knows: BGR frames ``[F, H, W, 3]``."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 25.0, frames.shape[2:0:-1])
    for frame in frames:
        writer.write(frame)
    writer.release()


def _films() -> Data:
    """Encode films of one size and one of another."""
    encoded = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.avi"
        for number in range(SAMPLES + 1):
            frames = [drawn_photo(32, 48 + 16 * (number == SAMPLES), 7 * number + frame) for frame in range(6)]
            _film(path, np.stack(frames))
            encoded.append(np.frombuffer(path.read_bytes(), np.uint8))
    return Data(encoded)


def _film_files(folder: Path) -> Mapping[str, Any]:
    """Write films of different lengths; return their names and labels."""
    paths = [folder / f"film{number}.avi" for number in range(3)]
    for number, path in enumerate(paths):
        if not path.exists():
            _film(path, np.stack([drawn_photo(32, 48, 9 * number + frame) for frame in range(6 + number)]))
    return {"filenames": [str(path) for path in paths], "labels": [3, 1, 2], "sequence_length": 3}


def _picture_folders(folder: Path) -> Mapping[str, Any]:
    """Write films as folders of pictures."""
    for film, count in enumerate((5, 4)):
        place = folder / "taken apart" / f"film{film}"
        place.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            cv2.imwrite(str(place / f"{number}.png"), drawn_photo(20, 24, 10 * film + number))
    return {"file_root": str(folder / "taken apart"), "sequence_length": 3}


def _numpy_files() -> Data:
    def encode(array: np.ndarray) -> np.ndarray:
        file = io.BytesIO()
        np.save(file, array)
        return np.frombuffer(file.getvalue(), np.uint8)

    return Data([encode(sample) for sample in FLOATS.samples])


def _voiced(sound: np.ndarray) -> np.ndarray:
    """Silence, sound, silence."""
    return np.where((np.arange(len(sound)) // 500) % 7 == 3, sound, sound * np.float32(1e-4)).astype(np.float32)


def _lz4(array: np.ndarray) -> np.ndarray:
    """One LZ4 block that repeats nothing."""
    data = array.tobytes()
    more = len(data) - 15
    head = [0xF0, *[255] * (more // 255), more % 255]
    return np.frombuffer(bytes(head) + data, np.uint8)


def _invert(out: np.ndarray, x: np.ndarray) -> None:
    out[:] = 255 - x


def _folder(folder: Path) -> Mapping[str, Any]:
    write_photo_folder(folder, images_per_class=2, longest_side=40)
    return {"file_root": str(folder)}


def _numbers(values: Any, dtype: Any = np.float32) -> Each:
    return Each([np.asarray(value, dtype) for value in values])


PHOTOS = Data([drawn_photo(28, 36, number) for number in range(SAMPLES)] + [drawn_photo(35, 21, SAMPLES)], "HWC")
VIDEO = _data(_bytes, (4, 12, 16, 3), (3, 10, 14, 3), "FHWC")
FLOATS = _data(_floats, (6, 7), (5, 9))
UNITS = _data(_unit, (6, 7), (5, 9))
NUMBERS = _data(_floats, (), ())
LABELS = _data(_labels, (7,), (4,))
SCALAR_LABELS = _data(_labels, (), ())
MASKS = _data(_labels, (12, 14, 1), (10, 9, 1), "HWC")
BOXES = _data(_box_rows, (5, 4), (3, 4))
POINTS = _data(_floats, (8, 2), (6, 2))
TRANSFORMS = _data(_floats, (2, 3), (2, 3))
SOUND = _data(_tones, (4000,), (3300,))
SPECTRA = _data(lambda shape: np.abs(_floats(shape)) + 0.1, (65, 20), (65, 31), "ft")
JPEGS = _encoded(".jpg")
PNGS = _encoded(".png")
WAVES = _sound()
ANGLES = _numbers([0, 30, -45.5, 90, 200, 10])
SIGNS = _numbers([1, 0, 1, 1, 0, 1], np.int32)
FACTORS = _numbers([1, 0.4, 1.7, 0, 1.1, 0.9])
POSITIVE = _numbers([1, 0.4, 1.7, 0.2, 1.1, 0.9])

BOX_LABELS = Data([np.arange(1, 1 + len(boxes), dtype=np.int32) for boxes in BOXES.samples])
DEFLATED = Data([_lz4(sample) for sample in FLOATS.samples])
SHAPES = Each([np.array(sample.shape, np.int32) for sample in FLOATS.samples])
PATHS = Data([np.frombuffer(str(Path(__file__).with_name(name)).encode(), np.uint8) for name in _NEIGHBOURS])
FILMS = _films()
NUMPY_FILES = _numpy_files()
SPEECH = Data([_voiced(sample) for sample in SOUND.samples])
MOSAICS = _data(_bytes, (20, 24), (18, 22), "HW")
MAPS = _data(lambda shape: np.abs(_floats(shape)) % 20, (28, 36), (35, 21), "HW")
SIZES = Data([np.array(photo.shape[:2], np.int64) for photo in PHOTOS.samples])
WINDOWS = _data(lambda shape: _unit(shape) / 9, (3, 3), (5, 3), "HW")
OBJECTS = _data(_labels, (12, 14), (10, 9), "HW")
MASK_NUMBERS = Data([np.array([2, 0], np.int32)] * (SAMPLES + 1))
POLYGONS = Data([np.array([[0, 0, 3], [1, 3, 7], [2, 7, 10]], np.int32)] * (SAMPLES + 1))
VERTICES = _data(_floats, (10, 2), (10, 2))

_NO_CPU = "DALI has it for GPUs only"
_OUTSIDE = "DALI has no such function: users write it as an expression"
_BATCH = "looks at the other samples of the batch"
_DRAWN = "random numbers of its own"
_NO_READER = "DALI has no such reader"
_FILES_TELL = "the files say their type"


def _reader(name: str, not_beside_dali: str = "", known_late: str = "", **changes: Any) -> Case:
    """A reader on the data that its own tests use."""

    def arguments(folder: Path) -> dict[str, Any]:
        data = folder.with_name(f"{folder.name}-{name}")  # beside it: another reader's classes are its folders
        if data not in _written:
            data.mkdir()
            _written[data] = DATASETS[name](data, SAMPLES)
        given = {key: value(dalify) if callable(value) else value for key, value in _written[data].items()}
        return {key: value for key, value in {**given, **changes}.items() if value is not None}

    return _case(
        arguments=arguments,
        not_sample_by_sample="each run reads the next entries",
        not_beside_dali=not_beside_dali,
        known_late=known_late,
    )


_written: dict[Path, dict[str, Any]] = {}

_CODE = "holds a Python function"

CASES: dict[str, Case] = {
    "arithmetic": _case(PHOTOS, PHOTOS, function="add", not_beside_dali=_OUTSIDE),
    "tensor_subscript": _case(PHOTOS, items=(("slice", 2, None, 3), ("at", 1)), not_beside_dali=_OUTSIDE),
    "external_source": _case(
        source=lambda: PHOTOS.samples[:SAMPLES],
        layout="HWC",
        not_serialised=_CODE,
        not_sample_by_sample="its source gives the batch",
    ),
    "batch_permutation": _case(not_beside_dali=_DRAWN, not_sample_by_sample=_BATCH),
    "permute_batch": _case(PHOTOS, indices=_numbers([4, 3, 1, 0, 2, 2], np.int32), not_sample_by_sample=_BATCH),
    "python_function": _case(FLOATS, function=lambda x: x * 2, not_serialised=_CODE),
    "dl_tensor_python_function": _case(FLOATS, function=lambda xs: xs, not_serialised=_CODE),
    "experimental.numba_function": _case(
        PHOTOS,
        run_fn=_invert,
        out_types=[types.UINT8],
        in_types=[types.UINT8],
        outs_ndim=[3],
        ins_ndim=[3],
        not_serialised=_CODE,
        not_beside_dali="its experimental plugin is optional",
    ),
    "experimental.readers.video": _case(
        arguments=_film_files, not_sample_by_sample="each run reads the next sequences"
    ),
    "readers.sequence": _case(arguments=_picture_folders, not_sample_by_sample="each run reads the next sequences"),
    "readers.video": _case(
        arguments=_film_files, not_sample_by_sample="each run reads the next sequences", not_beside_dali=_NO_CPU
    ),
    "readers.video_resize": _case(
        arguments=lambda folder: {**_film_files(folder), "size": [20, 30]},
        not_sample_by_sample="each run reads the next sequences",
        not_beside_dali=_NO_CPU,
    ),
    "experimental.readers.fits": _reader("experimental.readers.fits", not_beside_dali="it wants a GPU there"),
    "readers.arrow": _reader("readers.arrow", not_beside_dali=_NO_READER, known_late=_FILES_TELL),
    "readers.caffe": _reader("readers.caffe"),
    "readers.caffe2": _reader("readers.caffe2", label_type=4, additional_inputs=0, bbox=False),
    "readers.coco": _reader("readers.coco"),
    "readers.dataset": _case(
        dataset=list(zip(PHOTOS.samples, range(len(PHOTOS.samples)), strict=True)),
        not_beside_dali=_NO_READER,
        known_late="only the items tell",
        not_sample_by_sample="each run reads the next items",
    ),
    "readers.file": _case(arguments=_folder, not_sample_by_sample="each run reads the next files"),
    "readers.hdf5": _reader("readers.hdf5", not_beside_dali=_NO_READER, known_late=_FILES_TELL),
    "readers.mxnet": _reader("readers.mxnet"),
    "readers.nemo_asr": _reader("readers.nemo_asr"),
    "readers.numpy": _reader("readers.numpy", roi_start=[1], roi_axes=[0], known_late=_FILES_TELL),
    "readers.parquet": _reader("readers.parquet", not_beside_dali=_NO_READER, known_late=_FILES_TELL),
    "readers.tfrecord": _reader("readers.tfrecord", not_beside_dali="declarations of features are objects of its own"),
    "readers.webdataset": _reader("readers.webdataset", dtypes=None),
    "readers.zarr": _reader("readers.zarr", not_beside_dali=_NO_READER, known_late=_FILES_TELL),
    # decoders
    "decoders.audio": _float(WAVES),
    "decoders.image": _image(JPEGS, share=0.02),
    "decoders.image_crop": _image(JPEGS, crop=[16, 20], share=0.02),
    "decoders.image_random_crop": _case(JPEGS, not_beside_dali=_DRAWN),
    "decoders.image_slice": _image(JPEGS, rel_start=[0.1, 0.2], rel_end=[0.7, 0.8], axis_names="HW", share=0.02),
    "decoders.inflate": _case(DEFLATED, shape=SHAPES, dtype=types.FLOAT, algorithm="LZ4", not_beside_dali=_NO_CPU),
    "decoders.numpy": _case(NUMPY_FILES, dtype=types.FLOAT),
    "io.file.read": _case(PATHS),
    "decoders.video": _case(FILMS, frames=[4, 0, 7, 4]),
    "dump_image": _case(PHOTOS, suffix="case"),
    "peek_image_shape": _case(PNGS),
    # audio
    "audio_resample": _float(SOUND, in_rate=16000.0, out_rate=11025.0),
    "mel_filter_bank": _float(SPECTRA, nfilter=20, sample_rate=16000.0),
    "mfcc": _float(SPECTRA, n_mfcc=12, lifter=22.0),
    "nonsilent_region": _case(SPEECH, cutoff_db=-30.0, window_length=64, reset_interval=256),
    "power_spectrum": _float(SOUND, nfft=4096),
    "preemphasis_filter": _float(SOUND, preemph_coeff=_numbers([0.9, 0.5, 0, 0.97, 0.3, 0.8])),
    "spectrogram": _float(SOUND, nfft=256, window_length=200, window_step=100),
    "to_decibels": _float(SPECTRA, cutoff_db=-60.0),
    # boxes, points, matrices
    "bbox_rotate": _float(BOXES, angle=ANGLES, input_shape=[28, 36]),
    "box_encoder": _float(BOXES, BOX_LABELS, anchors=_anchors(40), offset=True, stds=[0.1, 0.1, 0.2, 0.2]),
    "random_bbox_crop": _case(BOXES, BOX_LABELS, thresholds=[0.1, 0.5], scaling=[0.3, 1.0], not_beside_dali=_DRAWN),
    "bb_flip": _float(BOXES, horizontal=SIGNS, vertical=1, ltrb=True),
    "bbox_paste": _float(BOXES, ratio=2.5, paste_x=0.25, ltrb=True),
    "coord_flip": _float(POINTS, layout="xy"),
    "coord_transform": _float(POINTS, M=[0.5, 2.0, -1.0, 3.0], T=[10.0, -5.0]),
    "transforms.combine": _float(TRANSFORMS, TRANSFORMS),
    "transforms.crop": _float(from_start=[10.0, 20.0], from_end=[110.0, 90.0], to_start=[0.0, 0.0], to_end=[1.0, 1.0]),
    "transforms.rotation": _float(angle=ANGLES, center=[5.0, 7.0]),
    "transforms.scale": _float(scale=[2.0, 0.5], center=[5.0, 7.0]),
    "transforms.shear": _float(shear=[0.2, -0.1], center=[5.0, 7.0]),
    "transforms.translation": _float(offset=[3.0, -4.0]),
    # colour
    "brightness": _image(PHOTOS, brightness=FACTORS, brightness_shift=0.1),
    "brightness_contrast": _image(PHOTOS, brightness=FACTORS, contrast=1.3),
    "color_space_conversion": _image(PHOTOS, image_type=types.RGB, output_type=types.YCbCr),
    "color_twist": _image(PHOTOS, hue=ANGLES, saturation=FACTORS, brightness=1.1, contrast=0.8),
    "contrast": _image(PHOTOS, contrast=FACTORS),
    "hsv": _image(PHOTOS, hue=ANGLES, saturation=FACTORS, value=1.2),
    "hue": _image(PHOTOS, hue=ANGLES),
    "saturation": _image(PHOTOS, saturation=FACTORS),
    "clahe": _image(PHOTOS, tiles_x=2, tiles_y=3, clip_limit=2.0),
    "debayer": _image(MOSAICS, blue_position=[0, 1], algorithm="bilinear_ocv"),
    "equalize": _case(PHOTOS),
    "lookup_table": _case(MASKS, keys=[0, 2, 3], values=[0.5, 7.0, -1.0], default_value=9.0),
    # geometry
    "crop": _case(PHOTOS, crop=[16, 20], crop_pos_x=0.25, crop_pos_y=_numbers([0, 0.2, 0.5, 0.7, 1, 0.5])),
    "crop_mirror_normalize": _float(
        PHOTOS, crop=[16, 20], mirror=SIGNS, mean=[120.0, 110.0, 100.0], std=[60.0, 61.0, 62.0]
    ),
    "flip": _case(PHOTOS, horizontal=SIGNS, vertical=1),
    "experimental.remap": _image(PHOTOS, MAPS, MAPS, not_beside_dali=_NO_CPU),
    "experimental.resize": _image(PHOTOS, size=[20, 47], not_beside_dali=_NO_CPU),
    "experimental.warp_perspective": _image(
        PHOTOS, matrix=[0.9, 0.2, -3.0, -0.1, 1.1, 2.0, 0.001, 0.002, 1.0], fill_value=[9.0]
    ),
    "multi_paste": _case(
        PHOTOS,
        PHOTOS,
        output_size=[50, 60],
        out_anchors=_numbers([[[0, 0], [14, 20]]] * 6, np.int32),
        shapes=_numbers([[[20, 20], [16, 18]]] * 6, np.int32),
    ),
    "pad": _case(PHOTOS, axis_names="HW", fill_value=3.0, align=[16], not_sample_by_sample=_BATCH),
    "paste": _case(PHOTOS, ratio=1.6, paste_x=0.3, fill_value=[10, 20, 30]),
    "random_crop_generator": _case(SIZES, not_beside_dali=_DRAWN),
    "random_resized_crop": _image(PHOTOS, size=[16, 18], not_beside_dali=_DRAWN),
    "resize": _image(PHOTOS, size=[20, 47]),
    "resize_crop_mirror": _image(PHOTOS, resize_shorter=24.0, crop=[20, 18], mirror=SIGNS),
    "roi_random_crop": _case(
        crop_shape=[10, 12], roi_start=[2, 3], roi_end=[20, 30], in_shape=[28, 36], not_beside_dali=_DRAWN
    ),
    "rotate": _image(PHOTOS, angle=ANGLES, fill_value=7.0),
    "slice": _case(PHOTOS, rel_start=[0.1, 0.2], rel_end=[0.7, 0.9], axis_names="HW"),
    "tensor_resize": _image(PHOTOS, sizes=[20.0, 47.0], axes=[0, 1]),
    "warp_affine": _image(PHOTOS, matrix=[0.9, 0.2, -3.0, -0.1, 1.1, 2.0], fill_value=9.0),
    # filters and noise
    "erase": _case(PHOTOS, anchor=[3.0, 5.0], shape=[8.0, 9.0], axis_names="HW", fill_value=[1.0, 2.0, 3.0]),
    "experimental.dilate": _case(PHOTOS, mask_size=[3, 5], not_beside_dali=_NO_CPU),
    "experimental.erode": _case(PHOTOS, mask_size=[3, 5], not_beside_dali=_NO_CPU),
    "experimental.median_blur": _case(PHOTOS, window_size=[3, 3], not_beside_dali=_NO_CPU),
    "filter": _image(PHOTOS, WINDOWS),
    "gaussian_blur": _image(PHOTOS, sigma=_numbers([0.5, 1, 1.5, 2, 0.8, 1.2])),
    "grid_mask": _case(PHOTOS, tile=9, ratio=0.4, angle=0.3),
    "jitter": _case(PHOTOS, nDegree=3, not_beside_dali=_NO_CPU),
    "jpeg_compression_distortion": _image(PHOTOS, quality=_numbers([5, 20, 50, 80, 100, 40], np.int32), share=0.02),
    "laplacian": _image(PHOTOS, window_size=5, normalized_kernel=True),
    "noise.gaussian": _case(PHOTOS, stddev=20.0, not_beside_dali=_DRAWN),
    "noise.salt_and_pepper": _case(PHOTOS, prob=0.2, not_beside_dali=_DRAWN),
    "noise.shot": _case(PHOTOS, factor=5.0, not_beside_dali=_DRAWN),
    "sphere": _case(PHOTOS, mask=SIGNS, fill_value=7.0),
    # Sines in float32 are not the same to the last bit, which may choose another neighbour.
    "water": _image(PHOTOS, share=0.02, ampl_x=4.0, freq_y=0.3, mask=SIGNS),
    # masks, sequences
    "optical_flow": _float(VIDEO, not_beside_dali=_NO_CPU),
    "segmentation.random_mask_pixel": _case(MASKS, foreground=SIGNS, not_beside_dali=_DRAWN),
    "segmentation.random_object_bbox": _case(OBJECTS, foreground_prob=0.8, not_beside_dali=_DRAWN),
    "segmentation.select_masks": _case(MASK_NUMBERS, POLYGONS, VERTICES, reindex_masks=True),
    # random numbers
    "random.beta": _case(alpha=2.0, beta=POSITIVE, shape=[3, 4], not_beside_dali=_DRAWN),
    "random.choice": _case(FLOATS, not_beside_dali=_DRAWN),
    "random.coin_flip": _case(shape=[10], not_beside_dali=_DRAWN),
    "random.normal": _case(mean=3.0, stddev=2.0, shape=[10], not_beside_dali=_DRAWN),
    "random.uniform": _case(range=[2.0, 5.0], shape=[10], not_beside_dali=_DRAWN),
    # tensors
    "cast": _case(FLOATS, dtype=types.INT16),
    "cast_like": _case(FLOATS, LABELS),
    "cat": _case(PHOTOS, PHOTOS, axis_name="W"),
    "constant": _case(fdata=[1.0, 2.0, 3.5], shape=[3], layout="C"),
    "copy": _case(PHOTOS),
    "element_extract": _case(VIDEO, element_map=[2, 0]),
    "expand_dims": _case(PHOTOS, axes=[0], new_axis_names="F"),
    "full": _case(NUMBERS, shape=[2, 3]),
    "full_like": _case(PHOTOS, NUMBERS),
    "get_property": _case(PHOTOS, key="layout"),
    "normalize": _float(PHOTOS, axis_names="HW", shift=2.0, scale=3.0),
    "one_hot": _case(LABELS, num_classes=4, on_value=2.0, known_late="single numbers have another result"),
    "ones": _case(shape=[2, 3], layout="XY"),
    "ones_like": _case(PHOTOS, dtype=types.FLOAT),
    "per_frame": _case(FLOATS),
    "reductions.max": _case(PHOTOS, axis_names="HW"),
    "reductions.mean": _float(PHOTOS, axis_names="HW"),
    "reductions.mean_square": _float(PHOTOS, axis_names="HW"),
    "reductions.min": _case(FLOATS, axes=[1], keep_dims=True),
    "reductions.rms": _float(PHOTOS, axis_names="HW"),
    "reductions.std_dev": _float(PHOTOS, NUMBERS),
    "reductions.sum": _case(PHOTOS, axis_names="HW"),
    "reductions.variance": _float(PHOTOS, NUMBERS, ddof=1),
    "reinterpret": _case(FLOATS, shape=[-1], dtype=types.INT16),
    "reshape": _case(PHOTOS, src_dims=[1, 0, 2], layout="WHC"),
    "sequence_rearrange": _case(VIDEO, new_order=[2, 0, 0, 1]),
    "shapes": _case(PHOTOS),
    "squeeze": _case(MASKS, axis_names="C"),
    "stack": _case(FLOATS, FLOATS, axis=1),
    "transpose": _case(PHOTOS, perm=[2, 0, 1]),
    "zeros": _case(shape=[2, 3], dtype=types.UINT8),
    "zeros_like": _case(PHOTOS),
}
