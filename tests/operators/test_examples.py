"""The example of every docstring runs in a pipeline, with data under the names that examples use."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import fn, math, types
from dalify.graph import DataNode
from dalify.registry import catalog
from docs.docstrings import documentation_of
from tests.helpers.photos import drawn_photo, encode_image, write_photo_folder
from tests.operators.battery.run_case import NAMES

BATCH = 4  # batch size of the examples
_RANDOM = np.random.default_rng(5)


def _jpeg() -> np.ndarray:
    return np.frombuffer(encode_image(PHOTO, "JPEG"), np.uint8)


PHOTO = drawn_photo(300, 320, 1)
BOXES = np.array([[0.1, 0.2, 0.5, 0.6], [0.3, 0.3, 0.9, 0.8]], np.float32)
AUDIO = _RANDOM.normal(0, 0.1, 16000).astype(np.float32)
SPECTRUM = np.abs(_RANDOM.normal(1, 0.3, (257, 40))).astype(np.float32)
MAP = _RANDOM.uniform(0, 299, (60, 80)).astype(np.float32)
POLYGONS = np.array([[0, 0, 3], [1, 3, 7]], np.int32)

NUMPY_FILE = io.BytesIO()
np.save(NUMPY_FILE, AUDIO)

# What examples call their data, with the layout.
DATA: dict[str, tuple[np.ndarray, str]] = {
    "after": (PHOTO, "HWC"),
    "audio": (AUDIO, ""),
    "before": (PHOTO, "HWC"),
    "box": (np.array([20, 30, 280, 290], np.int64), ""),
    "boxes": (BOXES, ""),
    "chosen": (np.array([1], np.int32), ""),
    "clips": (np.stack([PHOTO[:64, :80]] * 3), "FHWC"),
    "contents": (np.frombuffer(NUMPY_FILE.getvalue(), np.uint8), ""),
    "encoded": (_jpeg(), ""),
    "files": (_jpeg(), ""),
    "frames": (AUDIO[:400], ""),
    "gray": (PHOTO[..., :1].copy(), "HWC"),
    "data": (np.zeros(9, np.uint8), ""),
    "images": (PHOTO, "HWC"),
    "int32": (np.arange(6, dtype=np.int32), ""),
    "jpegs": (_jpeg(), ""),
    "labels": (np.array([3, 5], np.int32), ""),
    "left": (PHOTO, "HWC"),
    "mapx": (MAP, "HW"),
    "mapy": (MAP, "HW"),
    "masks": (_RANDOM.integers(0, 2, (40, 50, 1)).astype(np.int32), "HWC"),
    "mel": (SPECTRUM, "ft"),
    "mosaics": (PHOTO[..., 0].copy(), "HW"),
    "noise": (_RANDOM.normal(0, 9, (300, 320, 3)).astype(np.float32), "HWC"),
    "paths": (np.frombuffer(b"photos/cat/000.jpg", np.uint8), ""),
    "points": (_RANDOM.uniform(0, 1, (5, 2)).astype(np.float32), ""),
    "polygons": (POLYGONS, ""),
    "rate": (np.array(8000, np.float32), ""),
    "right": (PHOTO, "HWC"),
    "sequence": (np.stack([PHOTO] * 4), "FHWC"),
    "shapes": (np.array([2, 2, 3], np.int32), ""),
    "sizes": (np.array([4, 5], np.int32), ""),
    "sigmas": (np.array([0.5, 1, 1.5, 2], np.float32), ""),
    "sound": (AUDIO, ""),
    "spectrum": (SPECTRUM, "ft"),
    "vertices": (_RANDOM.uniform(0, 1, (7, 2)).astype(np.float32), ""),
    "video": (np.stack([PHOTO] * 4), "FHWC"),
    "volumes": (np.stack([PHOTO[:30, :40]] * 4), "DHWC"),
    "x": (np.arange(6, dtype=np.float32), ""),
}
PLAIN: dict[str, Any] = {
    "videos": ["video.mp4"],
    "anchors": [0.1, 0.1, 0.5, 0.5, 0.3, 0.2, 0.8, 0.9],
    "datasets": SimpleNamespace(load_dataset=lambda *_, **__: "cats.arrow"),
    "cifar": [(PHOTO[:32, :32], 3)] * 20,
    "fn": fn,
    "math": math,
    "np": np,
    "types": types,
}


def _source(array: np.ndarray, layout: str) -> DataNode:
    return fn.external_source(source=lambda: [array] * BATCH, layout=layout or None)


def _reads_other_files(program: str) -> bool:
    return ("readers." in program and '"photos"' not in program) or "video(" in program or "inflate(" in program


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph of the example is built, and also run if it reads no files but the photographs written here."""
    program = documentation_of(catalog.find(name).doc).example
    assert program
    monkeypatch.chdir(tmp_path)
    write_photo_folder(tmp_path / "photos", images_per_class=2)
    code = compile(program, f"example of {name}", "exec")
    pipe = dalify.Pipeline(batch_size=BATCH, num_threads=1, device_id=None, prefetch_queue_depth=1)
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    with pipe:
        names = {**PLAIN, **{item: _source(*DATA[item]) for item in code.co_names if item in DATA}}
        exec(code, names)
        made = [value for value in names.values() if isinstance(value, DataNode)]
        nodes = [value.cpu() if value.device == "gpu" else value for value in made]
        assert nodes or "dump" in name
        pipe.set_outputs(*nodes)
    if _reads_other_files(program):
        return
    pipe.build()
    pipe.run()
    pipe.close()
