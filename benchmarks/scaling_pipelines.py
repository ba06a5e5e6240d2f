"""Define the pipelines of the scaling benchmark, each with an equivalent for torch's DataLoader."""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.common import Contender, Options, missing_package, photo_folder
from benchmarks.resnet_validation import validation
from benchmarks.speech import BATCH_SIZE as SPEECH_BATCH
from benchmarks.speech import as_flac, log_mel
from benchmarks.torch_loader import PhotoDataset, run_data_loader, training_transform, validation_transform
from benchmarks.training_pipeline import BATCH_SIZE, DEVIATION, MEAN, training
from tests.helpers.torchvision_import import import_torchvision
from tutorials.recordings import make_recordings

SSD_SIZE = 300
SSD_BATCH = 32
COLOR_BATCH = 32
VOLUME_BATCH = 8
VOLUME_CROP = (64, 96, 96)
VOLUME_SIZE = (64, 64, 64)


@dataclass(frozen=True)
class Workload:
    """A pipeline to measure.

    Attributes:
        title: title of its table.
        unit: unit of its figures.
        define: function of a library (see `benchmarks.common.library`) and `num_threads` that returns a pipeline.
        make_dataset: returns an equivalent torch Dataset.
        batch_size: number of samples in a batch.
        needs: packages that the torch Dataset needs.
    """

    title: str
    unit: str
    define: Callable[..., Any]
    make_dataset: Callable[[], Any]
    batch_size: int
    needs: tuple[str, ...] = ("torch", "torchvision")

    def loader(self, workers: int) -> Contender:
        """Return torch's DataLoader as a contender."""
        name = f"torch DataLoader, {workers} worker{'s' * (workers > 1)}"
        open_loader = partial(run_data_loader, self.make_dataset, self.batch_size, workers, collate=_first_column)
        return Contender(name, open_loader, self.needs, is_in_process=False)


def _first_column(samples: list[Any]) -> tuple[list[Any], None]:
    """Return stacked images; boxes cannot be stacked, because their number varies."""
    import torch  # imported only for its row

    return torch.stack([sample[0] for sample in samples]), None  # pyright: ignore[reportReturnType]


# -- images
# -----------------------------------------------------------------------------------------------------------------


def _color(lib: SimpleNamespace, folder: str, num_threads: int) -> Any:
    """Define a pipeline that changes the color of photographs, blurs and rotates them, and resizes them at the end."""
    fn, types = lib.fn, lib.types

    @lib.pipeline_def(batch_size=COLOR_BATCH, num_threads=num_threads, device_id=None, seed=1)
    def pipeline():
        encoded, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="photos")
        images = fn.decoders.image(encoded, output_type=types.RGB)
        images = fn.color_twist(
            images,
            brightness=fn.random.uniform(range=[0.7, 1.3]),
            contrast=fn.random.uniform(range=[0.7, 1.3]),
            saturation=fn.random.uniform(range=[0.7, 1.3]),
            hue=fn.random.uniform(range=[-20.0, 20.0]),
        )
        images = fn.gaussian_blur(images, sigma=fn.random.uniform(range=[0.5, 2.0]))
        images = fn.rotate(images, angle=fn.random.uniform(range=[-30.0, 30.0]), keep_size=True, fill_value=0)
        return fn.resize(images, size=[224, 224]), labels

    return pipeline()


def _color_transform() -> Any:
    transforms = import_torchvision("torchvision.transforms")
    return transforms.Compose(
        [
            transforms.ColorJitter(0.3, 0.3, 0.3, 20 / 360),
            transforms.GaussianBlur(9, (0.5, 2.0)),
            transforms.RandomRotation(30, transforms.InterpolationMode.BILINEAR),
            transforms.Resize((224, 224)),
            transforms.PILToTensor(),
        ]
    )


