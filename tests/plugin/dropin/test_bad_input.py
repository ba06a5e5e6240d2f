"""Mistakes of users: exceptions have the types of torch's loader, with a note that suggests a change."""

from __future__ import annotations

import io
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Subset

from dalify.plugin.pytorch import DataLoader
from tests.plugin.dropin.torch_reference import (
    Brighten,
    TorchLoader,
    cifar,
    datasets,
    photos,
    same,
    seed,
    transforms,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

KNOWN = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.ToTensor()])
PARTLY = transforms.Compose([transforms.RandomCrop(32, padding=4), Brighten(), transforms.ToTensor()])


class Failing:
    """A transform that raises, for the first image of each pass."""

    def __call__(self, image: Any) -> Any:
        raise ZeroDivisionError("no such brightness")


def fail_to_collate(samples: list[Any]) -> Any:
    raise KeyError("labels")


class Odd:
    """Unusual samples of a dataset."""

    shape = 3


def fail_to_start(worker: int) -> None:
    raise LookupError(f"no shard for worker {worker}")


def of(transform: Any) -> Callable[[Any], Any]:
    return lambda root: cifar(transform)


def of_own(sample: Any) -> Callable[[Any], Any]:
    """Return a dataset that is not supported, so that torch computes its samples."""
    return lambda root: [sample]


def gray(root: Any) -> Any:
    dataset = datasets.MNIST.__new__(datasets.MNIST)
    dataset.data, dataset.targets = torch.zeros(6, 28, 28, dtype=torch.uint8), torch.arange(6)
    dataset.transform, dataset.target_transform = transforms.ToTensor(), None
    return dataset


FAILING = transforms.Compose([transforms.RandomCrop(24), Failing(), transforms.ToTensor()])
TOO_LARGE = transforms.Compose([transforms.RandomCrop(99), transforms.ToTensor()])
RAGGED = transforms.Compose([transforms.ToTensor()])

# name: dataset of a folder, arguments of the loader, what the note says
MISTAKES: dict[str, tuple[Callable[[Any], Any], dict[str, Any], str]] = {
    "a transform raises": (of(FAILING), {}, "raised by the transform Failing, given a Pillow image (RGB, 24 x 24)"),
    "an image is too small": (of(TOO_LARGE), {}, "raised while sample 0 was loaded. To reproduce it: dataset[0]"),
    "images for tensors": (of(None), {}, "add ToTensor() at the end of the dataset's transform"),
    "images differ in size": (lambda root: datasets.ImageFolder(root, RAGGED), {"batch_size": 3}, "differ in shape"),
    "a sampler yields strings": (of(KNOWN), {"sampler": ["a", "b"]}, "the sampler yielded 'a'"),
    "a sampler yields strings, hybrid": (of(PARTLY), {"sampler": ["a", "b"]}, "the sampler yielded 'a'"),
    "a sampler yields booleans": (of(KNOWN), {"sampler": [True]}, "raised while sample 1 was loaded"),
    "a sampler yields arrays": (of(KNOWN), {"sampler": [0, np.array([1, 2])]}, "the sampler yielded array([1, 2])"),
    "a sampler yields tensors": (of(KNOWN), {"sampler": [torch.tensor([1, 2])]}, "the sampler yielded tensor([1, 2])"),
    "a sampler yields tuples": (of(KNOWN), {"batch_sampler": [[(1, 2), (3,)]]}, "the sampler yielded (1, 2)"),
    "a sampler yields slices, files": (
        lambda root: datasets.ImageFolder(root, KNOWN), {"sampler": [slice(0, 2)]}, "the sampler yielded slice(0, 2"
    ),
    "a sampler yields slices, gray": (gray, {"batch_sampler": [[slice(0, 2)]]}, "the sampler yielded slice(0, 2"),
    "a sampler yields None, gray": (gray, {"batch_sampler": [[None]]}, "the sampler yielded None"),
    "a sampler yields booleans, gray": (gray, {"sampler": [True]}, "raised while sample 1 was loaded"),
    "a sampler yields booleans, joined": (
        lambda root: ConcatDataset([gray(root), gray(root)]), {"sampler": [False]}, "raised while sample 0 was loaded"
    ),
    "a batch with a boolean, gray": (gray, {"batch_sampler": [[0, 1], [0, True]]}, "raised while sample 1 was loaded"),
    "a batch with a boolean": (of(KNOWN), {"batch_sampler": [[0, True]]}, "raised while sample 1 was loaded"),
    "an index of 71 bits, gray": (gray, {"sampler": [0, 2**70]}, f"yielded index {2**70}, but the dataset has 6"),
    "an index of 65 bits, gray": (gray, {"sampler": [0, -(2**63) - 1]}, f"yielded index {-(2**63) - 1}, but"),
    "an index of 71 bits": (of(KNOWN), {"sampler": [0, 2**70]}, f"yielded index {2**70}, but"),
    "an index too large": (of(KNOWN), {"sampler": [0, 99]}, "yielded index 99, but the dataset has 40 samples"),
    "collate_fn fails": (of(KNOWN), {"collate_fn": fail_to_collate}, "function fail_to_collate, given 1 sample"),
    "collate_fn fails, hybrid": (of(PARTLY), {"collate_fn": fail_to_collate}, "the collate function fail_to_collate"),
    "collate_fn fails, no batches": (of_own(3), {"collate_fn": fail_to_collate, "batch_size": None}, "given int."),
    "collate_fn fails, odd shapes": (of_own(Odd()), {"collate_fn": fail_to_collate}, "the first of them Odd."),
    "worker_init_fn fails": (of(KNOWN), {"worker_init_fn": fail_to_start}, "worker_init_fn=fail_to_start in worker 0"),
    "a lambda is spawned": (
        of(transforms.Compose([transforms.Lambda(lambda image: image), transforms.ToTensor()])),
        {"multiprocessing_context": "spawn"},
        "Use functions defined at the top level of a module instead of lambdas",
    ),
}  # fmt: skip


