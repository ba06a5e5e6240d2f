"""Train a small network on generated photographs, and compare the loading speed with torch's DataLoader.

`make demo` runs it; `make demo ARGS=--small` is a short version. Images are written to out/.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageFilter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch import nn

from contact_sheets import contact_sheet
from dalify import fn, pipeline_def, types
from dalify.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from photos import PHOTOGRAPHS, make_photos

SIZE = 128
BATCH_SIZE = 32
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)
CLASSES = sorted(PHOTOGRAPHS)
THREADS = min(4, os.cpu_count() or 1)


class Curriculum:
    """Return the maximum color change per sample, which increases from epoch to epoch."""

    def __call__(self, sample: types.SampleInfo) -> np.ndarray:
        """Return a number between 0.2 and 0.8 as a float32 scalar."""
        return np.float32(min(0.8, 0.2 + 0.3 * sample.epoch_idx)).reshape(())


@pipeline_def(batch_size=BATCH_SIZE, num_threads=THREADS, seed=7)
def training(folder: str):
    """Decode, crop a random window, then either change the colors or blur, per sample."""
    encoded, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="photos")
    images = fn.decoders.image(encoded, output_type=types.RGB)
    images = fn.random_resized_crop(images, size=SIZE, random_area=[0.3, 1.0])
    strength = fn.external_source(source=Curriculum(), batch=False, dtype=types.FLOAT, ndim=0)
    is_colored = fn.random.coin_flip(probability=0.5, dtype=types.BOOL)
    if is_colored:
        images = fn.color_twist(
            images,
            brightness=1 + strength * fn.random.uniform(range=[-0.5, 0.5]),
            saturation=1 + strength * fn.random.uniform(range=[-1.0, 1.0]),
        )
    else:
        images = fn.gaussian_blur(images, sigma=fn.random.uniform(range=[0.1, 2.0]))
    images = fn.crop_mirror_normalize(
        images, mirror=fn.random.coin_flip(), mean=list(255 * MEAN), std=list(255 * DEVIATION)
    )
    return images, labels, is_colored


@pipeline_def(batch_size=BATCH_SIZE, num_threads=THREADS)
def validation(folder: str):
    """Decode, resize, normalize."""
    encoded, labels = fn.readers.file(file_root=folder, name="photos")
    images = fn.decoders.image(encoded, output_type=types.RGB)
    images = fn.resize(images, resize_shorter=SIZE)
    images = fn.crop_mirror_normalize(images, crop=[SIZE, SIZE], mean=list(255 * MEAN), std=list(255 * DEVIATION))
    return images, labels


def training_with_pillow(path: Path) -> torch.Tensor:
    """Process one photograph with Pillow like the pipeline `training`."""
    random = np.random.default_rng()
    with Image.open(path) as file:
        image = file.convert("RGB")
    area, ratio = random.uniform(0.3, 1.0) * image.width * image.height, np.exp(random.uniform(-0.29, 0.29))
    width = min(image.width, round(np.sqrt(area * ratio)))
    height = min(image.height, round(np.sqrt(area / ratio)))
    left, top = random.integers(image.width - width + 1), random.integers(image.height - height + 1)
    box = (left, top, left + width, top + height)
    image = image.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box=box)
    if random.random() < 0.5:
        image = ImageEnhance.Brightness(image).enhance(1 + random.uniform(-0.2, 0.2))
        image = ImageEnhance.Color(image).enhance(1 + random.uniform(-0.5, 0.5))
    else:
        image = image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0)))
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    pixels = (np.asarray(image, np.float32) / 255 - MEAN) / DEVIATION
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


class PillowDataset(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    """Class folders as a dataset for torch's DataLoader."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("*/*.jpg"))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path = self.paths[index]
        return training_with_pillow(path), CLASSES.index(path.parent.name)


def small_network() -> nn.Module:
    """Four convolutions with stride 2, then a mean over the remaining pixels."""
    layers: list[nn.Module] = []
    for channels_in, channels_out in ((3, 16), (16, 32), (32, 64), (64, 96)):
        layers += [
            nn.Conv2d(channels_in, channels_out, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(channels_out),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, len(CLASSES)))


def train(network: nn.Module, loader: DALIGenericIterator, photos: int, epochs: int, console: Console) -> None:
    """Train with a progress bar that shows images/s, loss and the accuracy of the current epoch."""
    optimizer = torch.optim.Adam(network.parameters(), lr=4e-3)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
    )
    network.train()
    with Progress(*columns, console=console) as progress:
        for epoch in range(epochs):
            task = progress.add_task(f"epoch {epoch + 1}", total=photos, figures="")
            seen, correct, start = 0, 0, time.perf_counter()
            for batch in loader:
                images, labels = batch[0]["image"], batch[0]["label"].squeeze(-1).long()
                optimizer.zero_grad()
                scores = network(images)
                loss = nn.functional.cross_entropy(scores, labels)
                loss.backward()
                optimizer.step()
                seen += len(labels)
                correct += int((scores.argmax(1) == labels).sum())
                rate = seen / (time.perf_counter() - start)
                figures = f"{rate:5.0f} images/s  loss {loss.item():.2f}  accuracy {correct / seen:4.0%}"
                progress.update(task, completed=seen, figures=figures)


