"""Every batch compared with torch's loader: same structure, types and bytes, and same state of torch's generator."""

from __future__ import annotations

import gc
import logging
import math
import os
import random
import threading
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from torch.utils.data import ConcatDataset, Subset

from dalify.plugin.pytorch import DataLoader
from dalify.plugin.pytorch.dropin.fetching import Fetcher
from tests.plugin.dropin.torch_reference import cifar as small_cifar
from tests.plugin.dropin.torch_reference import datasets, same, seed, transforms, until_the_end

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
]

Mode = transforms.InterpolationMode
NORMALIZE = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
EVALUATION = transforms.Compose(
    [transforms.Resize(40), transforms.CenterCrop(32), transforms.ToTensor(), NORMALIZE],
)
TRAINING = transforms.Compose(
    [transforms.RandomResizedCrop(24), transforms.RandomHorizontalFlip(), transforms.ToTensor(), NORMALIZE]
)
SMALL_TRAINING = transforms.Compose(
    [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), transforms.ToTensor(), NORMALIZE]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("images")
    generator = np.random.default_rng(0)

    def picture(height: int, width: int) -> Image.Image:
        coarse = Image.fromarray(generator.integers(0, 256, (9, 11, 3), dtype=np.uint8))
        return coarse.resize((width, height), Image.Resampling.BICUBIC)

    for name in ("a", "b"):
        (root / name).mkdir()
    picture(61, 83).save(root / "a/0.jpg", quality=90)
    picture(47, 45).save(root / "a/1.jpg", quality=80, subsampling=0)
    picture(90, 33).convert("L").save(root / "a/2.jpg")
    picture(52, 71).convert("CMYK").save(root / "a/3.jpg")
    picture(50, 50).save(root / "a/4.jpg", progressive=True, subsampling=2)
    picture(40, 90).save(root / "a/5.jpg", keep_rgb=True)
    rotated = Image.Exif()
    rotated[0x0112] = 6
    picture(64, 48).save(root / "a/6.jpg", exif=rotated)
    picture(33, 47).save(root / "b/0.png")
    picture(70, 41).convert("P").save(root / "b/1.png")
    picture(44, 44).convert("L").save(root / "b/2.png")
    transparent = picture(60, 39).convert("RGBA")
    transparent.putalpha(90)
    transparent.save(root / "b/3.png")
    Image.fromarray(generator.integers(0, 65536, (50, 40), dtype=np.uint16)).save(root / "b/4.png")
    picture(39, 64).convert("1").save(root / "b/5.png")
    return root


def cifar(transform: Any, count: int = 100) -> Any:
    return small_cifar(transform, count)


def mnist(transform: Any, count: int = 50) -> Any:
    dataset = datasets.FashionMNIST.__new__(datasets.FashionMNIST)
    generator = torch.Generator().manual_seed(3)
    dataset.data = torch.randint(0, 256, (count, 28, 28), dtype=torch.uint8, generator=generator)
    dataset.targets = torch.randint(0, 10, (count,), generator=generator)
    dataset.transform, dataset.target_transform = transform, None
    return dataset