def _ssd_anchors() -> list[float]:
    """Return the 8,732 default boxes of SSD300, relative corners."""
    boxes: list[tuple[float, float, float, float]] = []
    sizes = [21, 45, 99, 153, 207, 261, 315]
    for level, (cells, ratios) in enumerate(
        zip([38, 19, 10, 5, 3, 1], [[2], [2, 3], [2, 3], [2, 3], [2], [2]], strict=True)
    ):
        size, between = sizes[level] / 300, (sizes[level] * sizes[level + 1]) ** 0.5 / 300
        forms = [(size, size), (between, between)]
        for ratio in ratios:
            wide, high = size * ratio**0.5, size / ratio**0.5
            forms += [(wide, high), (high, wide)]
        for (y, x), (wide, high) in itertools.product(itertools.product(range(cells), repeat=2), forms):
            center_x, center_y = (x + 0.5) / cells, (y + 0.5) / cells
            boxes.append((center_x - wide / 2, center_y - high / 2, center_x + wide / 2, center_y + high / 2))
    return np.clip(np.array(boxes, np.float32), 0, 1).ravel().tolist()


def ssd(
    lib: SimpleNamespace,
    images_folder: str,
    annotations: str,
    num_threads: int,
    batch_size: int = SSD_BATCH,
    decoder: str = "cpu",
    device_id: int | None = None,
) -> Any:
    """Define SSD300 training as in NVIDIA's example; images are augmented on the device if there is a `device_id`."""
    fn, types = lib.fn, lib.types
    anchors = _ssd_anchors()

    @lib.pipeline_def(batch_size=batch_size, num_threads=num_threads, device_id=device_id, seed=1)
    def pipeline():
        encoded, boxes, labels = fn.readers.coco(
            file_root=images_folder, annotations_file=annotations, ratio=True, ltrb=True, random_shuffle=True
        )
        anchor, shape, boxes, labels = fn.random_bbox_crop(
            boxes,
            labels,
            aspect_ratio=[0.5, 2.0],
            thresholds=[0, 0.1, 0.3, 0.5, 0.7, 0.9],
            scaling=[0.3, 1.0],
            bbox_layout="xyXY",
            allow_no_crop=True,
            num_attempts=50,
        )
        images = fn.decoders.image_slice(encoded, anchor, shape, output_type=types.RGB, device=decoder)
        if device_id is not None and decoder == "cpu":
            images = images.gpu()
        images = fn.resize(images, size=[SSD_SIZE, SSD_SIZE])
        images = fn.color_twist(
            images,
            brightness=fn.random.uniform(range=[0.5, 1.5]),
            contrast=fn.random.uniform(range=[0.5, 1.5]),
            saturation=fn.random.uniform(range=[0.5, 1.5]),
            hue=fn.random.uniform(range=[-18.0, 18.0]),
        )
        is_mirrored = fn.random.coin_flip()
        boxes = fn.bb_flip(boxes, horizontal=is_mirrored, ltrb=True)
        images = fn.crop_mirror_normalize(
            images, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=DEVIATION, mirror=is_mirrored
        )
        boxes, labels = fn.box_encoder(boxes, labels, criteria=0.5, anchors=anchors)
        return (images, boxes, labels) if device_id is None else (images, boxes.gpu(), labels.gpu())

    return pipeline()


class BoxDataset:
    """COCO for torch's DataLoader, with torchvision's transforms of SSD on a device. Boxes are not encoded."""

    def __init__(self, folder: Path, annotations: Path, device: str = "cpu") -> None:
        self._device = device
        content = json.loads(annotations.read_text())
        boxes: dict[int, list[list[float]]] = {}
        for item in content["annotations"]:
            left, top, width, height = item["bbox"]
            boxes.setdefault(item["image_id"], []).append([left, top, left + width, top + height])
        self.entries = [
            (folder / image["file_name"], boxes[image["id"]]) for image in content["images"] if image["id"] in boxes
        ]
        v2 = import_torchvision("torchvision.transforms.v2")
        self._tv_tensors = import_torchvision("torchvision.tv_tensors")
        self._functional = v2.functional
        self._transform = v2.Compose(
            [
                v2.RandomIoUCrop(),
                v2.Resize((SSD_SIZE, SSD_SIZE)),
                v2.ColorJitter(0.5, 0.5, 0.5, 0.05),
                v2.RandomHorizontalFlip(),
                v2.ToDtype(importlib.import_module("torch").float32, scale=False),
                v2.Normalize(MEAN, DEVIATION),
            ]
        )

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, corners = self.entries[index]
        with Image.open(path) as image:
            pixels = self._tv_tensors.Image(self._functional.pil_to_tensor(image.convert("RGB")).to(self._device))
        options = {"format": "XYXY", "canvas_size": pixels.shape[-2:], "device": self._device}
        boxes = self._tv_tensors.BoundingBoxes(corners, **options)
        return self._transform(pixels, boxes)