def outcome(make_loader: Callable[[], Any]) -> tuple[list[Any], type[Exception] | None, str]:
    """Return the batches of a loader before its error, the class of the error, and its text."""
    seed()
    found: list[Any] = []
    try:
        for batch in make_loader():
            found.append(batch)
    except Exception as error:
        file = io.StringIO()
        traceback.print_exception(error, file=file)
        # Workers end when nothing refers to their iterator; the garbage collector would wait ten seconds for them.
        error.__traceback__ = None
        return found, type(error), file.getvalue()
    return found, None, ""


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", MISTAKES)
def test_type_and_note(tmp_path, name, workers):
    make, options, note = MISTAKES[name]
    dataset = make(photos(tmp_path / "photos"))
    options = {**options, "num_workers": workers}
    if workers == 0:
        options.pop("multiprocessing_context", None)
    ours, our_error, text = outcome(lambda: DataLoader(dataset, **options))
    theirs, their_error, _ = outcome(lambda: TorchLoader(dataset, **options))
    same(ours, theirs)
    assert our_error is their_error
    if our_error is None:
        assert name in ("worker_init_fn fails", "a lambda is spawned")  # no mistakes where there are no workers
        assert workers == 0
        return
    assert "dalify: " in text
    assert note in text


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("transform", [KNOWN, PARTLY], ids=["full", "hybrid"])
def test_a_dataset_that_shrinks(tmp_path, transform, workers):
    def shrunk(kind: Any) -> Any:
        dataset = datasets.ImageFolder(photos(tmp_path / "photos"), transform)
        loader = kind(dataset, batch_size=2, sampler=range(7), num_workers=workers)
        del dataset.samples[3:]
        return loader

    ours, our_error, text = outcome(lambda: shrunk(DataLoader))
    theirs, their_error, their_text = outcome(lambda: shrunk(TorchLoader))
    same(ours, theirs)
    assert our_error is their_error is IndexError
    assert "index 3, but the dataset has 3 samples" in text
    assert "dalify: " not in their_text


@pytest.mark.parametrize("workers", [0, 2])
def test_files_that_cannot_be_read_are_named(tmp_path, workers):
    photos(tmp_path / "photos")
    dataset = datasets.ImageFolder(tmp_path / "photos", KNOWN)
    damaged = Path(dataset.samples[1][0])
    damaged.write_bytes(damaged.read_bytes()[:200])
    _, error, text = outcome(lambda: DataLoader(dataset, batch_size=2, num_workers=workers))
    assert error is OSError
    assert f"raised while the file '{damaged}' was read" in text


@pytest.mark.parametrize("last", [transforms.ToTensor(), transforms.RandomHorizontalFlip()], ids=["tensors", "images"])
def test_files_that_are_damaged_below_the_rows_that_are_read(tmp_path, last):
    pixels = np.random.default_rng(0).integers(0, 256, (96, 64, 3), dtype=np.uint8)
    (tmp_path / "a").mkdir()
    for kind in ("baseline", "progressive"):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", progressive=kind == "progressive")
        data = file.getvalue()
        middle = len(data) // 2
        (tmp_path / f"a/{kind}_whole.jpg").write_bytes(data)
        (tmp_path / f"a/{kind}_truncated.jpg").write_bytes(data[:-300])
        (tmp_path / f"a/{kind}_with_marker.jpg").write_bytes(data[:middle] + b"\xff\xc4\x00\x04" + data[middle:])
    (tmp_path / "a/folder.jpg").mkdir()
    dataset = datasets.ImageFolder(tmp_path, transforms.Compose([transforms.RandomCrop(16), last]))
    dataset.samples = [(str(path), 0) for path in sorted(tmp_path.glob("a/*"))]

    def events(kind: Any) -> list[Any]:
        seed()
        batches = iter(kind(dataset, collate_fn=list))
        found: list[Any] = []
        for path, _ in dataset.samples:
            try:
                ((image, _),) = next(batches)
                found += [path, np.asarray(image).tolist()]
            except Exception as error:
                found += [path, type(error), str(error)]
        return found

    expected = events(TorchLoader)
    same(events(DataLoader), expected)
    assert sum(event in (OSError, IsADirectoryError) for event in expected if isinstance(event, type)) == 5


def test_wrong_options():
    for option, value, hint in [("backend", "daliffy", "dalify"), ("on_fallback", "warning", "warn")]:
        with pytest.raises(ValueError, match=f"{option} must be one of .* Did you mean '{hint}'"):
            DataLoader(cifar(KNOWN), **{option: value})
    with pytest.raises(ValueError, match="num_workers option should be non-negative"):
        DataLoader(cifar(KNOWN), num_workers=-1)
    with pytest.raises(TypeError, match="nonsense"):
        DataLoader(cifar(KNOWN), nonsense=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("part", [lambda dataset: Subset(dataset, range(5)), lambda dataset: ConcatDataset([dataset])])
def test_an_error_follows_the_draws_of_previous_samples(part):
    def run(kind: Any) -> list[Any]:
        seed()
        batches = iter(kind(part(cifar(KNOWN)), batch_size=3, sampler=[0, 1, 99, 2, 3, 4]))
        with pytest.raises(IndexError):
            next(batches)
        return [*batches, torch.get_rng_state()]

    same(run(DataLoader), run(TorchLoader))