def run(kind: Any, dataset: Any, epochs: int, options: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    torch.manual_seed(7)
    options = {key: value(dataset) if key.endswith("sampler") else value for key, value in options.items()}
    if "generator" in options:
        options["generator"] = torch.Generator().manual_seed(11)
    loader = kind(dataset, **options)
    assert kind is not DataLoader or loader.explain().is_accelerated, str(loader.explain())
    found = [batch for _ in range(epochs) for batch in loader]
    return found, [torch.get_rng_state(), random.getstate()[1][:5]]


def check(dataset: Any, epochs: int = 1, **options: Any) -> list[Any]:
    expected = run(torch.utils.data.DataLoader, dataset, epochs, options)
    found = run(DataLoader, dataset, epochs, options)
    same(found[0], expected[0])
    same(found[1], expected[1])
    return found[0]


OPTIONS = {
    "in order": {"batch_size": 4},
    "drop_last": {"batch_size": 5, "drop_last": True},
    "shuffle": {"batch_size": 3, "shuffle": True},
    "generator": {"batch_size": 4, "shuffle": True, "generator": True},
    "weighted": {
        "batch_size": 4,
        "sampler": lambda dataset: torch.utils.data.WeightedRandomSampler([1.0] * len(dataset), len(dataset)),
    },
    "subset sampler": {"batch_size": 4, "sampler": lambda dataset: torch.utils.data.SubsetRandomSampler(range(7))},
    "repeated": {"batch_size": 3, "sampler": lambda dataset: [1, 1, -1, np.int64(2), torch.tensor(3)]},
    "batches": {"batch_sampler": lambda dataset: [[0, 3], [1], [2, 5, 4, 0]]},
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("transform", [EVALUATION, TRAINING], ids=["evaluation", "training"])
def test_folder(folder, name, transform):
    check(datasets.ImageFolder(folder, transform), epochs=2, **OPTIONS[name])


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("make", [cifar, mnist])
def test_arrays(name, make):
    fill = transforms.Normalize((0.5,), (0.25,)) if make is mnist else NORMALIZE
    transform = transforms.Compose(
        [transforms.RandomCrop(28, padding=2), transforms.RandomHorizontalFlip(0.3), transforms.ToTensor(), fill]
    )
    check(make(transform), epochs=2, **OPTIONS[name])


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("workers", [1, 3])
def test_workers_draw_what_torch_draws(folder, workers, persistent):
    options = {"num_workers": workers, "persistent_workers": persistent, "shuffle": True}
    check(datasets.ImageFolder(folder, TRAINING), epochs=2, batch_size=3, **options)
    check(cifar(SMALL_TRAINING), epochs=2, batch_size=16, **options)


@pytest.mark.parametrize("persistent", [False, True])
def test_relative_paths_belong_to_the_folder_of_the_workers(persistent, tmp_path, monkeypatch):
    """Workers of torch keep the working folder in which they were started."""
    for number, name in enumerate(("one", "two")):
        place = tmp_path / name / "photos" / "class"
        place.mkdir(parents=True)
        for index in range(20):
            Image.new("RGB", (4, 5), (number, index, 7)).save(place / f"{index:02}.png")

    def epochs(kind: Any) -> list[Any]:
        monkeypatch.chdir(tmp_path / "one")
        dataset = datasets.ImageFolder("photos", transforms.ToTensor())
        loader = kind(dataset, batch_size=2, num_workers=2, persistent_workers=persistent)
        iterator = iter(loader)
        found = [next(iterator)]
        monkeypatch.chdir(tmp_path / "two")
        return [*found, *iterator, *loader]

    same(epochs(DataLoader), epochs(torch.utils.data.DataLoader))


class Masks(torch.utils.data.Dataset):
    """Images and masks with relative paths; some masks exist only in the first folder."""

    def __init__(self) -> None:
        self.names = [f"{index:02}.png" for index in range(20)]
        self.transform = transforms.ToTensor()

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Any:
        name = self.names[index]
        image = Image.open("photos/class/" + name).convert("RGB")
        names = ("masks/" + name, "more/" + name)
        masks = [np.array(Image.open(each)) for each in names if os.path.exists(each)]  # noqa: PTH110 -- usual
        return self.transform(image), torch.from_numpy(np.array(masks))


class OpenCVMasks(Masks):
    """The masks are read by OpenCV."""

    def __getitem__(self, index: int) -> Any:
        name = self.names[index]
        image = Image.open("photos/class/" + name).convert("RGB")
        return self.transform(image), torch.from_numpy(cv2.imread("masks/" + name, 0))


@pytest.mark.parametrize("dataset", [Masks, OpenCVMasks])
def test_masks_with_relative_paths_belong_to_the_folder_of_the_workers(tmp_path, monkeypatch, dataset):
    for number, name in enumerate(("one", "two")):
        for place in ("photos/class", "masks", "more"):
            (tmp_path / name / place).mkdir(parents=True)
        for index in range(20):
            Image.new("RGB", (4, 5), (number, index, 7)).save(tmp_path / name / "photos/class" / f"{index:02}.png")
            Image.new("L", (4, 5), 20 * number + index).save(tmp_path / name / "masks" / f"{index:02}.png")
            if not number:
                Image.new("L", (4, 5), index).save(tmp_path / name / "more" / f"{index:02}.png")

    def epochs(kind: Any, workers: int) -> list[Any]:
        monkeypatch.chdir(tmp_path / "one")
        loader = kind(dataset(), batch_size=2, num_workers=workers)
        assert kind is not DataLoader or "ToTensor by dalify" in str(loader.explain())
        iterator = iter(loader)
        found = [next(iterator)]
        monkeypatch.chdir(tmp_path / "two")
        return [*found, *iterator, *loader]

    for workers in (0, 2):
        same(epochs(DataLoader, workers), epochs(torch.utils.data.DataLoader, workers))


def test_stopping_early_with_persistent_workers(folder):
    def run_twice(kind: Any) -> list[Any]:
        torch.manual_seed(0)
        loader = kind(
            datasets.ImageFolder(folder, TRAINING), batch_size=2, shuffle=True, num_workers=2, persistent_workers=True
        )
        found = [next(iter(loader)) for _ in range(2)]
        return [*found, *loader, torch.get_rng_state()]

    same(run_twice(DataLoader), run_twice(torch.utils.data.DataLoader))


def draw_in_collate(samples: list[Any]) -> tuple[Any, ...]:
    info = torch.utils.data.get_worker_info()
    images = torch.stack([image for image, _ in samples]) * torch.rand(1)
    labels = [label for _, label in samples]
    return images, labels, random.random(), float(np.random.rand()), None if info is None else info.id


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("transform", [EVALUATION, TRAINING], ids=["evaluation", "training"])
def test_collate_that_draws(folder, workers, transform):
    if workers:
        check(datasets.ImageFolder(folder, transform), 2, batch_size=3, num_workers=workers, collate_fn=draw_in_collate)
        return
    found = []
    for kind in (DataLoader, torch.utils.data.DataLoader):
        random.seed(1)
        np.random.seed(1)
        dataset = datasets.ImageFolder(folder, transform)
        found.append(run(kind, dataset, 1, {"batch_size": 3, "collate_fn": draw_in_collate}))
    same(*found)


def test_subset_and_concatenation(folder):
    first, second = datasets.ImageFolder(folder, EVALUATION), datasets.ImageFolder(folder, TRAINING)
    second.transform = transforms.Compose([transforms.RandomResizedCrop(32), transforms.ToTensor()])
    both = ConcatDataset([Subset(first, [3, 1, 2]), second, Subset(Subset(cifar(SMALL_TRAINING), range(9)), [8, 0])])
    check(both, batch_size=4, shuffle=True)
    check(Subset(cifar(SMALL_TRAINING), [5, 4, 3, 9]), batch_size=3, shuffle=True, num_workers=2)


BEFORE = st.one_of(
    st.builds(
        transforms.Resize,
        st.one_of(st.integers(8, 60), st.tuples(st.integers(8, 60), st.integers(8, 60))),
        st.sampled_from(list(Mode)),
    ),
    st.builds(transforms.Resize, st.integers(8, 30), max_size=st.integers(31, 60)),
    st.builds(transforms.CenterCrop, st.one_of(st.integers(8, 99), st.tuples(st.integers(8, 60), st.integers(8, 99)))),
    st.builds(
        transforms.RandomCrop,
        st.integers(8, 50),
        padding=st.sampled_from([None, 3, (1, 2), [0, 1, 2, 3]]),
        pad_if_needed=st.just(True),
        fill=st.sampled_from([0, 7]),
        padding_mode=st.sampled_from(["constant", "edge", "symmetric"]),
    ),
    st.builds(
        transforms.RandomResizedCrop,
        st.integers(8, 50),
        scale=st.sampled_from([(0.08, 1.0), (0.9, 1.5)]),
        ratio=st.sampled_from([(0.75, 1.3), (2.0, 9.0)]),
        interpolation=st.sampled_from(list(Mode)),
    ),
    st.builds(transforms.RandomHorizontalFlip, st.sampled_from([0, 0.3, 0.5, 1])),
    st.builds(transforms.RandomVerticalFlip, st.sampled_from([0.5, 1.0])),
    st.builds(
        transforms.Pad, st.sampled_from([2, (1, 3), (1, 2, 3, 4)]), st.sampled_from([0, 9]),
        st.sampled_from(["constant", "edge", "reflect", "symmetric"]),
    ),
)  # fmt: skip
GREY = [(), (transforms.Grayscale(3),)]
AFTER = [
    (transforms.ToTensor(),),
    (transforms.PILToTensor(),),
    (transforms.ToTensor(), NORMALIZE),
    (transforms.PILToTensor(), transforms.ConvertImageDtype(torch.float32), NORMALIZE),
    (transforms.PILToTensor(), transforms.ConvertImageDtype(torch.int16)),
    (transforms.ToTensor(), transforms.RandomHorizontalFlip(), transforms.ConvertImageDtype(torch.float64), NORMALIZE),
]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(BEFORE, max_size=4), st.sampled_from(GREY), st.lists(BEFORE, max_size=1), st.sampled_from(AFTER))
def test_any_composition(folder, first, gray, second, after):
    transform = transforms.Compose([*first, *gray, *second, *after])
    check(datasets.ImageFolder(folder, transform), batch_size=1)
    check(cifar(transform, 12), batch_size=1, shuffle=True)


def test_single_transform_and_nested_composition(folder):
    check(datasets.ImageFolder(folder, transforms.ToTensor()), batch_size=1)
    check(mnist(transforms.PILToTensor()), batch_size=7)
    gray = transforms.Compose([transforms.Grayscale(1), transforms.Compose([transforms.Resize((9, 8))])])
    check(datasets.ImageFolder(folder, transforms.Compose([gray, transforms.ToTensor()])), batch_size=5)


class Doubled(transforms.ToTensor):
    def __call__(self, picture: Any) -> Any:
        return 2 * super().__call__(picture)


class Squares(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 9

    def __getitem__(self, index: int) -> Any:
        return (torch.tensor(index * index),)


REFUSED = {
    "no transform": (lambda folder: datasets.ImageFolder(folder), {}, "no transform"),
    "a subclass": (lambda folder: cifar(Doubled()), {}, "not supported"),
    "a function": (lambda folder: cifar(transforms.Lambda(lambda image: torch.zeros(3))), {}, "not supported"),
    "another dataset": (lambda folder: Squares(), {}, "not supported"),
    "a loader": (
        lambda folder: datasets.ImageFolder(folder, EVALUATION, loader=lambda path: Image.new("RGB", (50, 50))),
        {},
        "its own loader",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unknown_items_are_left_to_torch(folder, name, caplog):
    make, options, reason = REFUSED[name]
    dataset = make(folder)
    loader = DataLoader(dataset, **options)
    report = loader.explain()
    assert not report.is_accelerated
    assert reason in report.reason
    with caplog.at_level(logging.WARNING, logger="dalify"):
        torch.manual_seed(0)
        try:
            found = list(loader)
        except TypeError:
            found = None
        for _ in range(2):
            iter(loader)
    messages = [record.getMessage() for record in caplog.records if record.name == "dalify"]
    assert len(messages) == 1
    assert reason in messages[0]
    torch.manual_seed(0)
    if found is None:
        with pytest.raises(TypeError):
            list(torch.utils.data.DataLoader(dataset, **options))
    else:
        same(found, list(torch.utils.data.DataLoader(dataset, **options)))


def broken(folder: Path, target: Path) -> Any:
    (target / "a").mkdir(parents=True)
    for number in range(6):
        (target / f"a/{number}.jpg").write_bytes((folder / "a/0.jpg").read_bytes())
    (target / "a/2.jpg").write_bytes((folder / "a/0.jpg").read_bytes()[:900])
    (target / "a/4.jpg").write_bytes(b"no image")
    dataset = datasets.ImageFolder(target, TRAINING)
    (target / "a/5.jpg").unlink()
    return dataset


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_equal_those_of_torch_and_the_next_batch_comes(folder, tmp_path, workers):
    dataset = broken(folder, tmp_path / "broken")

    def events(kind: Any) -> list[Any]:
        torch.manual_seed(0)
        return until_the_end(kind(dataset, batch_size=1, num_workers=workers))

    expected = events(torch.utils.data.DataLoader)
    same(events(DataLoader), expected)
    assert sum(isinstance(event, tuple) for event in expected) == 3


@pytest.mark.parametrize("options", [{"sampler": [0, 99999]}, {"batch_size": 5}])
def test_error_types_of_samplers_and_sizes(folder, options):
    dataset = datasets.ImageFolder(folder, transforms.ToTensor())
    raised = []
    for kind in (DataLoader, torch.utils.data.DataLoader):
        with pytest.raises((IndexError, RuntimeError)) as caught:
            list(kind(dataset, **options))
        raised.append(caught.type)
    assert raised[0] is raised[1]


def test_crop_larger_than_the_image():
    for kind in (DataLoader, torch.utils.data.DataLoader):
        transform = transforms.Compose([transforms.RandomCrop(40), transforms.ToTensor()])
        with pytest.raises(ValueError, match=r"crop size \(40, 40\) is larger than input image size \(32, 32\)"):
            next(iter(kind(cifar(transform))))


def test_two_iterators_at_once_and_len():
    loader = DataLoader(cifar(SMALL_TRAINING), batch_size=32, num_workers=2)
    assert len(loader) == 4
    assert isinstance(loader, torch.utils.data.DataLoader)
    pairs = list(zip(loader, loader, strict=True))
    assert len(pairs) == 4
    for one, other in pairs:
        same(one[1], other[1])


def test_threads_end_with_the_iterator():
    def threads() -> int:
        return sum(thread.name.startswith("dalify-loader") for thread in threading.enumerate())

    loader = DataLoader(cifar(SMALL_TRAINING), batch_size=8, num_workers=3)
    batches = iter(loader)
    next(batches)
    living = [thread for thread in threading.enumerate() if thread.name.startswith("dalify-loader")]
    assert len(living) >= 3
    del batches
    gc.collect()
    for thread in living:
        thread.join(10)
    assert threads() == 0


@pytest.mark.parametrize("persistent", [False, True])
def test_leaving_early_with_a_collate_that_draws(folder, persistent):
    def run_twice(kind: Any) -> list[Any]:
        torch.manual_seed(0)
        loader = kind(
            datasets.ImageFolder(folder, TRAINING),
            batch_size=2,
            num_workers=2,
            persistent_workers=persistent,
            collate_fn=draw_in_collate,
        )
        return [next(iter(loader)), *loader, torch.get_rng_state()]

    same(run_twice(DataLoader), run_twice(torch.utils.data.DataLoader))


def test_timeout(folder, monkeypatch):
    released = threading.Event()
    fetch = Fetcher.fetch

    def fetch_late(self: Fetcher, *arguments: Any) -> Any:
        released.wait(30)
        return fetch(self, *arguments)

    monkeypatch.setattr(Fetcher, "fetch", fetch_late)
    dataset = datasets.ImageFolder(folder, EVALUATION)
    batches = iter(DataLoader(dataset, batch_size=8, num_workers=1, timeout=0.05))
    with pytest.raises(RuntimeError, match=r"timed out after 0\.05 seconds"):
        next(batches)
    released.set()
    del batches
    for timeout in (60, math.nan):  # torch does not wait less for NaN
        assert len(list(DataLoader(dataset, batch_size=8, num_workers=1, timeout=timeout))) == 2


def test_batches_are_kept():
    loader = DataLoader(cifar(EVALUATION), batch_size=10)
    kept = list(loader)
    copies = [images.clone() for images, _ in kept]
    list(loader)
    for (images, _), copy in zip(kept, copies, strict=True):
        assert torch.equal(images, copy)


@pytest.mark.parametrize("workers", [0, 2])
def test_iterators_that_begin_in_inference_mode(folder, workers):
    def batches(kind: Any) -> list[Any]:
        seed()
        with torch.inference_mode():
            iterator = iter(kind(datasets.ImageFolder(folder, TRAINING), batch_size=2, num_workers=workers))
        return list(iterator)

    same(batches(DataLoader), batches(torch.utils.data.DataLoader))


def test_another_default_type_is_left_to_torch():
    loader = DataLoader(cifar(SMALL_TRAINING))
    torch.set_default_dtype(torch.float64)
    try:
        assert "float64" in loader.explain().reason
    finally:
        torch.set_default_dtype(torch.float32)
    assert loader.explain().is_accelerated