def coco_files(options: Options) -> tuple[Path, Path]:
    """Return the folder of images and the annotations: next to the photographs of ``--data``, or generated."""
    if options.data is not None and (options.data.parent / "coco/instances.json").exists():
        folder = options.data.parent / "coco"
        return folder / "images", folder / "instances.json"
    photos = photo_folder(options)
    target = Path(f"out/{photos.name}.json")
    random = np.random.default_rng(1)
    images, annotations = [], []
    for number, path in enumerate(sorted(photos.glob("*/*.jpg"))):
        with Image.open(path) as image:
            width, height = image.size
        name = path.relative_to(photos).as_posix()
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        for _ in range(random.integers(1, 8)):
            left, top = random.uniform(0, 0.7, 2)
            wide, high = random.uniform(0.05, 0.3, 2)
            box = [left * width, top * height, wide * width, high * height]
            item = {"id": len(annotations), "image_id": number, "category_id": 1, "bbox": box, "iscrowd": 0}
            annotations.append({**item, "area": box[2] * box[3]})
    categories = [{"id": 1, "name": "thing"}]
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return photos, target


# -- audio
# ------------------------------------------------------------------------------------------------------------------


class _SpeechDataset:
    """FLAC files to log-mel spectrograms, for torch's DataLoader. Silence is not trimmed."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("**/*.flac"))
        self._soundfile = importlib.import_module("soundfile")
        self._torch = importlib.import_module("torch")
        self._window = self._torch.hann_window(400)
        frequencies = np.linspace(0, 8000, 257)
        edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 82) / 2595) - 1)
        rising = (frequencies - edges[:-2, None]) / np.diff(edges)[:-1, None]
        falling = (edges[2:, None] - frequencies) / np.diff(edges)[1:, None]
        filters = np.maximum(0, np.minimum(rising, falling)).astype(np.float32)
        self._filters = self._torch.from_numpy(filters)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        torch = self._torch
        audio = torch.from_numpy(self._soundfile.read(self.paths[index], dtype="float32")[0])
        audio = torch.cat([audio[:1], audio[1:] - 0.97 * audio[:-1]])
        spectrum = torch.stft(audio, 512, 160, 400, self._window, return_complex=True).abs() ** 2
        decibels = 10 * torch.log10((self._filters @ spectrum).clamp(min=1e-8))
        normal = (decibels - decibels.mean(1, keepdim=True)) / decibels.std(1, keepdim=True)
        return normal[:, :128], 0


def _speech_folder(options: Options) -> Path:
    if options.data is not None and (options.data.parent / "audio/flac").exists():
        return options.data.parent / "audio"
    count = 2 if options.is_smoke else 16
    waves = make_recordings(Path(f"out/speech_{count}"), recordings_per_word=count, seconds=2.5)
    return waves if missing_package(["soundfile"]) else as_flac(waves, Path(f"out/speech_{count}_flac"))


def _log_mel(lib: SimpleNamespace, folder: str, num_threads: int) -> Any:
    return log_mel(lib, folder, num_threads, file_filters=["*.flac"])


# -- volumes
# ----------------------------------------------------------------------------------------------------------------


def _volume_folder(options: Options) -> Path:
    """Write volumes of 32-bit floats with different depths, like medical scans."""
    count = 4 if options.is_smoke else 16
    folder = Path(f"out/volumes_{count}")
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1)
    for number in range(count):
        path = folder / f"{number:02d}.npy"
        if not path.exists():
            np.save(path, random.uniform(0, 4096, (72 + 4 * (number % 8), 128, 128, 1)).astype(np.float32))
    return folder


def _volumes(lib: SimpleNamespace, folder: str, num_threads: int) -> Any:
    """Define a pipeline with random crop, random scale, mirror, and contrast of volumes."""
    fn, types = lib.fn, lib.types

    @lib.pipeline_def(batch_size=VOLUME_BATCH, num_threads=num_threads, device_id=None, seed=1)
    def pipeline():
        volumes = fn.readers.numpy(file_root=folder, file_filter="*.npy", random_shuffle=True)
        volumes = fn.reshape(volumes, layout="DHWC")
        place = {f"crop_pos_{axis}": fn.random.uniform(range=[0.0, 1.0]) for axis in "xyz"}
        depth, height, width = VOLUME_CROP
        volumes = fn.crop(volumes, crop_d=depth, crop_h=height, crop_w=width, **place)
        volumes = fn.resize(volumes, size=list(VOLUME_SIZE))
        volumes = fn.flip(
            volumes, horizontal=fn.random.coin_flip(), vertical=fn.random.coin_flip(), depthwise=fn.random.coin_flip()
        )
        return fn.brightness_contrast(
            volumes,
            brightness=fn.random.uniform(range=[0.9, 1.1]),
            contrast=fn.random.uniform(range=[0.9, 1.1]),
            contrast_center=2048.0,
            dtype=types.FLOAT,
        )

    return pipeline()


class _VolumeDataset:
    """The same volumes for torch's DataLoader."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("*.npy"))
        self._torch = importlib.import_module("torch")

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        torch = self._torch
        volume = np.load(self.paths[index], mmap_mode="r")
        corner = [np.random.randint(extent - crop + 1) for extent, crop in zip(volume.shape, VOLUME_CROP, strict=False)]
        window = tuple(slice(first, first + crop) for first, crop in zip(corner, VOLUME_CROP, strict=True))
        part = torch.from_numpy(volume[window][..., 0].copy())
        part = torch.nn.functional.interpolate(part[None, None], VOLUME_SIZE, mode="trilinear")[0]
        part = part.flip([axis + 1 for axis in range(3) if np.random.random() < 0.5])
        factor, shift = np.random.uniform(0.9, 1.1, 2)
        return ((part - 2048) * float(factor) + 2048) * float(shift), 0