@torch.no_grad()
def accuracy(network: nn.Module, loader: DALIGenericIterator) -> float:
    """Return the fraction of correct predictions over one epoch."""
    network.eval()
    answers = [network(batch[0]["image"]).argmax(1) == batch[0]["label"].squeeze(-1) for batch in loader]
    return float(torch.cat(answers).float().mean())


def write_contact_sheet(batch: dict[str, torch.Tensor], path: Path) -> None:
    """Draw the images of a batch with their class and the branch of the `if`."""
    images = batch["image"].numpy().transpose(0, 2, 3, 1) * DEVIATION + MEAN
    branches = ["colors" if is_colored else "blur" for is_colored in batch["is_colored"].flatten()]
    captions = [f"{CLASSES[int(label)]}, {branch}" for label, branch in zip(batch["label"], branches, strict=True)]
    contact_sheet(path, list((images.clip(0, 1) * 255).round().astype(np.uint8)), captions, cell=SIZE)


def images_per_second(make_batches: Callable[[], Iterable[int]], seconds: float) -> float:
    """Measure a loader without training. The first batches, which may be prefetched, are not counted."""
    batches = endless(make_batches)
    for _ in range(3):
        next(batches)
    images, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        images += next(batches)
    return images / elapsed


def endless(make_batches: Callable[[], Iterable[int]]) -> Iterator[int]:
    """Repeat epochs."""
    while True:
        yield from make_batches()


def compare_loaders(folder: Path, seconds: float, console: Console) -> None:
    """Print the speed of both loaders, measured alternately with the same photographs and equal workers and threads."""
    ours = DALIGenericIterator(
        training(str(folder)), ["image", "label", "is_colored"], reader_name="photos", auto_reset=True
    )
    theirs = torch.utils.data.DataLoader(
        PillowDataset(folder), BATCH_SIZE, shuffle=True, num_workers=THREADS, persistent_workers=True
    )
    loaders: dict[str, Callable[[], Iterable[int]]] = {
        "dalify": lambda: (len(batch[0]["label"]) for batch in ours),
        "torch DataLoader, Pillow": lambda: (len(labels) for _, labels in theirs),
    }
    speeds: dict[str, list[float]] = {name: [] for name in loaders}
    for _ in range(3):
        for name, make_batches in loaders.items():
            speeds[name].append(images_per_second(make_batches, seconds))
    median = {name: statistics.median(values) for name, values in speeds.items()}
    console.print(f"\nloading without training, {THREADS} threads or workers, median of 3 rounds:")
    for name, speed in median.items():
        console.print(f"  {name:<26}{speed:7,.0f} images/s")
    console.print(f"  dalify is [bold]{median['dalify'] / median['torch DataLoader, Pillow']:.1f} times[/bold] as fast")


def main() -> None:
    """Generate photographs, train, write images, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--small", action="store_true", help="few photographs and short measurements, as in continuous integration"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="folder of photographs and output images (%(default)s)"
    )
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    per_class = 12 if arguments.small else 60

    console.print(f"generating {len(CLASSES) * per_class} photographs for training and some for validation in {out}/")
    folder = make_photos(out / f"demo_train_{per_class}", images_per_class=per_class, longest_side=400, seed=1)
    unseen = make_photos(out / "demo_validation", images_per_class=8, longest_side=400, seed=2)

    # Half of the cores for the network: the others prepare batches, and torch's threads wait for the slowest.
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    torch.manual_seed(1)
    pipe = training(str(folder))
    loader = DALIGenericIterator(
        pipe,
        ["image", "label", "is_colored"],
        reader_name="photos",
        last_batch_policy=LastBatchPolicy.PARTIAL,
        auto_reset=True,
    )
    network = small_network()
    console.print("training; the first run on a machine compiles kernels, which later runs load")
    train(network, loader, len(CLASSES) * per_class, 2, console)
    validation_loader = DALIGenericIterator(
        validation(str(unseen)), ["image", "label"], reader_name="photos", last_batch_policy=LastBatchPolicy.PARTIAL
    )
    share = accuracy(network, validation_loader)
    console.print(f"accuracy on validation photographs: [bold]{share:.0%}[/bold] (chance level {1 / len(CLASSES):.0%})")

    write_contact_sheet(next(iter(loader))[0], out / "contact_sheet.png")
    pipe.save_graph_to_svg_file(out / "graph.svg")
    console.print(f"graph:   {out / 'graph.svg'}")
    compare_loaders(folder, 0.3 if arguments.small else 2.0, console)


if __name__ == "__main__":
    main()
