"""The data of the cases: images, recordings, boxes, encoded files. Five samples of one shape, and an odd one."""

from __future__ import annotations

import io
import tempfile
import wave
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from tests.helpers.photos import drawn_photo, write_photo_folder
from tests.operators.battery.case import SAMPLES, Data, Each, each

_NEIGHBOURS = ["case.py", "run_case.py", "test_battery.py", "variants.py", "data.py", "record.py"]
_RANDOM = np.random.default_rng(7)


def _restart(seed: str) -> None:
    """Restart the random numbers, so that recorded results remain valid if data are added before or after."""
    _RANDOM.bit_generator.state = np.random.default_rng(zlib.crc32(seed.encode())).bit_generator.state


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


def anchors(count: int) -> list[float]:
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


def encoded(extension: str) -> Data:
    images = [drawn_photo(24 + 8 * number, 40, number) for number in range(SAMPLES + 1)]
    return Data([cv2.imencode(extension, image[..., ::-1])[1].reshape(-1) for image in images])


def _audio() -> Data:
    def encode(audio: np.ndarray) -> np.ndarray:
        file = io.BytesIO()
        with wave.open(file, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(16000)
            out.writeframes((audio * 20000).clip(-32768, 32767).astype("<i2").tobytes())
        return np.frombuffer(file.getvalue(), np.uint8)

    _restart("sound")
    return Data([encode(_tones((800 + 100 * number,))) for number in range(SAMPLES + 1)])


def _video(path: Path, frames: np.ndarray) -> None:
    """Write a Motion JPEG video, which every decoder supports: BGR frames ``[F, H, W, 3]``."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 25.0, frames.shape[2:0:-1])
    for frame in frames:
        writer.write(frame)
    writer.release()


def _videos() -> Data:
    """Encode videos of one size and one of another."""
    encoded = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.avi"
        for number in range(SAMPLES + 1):
            frames = [drawn_photo(32, 48 + 16 * (number == SAMPLES), 7 * number + frame) for frame in range(6)]
            _video(path, np.stack(frames))
            encoded.append(np.frombuffer(path.read_bytes(), np.uint8))
    return Data(encoded)


def video_files(folder: Path) -> Mapping[str, Any]:
    """Write videos of different lengths; return their names and labels."""
    paths = [folder / f"film{number}.avi" for number in range(3)]
    for number, path in enumerate(paths):
        if not path.exists():
            _video(path, np.stack([drawn_photo(32, 48, 9 * number + frame) for frame in range(6 + number)]))
    return {"filenames": [str(path) for path in paths], "labels": [3, 1, 2], "sequence_length": 3}


def image_folders(folder: Path) -> Mapping[str, Any]:
    """Write videos as folders of images."""
    for video, count in enumerate((5, 4)):
        place = folder / "taken apart" / f"film{video}"
        place.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            cv2.imwrite(str(place / f"{number}.png"), drawn_photo(20, 24, 10 * video + number))
    return {"file_root": str(folder / "taken apart"), "sequence_length": 3}


def _numpy_files() -> Data:
    def encode(array: np.ndarray) -> np.ndarray:
        file = io.BytesIO()
        np.save(file, array)
        return np.frombuffer(file.getvalue(), np.uint8)

    return Data([encode(sample) for sample in FLOATS.samples])


def _voiced(audio: np.ndarray) -> np.ndarray:
    """Silence, a signal, silence."""
    return np.where((np.arange(len(audio)) // 500) % 7 == 3, audio, audio * np.float32(1e-4)).astype(np.float32)


def _lz4(array: np.ndarray) -> np.ndarray:
    """Return one LZ4 block of literals, without matches."""
    data = array.tobytes()
    more = len(data) - 15
    head = [0xF0, *[255] * (more // 255), more % 255]
    return np.frombuffer(bytes(head) + data, np.uint8)


def invert(out: np.ndarray, x: np.ndarray) -> None:
    out[:] = 255 - x


def photo_folder(folder: Path) -> Mapping[str, Any]:
    write_photo_folder(folder, images_per_class=2, longest_side=40)
    return {"file_root": str(folder)}


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
AUDIO = _data(_tones, (4000,), (3300,))
SPECTRA = _data(lambda shape: np.abs(_floats(shape)) + 0.1, (65, 20), (65, 31), "ft")
JPEGS = encoded(".jpg")
PNGS = encoded(".png")
WAVES = _audio()
ANGLES = each([0, 30, -45.5, 90, 200, 10])
SIGNS = each([1, 0, 1, 1, 0, 1], np.int32)
FACTORS = each([1, 0.4, 1.7, 0, 1.1, 0.9])
POSITIVE = each([1, 0.4, 1.7, 0.2, 1.1, 0.9])
BOX_LABELS = Data([np.arange(1, 1 + len(boxes), dtype=np.int32) for boxes in BOXES.samples])
DEFLATED = Data([_lz4(sample) for sample in FLOATS.samples])
SHAPES = Each([np.array(sample.shape, np.int32) for sample in FLOATS.samples])
PATHS = Data([np.frombuffer(str(Path(__file__).with_name(name)).encode(), np.uint8) for name in _NEIGHBOURS])
VIDEOS = _videos()
NUMPY_FILES = _numpy_files()
SPEECH = Data([_voiced(sample) for sample in AUDIO.samples])
MOSAICS = _data(_bytes, (20, 24), (18, 22), "HW")
MAPS = _data(lambda shape: np.abs(_floats(shape)) % 20, (28, 36), (35, 21), "HW")
SIZES = Data([np.array(photo.shape[:2], np.int64) for photo in PHOTOS.samples])
WINDOWS = _data(lambda shape: _unit(shape) / 9, (3, 3), (5, 3), "HW")
OBJECTS = _data(_labels, (12, 14), (10, 9), "HW")
MASK_NUMBERS = Data([np.array([2, 0], np.int32)] * (SAMPLES + 1))
POLYGONS = Data([np.array([[0, 0, 3], [1, 3, 7], [2, 7, 10]], np.int32)] * (SAMPLES + 1))
VERTICES = _data(_floats, (10, 2), (10, 2))