# -- all
# --------------------------------------------------------------------------------------------------------------------


def _photographs(title: str, define: Callable[..., Any], transform: Callable[[], Any], batch_size: int) -> Any:
    def make(options: Options) -> Workload:
        folder = photo_folder(options)
        return Workload(
            title,
            "images/s",
            partial(define, folder=str(folder)),
            lambda: PhotoDataset(folder, transform()),
            batch_size,
        )

    return make


def _make_ssd(options: Options) -> Workload:
    folder, annotations = coco_files(options)
    return Workload(
        "SSD on COCO",
        "images/s",
        partial(ssd, images_folder=str(folder), annotations=str(annotations)),
        lambda: BoxDataset(folder, annotations),
        SSD_BATCH,
    )


def _make_speech(options: Options) -> Workload:
    folder = _speech_folder(options)
    return Workload(
        "speech to log-mel, FLAC files",
        "recordings/s",
        partial(_log_mel, folder=str(folder)),
        lambda: _SpeechDataset(folder),
        SPEECH_BATCH,
        ("torch", "soundfile"),
    )


def _make_volumes(options: Options) -> Workload:
    folder = _volume_folder(options)
    return Workload(
        "3-D volumes",
        "volumes/s",
        partial(_volumes, folder=str(folder)),
        lambda: _VolumeDataset(folder),
        VOLUME_BATCH,
        ("torch",),
    )


_WORKLOADS: dict[str, Callable[[Options], Workload]] = {
    "training": _photographs("ResNet-50 training", training, training_transform, BATCH_SIZE),
    "validation": _photographs("ResNet-50 validation", validation, validation_transform, BATCH_SIZE),
    "color": _photographs("color + blur + rotate", _color, _color_transform, COLOR_BATCH),
    "ssd": _make_ssd,
    "speech": _make_speech,
    "volumes": _make_volumes,
}


def workload_names() -> list[str]:
    """Return the names of all workloads."""
    return list(_WORKLOADS)


def make_workload(name: str, options: Options) -> Workload:
    """Create the data of a workload and return the workload."""
    return _WORKLOADS[name](options)
