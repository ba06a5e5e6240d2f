"""Datasets of Hugging Face: the batches, random numbers and errors are torch's."""

from __future__ import annotations

import pickle
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, Subset

from dalify.plugin.pytorch import DataLoader
from tests.helpers.torchvision_import import import_torchvision
from tests.plugin.dropin.torch_reference import Brighten, TorchLoader, photos, same, seed, until_the_end

transforms = import_torchvision("torchvision.transforms")
v2 = import_torchvision("torchvision.transforms.v2")
with warnings.catch_warnings(action="ignore"):  # of packages that it looks for
    datasets = pytest.importorskip("datasets")

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

COUNT, SIZE = 11, 24
RANDOM = transforms.Compose(
    [transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
)
PLAIN = transforms.Compose([transforms.Resize((SIZE, SIZE)), transforms.ToTensor()])
VERSION_2 = v2.Compose([v2.RandomResizedCrop(SIZE), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
SEQUENCE = torch.nn.Sequential(v2.RandomCrop(SIZE), v2.PILToTensor())
ENDS_WITH_IMAGES = transforms.RandomCrop(SIZE)
WITH_USER_CODE = transforms.Compose([transforms.RandomCrop(SIZE), Brighten(), transforms.ToTensor()])
DRAWS_FROM_PYTHON = transforms.Compose(
    [transforms.RandomCrop(SIZE), transforms.RandomOrder([transforms.RandomVerticalFlip()]), transforms.ToTensor()]
)
COLUMN = "image"
ARGUMENTS = SimpleNamespace(column="image")
SEEN: list[int] = []
NAMES: dict[int, str] = {}
STEPS = [transforms.CenterCrop(30)]
to_tensor = transforms.ToTensor()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return JPEGs of several sizes, a PNG, and images that are rotated, gray, CMYK, or have an alpha channel."""
    root = photos(tmp_path_factory.mktemp("photos"))
    pixels = np.random.default_rng(3).integers(0, 256, (40, 50, 4), dtype=np.uint8)
    for name, mode in (("gray.jpg", "L"), ("gray.png", "L"), ("cmyk.jpg", "CMYK"), ("alpha.png", "RGBA")):
        Image.fromarray(pixels, "RGBA" if mode == "RGBA" else "CMYK").convert(mode).save(root / name)
    found = sorted(root.glob("**/*.*"))
    assert len(found) == COUNT
    return found


def dataset_of(files: list[Path], *, in_memory: bool = False, feature: Any = None) -> Any:
    """Return a dataset with images in files, or in the table."""
    images = [{"bytes": file.read_bytes(), "path": file.name} if in_memory else str(file) for file in files]
    columns = {"image": images, "label": list(range(len(files))), "name": [file.name for file in files]}
    return datasets.Dataset.from_dict(columns).cast_column("image", feature or datasets.Image())


def documented(examples: Any) -> Any:
    examples["pixel_values"] = [RANDOM(image.convert("RGB")) for image in examples["image"]]
    del examples["image"]
    return examples


def with_images(examples: Any) -> Any:
    """Return the images, too, for a collate function that does not use them."""
    examples["pixel_values"] = [RANDOM(image.convert("RGB")) for image in examples[COLUMN]]
    return examples


def new_batch(examples: Any) -> Any:
    images = [PLAIN(image.convert("RGB")) for image in examples["image"]]
    return {"pixel_values": images, "labels": examples["label"]}


def converted_first(examples: Any) -> Any:
    images = [image.convert("RGB") for image in examples["image"]]
    examples["image"] = [VERSION_2(image) for image in images]
    return examples


def in_loop(examples: Any) -> Any:
    batch = {"pixel_values": [], "size": [], "label": torch.tensor(examples["label"])}
    for image, label in zip(examples.pop("image"), examples["label"], strict=True):
        batch["size"].append(image.size[0] + label)
        batch["pixel_values"].append(SEQUENCE(image.convert("RGB") if image.mode != "RGB" else image))
    return batch


def with_arguments(examples: Any) -> Any:
    examples["pixel_values"] = [RANDOM(image.convert("RGB")) for image in examples[ARGUMENTS.column]]
    del examples[ARGUMENTS.column]
    return examples


def in_closure(transform: Any) -> Callable[[Any], Any]:
    def apply(examples: Any) -> Any:
        return {"image": [transform(image.convert("RGB")) for image in examples["image"]], "name": examples["name"]}

    return apply


class Preparation:
    def __init__(self, transform: Any) -> None:
        self.transform, self.column = transform, "image"

    def apply(self, examples: Any) -> Any:
        return {"image": [self.transform(image.convert("RGB")) for image in examples[self.column]]}

    def __call__(self, examples: Any) -> Any:
        return {"image": [self.transform(image.convert("RGB")) for image in examples["image"]], "x": examples["label"]}


FULL = [
    documented, with_arguments, new_batch, converted_first, in_loop, in_closure(RANDOM),
    Preparation(RANDOM).apply, Preparation(PLAIN),
]  # fmt: skip


def of_user(images: list[Any], texts: list[str]) -> list[float]:
    pairs = zip(images, texts, strict=True)
    return [random.random() + np.random.rand() + len(text) + image.size[0] for image, text in pairs]


def calls(examples: Any) -> Any:
    images = [image.convert("RGB") for image in examples["image"]]
    examples["scores"] = of_user(images, examples["name"])
    examples["image"] = [RANDOM(image) for image in images]
    return examples


def uses_pixels(examples: Any) -> Any:
    means = [np.asarray(image.convert("L").rotate(90)).mean() for image in examples["image"]]
    return {"mean": means, "image": [RANDOM(image.convert("RGB")) for image in examples["image"]]}


def thumbnails(examples: Any) -> Any:
    for image in examples["image"]:
        image.thumbnail((20, 20))
    return {"image": [PLAIN(image.convert("RGB")) for image in examples["image"]]}


def draws(examples: Any) -> Any:
    numbers = torch.rand(len(examples["image"]))
    return {"numbers": numbers, "image": [RANDOM(image.convert("RGB")) for image in examples["image"]]}


def two_transforms(examples: Any) -> Any:
    cropped = [ENDS_WITH_IMAGES(image.convert("RGB")) for image in examples["image"]]
    return {"image": [to_tensor(image) for image in cropped]}


def with_user_code(examples: Any) -> Any:
    return {"image": [WITH_USER_CODE(image.convert("RGB")) for image in examples["image"]]}


def draws_from_python(examples: Any) -> Any:
    return {"image": [DRAWS_FROM_PYTHON(image.convert("RGB")) for image in examples["image"]]}


def keeps(examples: Any) -> Any:
    SEEN.append(len(examples["label"]))
    return {"image": [RANDOM(image.convert("RGB")) for image in examples["image"]]}


def stores(examples: Any) -> Any:
    NAMES[examples["label"][0]] = examples["name"][0]
    return {"image": [RANDOM(image.convert("RGB")) for image in examples["image"]]}


def calls_local(examples: Any) -> Any:
    images = [image.convert("RGB") for image in examples["image"]]
    for function in STEPS:
        images = list(map(function, images))
    return {"image": [RANDOM(function(image)) for image in images]}


def has_lambda(examples: Any) -> Any:
    labels = sorted(examples["label"], key=lambda label: -label)
    return {"image": [RANDOM(image.convert("RGB")) for image in examples["image"]], "labels": labels}


HYBRID = {
    keeps: "keeps uses SEEN.append,",
    stores: "stores uses NAMES[examples['label'][0]],",
    calls_local: "calls_local uses map,",
    has_lambda: "has_lambda uses lambda label: -label,",
    calls: "calls uses of_user,",
    uses_pixels: "uses_pixels uses image.convert('L').rotate,",
    thumbnails: "thumbnails uses image.thumbnail,",
    draws: "draws uses torch.rand,",
    two_transforms: "",
    with_user_code: "Brighten",
    draws_from_python: "draws_from_python uses DRAWS_FROM_PYTHON,",
}


def events(kind: Any, dataset: Any, epochs: int = 2, **options: Any) -> list[Any]:
    """Return the batches of some epochs, or their errors, and the states of the generators."""
    seed()
    loader = kind(dataset, **{"batch_size": 3, "shuffle": True, **options})
    found: list[Any] = []
    for _ in range(epochs):
        found += until_the_end(loader)
    return [*found, torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()]


def is_equal(dataset: Any, **options: Any) -> None:
    """Assert that both loaders return the same batches."""
    same(events(DataLoader, dataset, **options), events(TorchLoader, dataset, **options))


@pytest.fixture
def never_falls_back(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that compares both loaders, while Hugging Face must not be asked for whole samples."""

    def compare(dataset: Any, **options: Any) -> None:
        expected = events(TorchLoader, dataset, **options)
        with monkeypatch.context() as context:
            context.setattr(datasets.Dataset, "__getitems__", None)
            same(events(DataLoader, dataset, **options), expected)

    return compare


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("function", FULL)
def test_batches_of_threads(function, workers, in_memory, files, never_falls_back):
    dataset = dataset_of(files, in_memory=in_memory).with_transform(function)
    report = DataLoader(dataset, num_workers=workers, on_fallback="raise").explain()
    assert report.mode == "full", report
    assert report.lines[0].startswith("Dataset of 11 rows: ")
    never_falls_back(dataset, num_workers=workers)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("function", HYBRID)
def test_functions_with_other_code_run_in_workers(function, workers, files, never_falls_back):
    dataset = dataset_of(files).with_transform(function)
    report = DataLoader(dataset, num_workers=workers).explain()
    assert report.mode == "hybrid"
    assert HYBRID[function] in report.reason
    never_falls_back(dataset, num_workers=workers)


def collate(examples: list[Any]) -> Any:
    pixel_values = torch.stack([example["pixel_values"] for example in examples])
    return {"pixel_values": pixel_values, "labels": torch.tensor([example["label"] for example in examples])}


def describe(examples: list[Any]) -> Any:
    """Return all that Pillow knows about the images."""
    images = [example["image"] for example in examples]
    found = [(each.mode, each.size, each.format, sorted(each.info), dict(each.getexif())) for each in images]
    names = [getattr(image, "filename", None) for image in images]
    return [found, names, [image.tobytes() for image in images], [type(image).__name__ for image in images]]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("collate_fn", [collate, describe])
def test_images_that_remain_in_the_samples(collate_fn, workers, files, never_falls_back):
    dataset = dataset_of(files).with_transform(with_images)
    options = {"num_workers": workers, "collate_fn": collate_fn}
    assert DataLoader(dataset, **options).explain().mode == "full"
    never_falls_back(dataset, **options)


def test_images_that_remain_can_be_pickled(files):
    dataset = dataset_of(files).with_transform(with_images)
    loaded, expected = (
        pickle.loads(pickle.dumps(next(iter(kind(dataset, batch_size=COUNT, collate_fn=list)))))
        for kind in (DataLoader, TorchLoader)
    )
    for one, other in zip(loaded, expected, strict=True):
        assert one["image"] == other["image"]


SELECTED: dict[str, Callable[[Any], Any]] = {
    "select": lambda dataset: dataset.select([7, 2, 2, 5]),
    "shuffle": lambda dataset: dataset.shuffle(seed=1),
    "filter": lambda dataset: dataset.filter(lambda label: label % 3, input_columns="label"),
    "split": lambda dataset: dataset.train_test_split(4, seed=1)["test"],
    "concatenated": lambda dataset: datasets.concatenate_datasets([dataset, dataset.select([1])]),
    "sharded": lambda dataset: dataset.shard(2, 1),
}


@pytest.mark.parametrize("name", SELECTED)
def test_selected_rows(name, files, never_falls_back):
    dataset = SELECTED[name](dataset_of(files)).with_transform(documented)
    assert DataLoader(dataset).explain().mode == "full"
    never_falls_back(dataset, drop_last=True)


def test_a_folder(files, tmp_path, never_falls_back):
    folder = str(files[0].parent)
    dataset = datasets.load_dataset("imagefolder", data_dir=folder, split="train", cache_dir=str(tmp_path))
    never_falls_back(dataset.with_transform(documented))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("tree", [Subset, ConcatDataset])
def test_trees_of_datasets(tree, workers, files):
    dataset = dataset_of(files).with_transform(documented)
    whole = Subset(dataset, [5, 3, 0, 0]) if tree is Subset else ConcatDataset([dataset, dataset.select([2])])
    assert DataLoader(whole, num_workers=workers).explain().mode == "full"
    is_equal(whole, num_workers=workers)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_modes_of_the_feature(mode, files, never_falls_back):
    dataset = dataset_of(files, feature=datasets.Image(mode=mode)).with_transform(documented)
    never_falls_back(dataset)


def not_converted(examples: Any) -> Any:
    return {"image": [PLAIN(image) for image in examples["image"]], "label": examples["label"]}


def test_images_that_are_not_converted(files, never_falls_back):
    for chosen in (files[:5], [file for file in files if "gray" in file.name]):
        never_falls_back(dataset_of(chosen).with_transform(not_converted))


def test_columns(files, never_falls_back):
    dataset = dataset_of(files)
    never_falls_back(dataset.with_transform(documented, columns=["image", "label"]))
    dataset = dataset.with_transform(documented, columns=["image", "label"], output_all_columns=True)
    assert DataLoader(dataset, on_fallback="silent").explain().mode == "torch"


def pairs(examples: Any) -> Any:
    images = [RANDOM(image.convert("RGB")) for image in examples["image"]]
    return {"image": images, "mask": [RANDOM(image.convert("RGB")) for image in examples["mask"]]}


def test_two_columns_of_images(files, never_falls_back):
    dataset = dataset_of(files)
    dataset = dataset.add_column("mask", dataset["name"]).remove_columns("name")
    dataset = dataset.map(lambda row: {"mask": str(files[row["label"] // 2])}).cast_column("mask", datasets.Image())
    assert DataLoader(dataset.with_transform(pairs)).explain().mode == "full"
    never_falls_back(dataset.with_transform(pairs))


def test_a_transform_set_between_epochs(files):
    def found(kind: Any) -> list[Any]:
        seed()
        dataset = dataset_of(files)
        dataset.set_transform(documented)
        loader = kind(dataset, batch_size=4, num_workers=2)
        batches = list(loader)
        dataset.set_transform(new_batch)
        return [*batches, *loader]

    same(found(DataLoader), found(TorchLoader))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("changed", ["function", "attribute", "variable", "parameter"])
def test_changes_during_an_epoch(changed, workers, files):
    def found(kind: Any) -> list[Any]:
        seed()
        transform = transforms.Compose([transforms.CenterCrop(20), transforms.ToTensor()])
        dataset = dataset_of(files)
        preparation = Preparation(transform)

        def apply(examples: Any) -> Any:
            return {"image": [transform(image.convert("RGB")) for image in examples["image"]]}

        dataset.set_transform(preparation.apply if changed == "attribute" else apply)
        batches = []
        for number, batch in enumerate(kind(dataset, batch_size=1, num_workers=workers)):
            batches.append(batch)
            if number != 2:
                continue
            if changed == "function":
                dataset.set_transform(new_batch)
            elif changed == "attribute":
                preparation.transform = PLAIN
            elif changed == "variable":
                transform = PLAIN
            else:
                transform.transforms[0] = transforms.CenterCrop(10)
        return batches

    same(found(DataLoader), found(TorchLoader))


def test_resuming(files):
    dataset = dataset_of(files).with_transform(documented)
    seed()
    loader = DataLoader(dataset, batch_size=2, shuffle=True, num_workers=2)
    batches = iter(loader)
    next(batches), next(batches)
    state, expected = loader.state_dict(), list(batches)
    resumed = DataLoader(dataset, batch_size=2, shuffle=True, num_workers=2)
    resumed.load_state_dict(state)
    same(list(resumed), expected)


def assigns(examples: Any) -> Any:
    global COLUMN
    COLUMN = "image"
    return documented(examples)


def unknown(examples: Any) -> Any:
    return {"image": [np.asarray(image.convert("RGB").resize((9, 9))) for image in examples["image"]]}


class Counting(Preparation):
    count = 0

    def apply(self, examples: Any) -> Any:
        self.count += 1
        return {"image": [self.transform(image.convert("RGB")) for image in examples[self.column]]}


LEFT_TO_TORCH: dict[str, tuple[Callable[[Any], Any], str]] = {
    "lambda": (
        lambda dataset: dataset.with_transform(lambda examples: documented(examples)),
        "the function <lambda> of set_transform cannot be analyzed",
    ),
    "built-in": (lambda dataset: dataset.with_transform(dict), "the function dict of set_transform cannot be"),
    "no transform": (lambda dataset: dataset.with_transform(unknown), "unknown calls no transform that dalify"),
    "global variable": (lambda dataset: dataset.with_transform(assigns), "assigns assigns variables of other"),
    "method": (
        lambda dataset: dataset.with_transform(Counting(PLAIN).apply), "apply is a method that uses self.count",
    ),
    "no function": (lambda dataset: dataset, "has no function that transforms batches"),
    "format": (lambda dataset: dataset.with_format("torch"), "has no function that transforms batches"),
    "no images": (lambda dataset: dataset.remove_columns("image"), "has no column of images"),
    "not decoded": (
        lambda dataset: dataset.cast_column("image", datasets.Image(decode=False)), "has no column of images",
    ),
    "list of images": (
        lambda dataset: dataset.map(lambda row: {"all": [row["image"]]}).with_transform(documented),
        "Hugging Face decodes the column 'all'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_TO_TORCH)
def test_other_datasets_are_left_to_torch(name, files):
    make, reason = LEFT_TO_TORCH[name]
    dataset = make(dataset_of(files[:5]))
    report = DataLoader(dataset, on_fallback="silent").explain()
    assert report.mode == "torch"
    assert reason in report.reason
    options = {"collate_fn": lambda samples: [sorted(sample) for sample in samples]}
    same(events(DataLoader, dataset, on_fallback="silent", **options), events(TorchLoader, dataset, **options))


def test_streams_are_left_to_torch(files):
    stream = dataset_of(files).remove_columns("image").to_iterable_dataset()
    loader = DataLoader(stream, batch_size=3, on_fallback="silent")
    assert loader.explain().code == "DS01"
    same(list(loader), list(TorchLoader(stream, batch_size=3)))


class Wrapper(Dataset[Any]):
    def __init__(self, dataset: Any, transform: Any = RANDOM) -> None:
        self.dataset, self.transform = dataset, transform

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        item = self.dataset[index]
        image = item["image"].convert("RGB")
        return self.transform(image), item["label"]


class WrapperOfDictionaries(Wrapper):
    def __getitem__(self, index: int) -> Any:
        row = self.dataset[int(index)]
        row["image"] = self.transform(row["image"].convert("RGB"))
        row["length"] = len(row["name"])
        return row


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Wrapper, WrapperOfDictionaries])
@pytest.mark.parametrize("in_memory", [False, True])
def test_datasets_of_users_with_such_a_dataset(kind, workers, in_memory, files):
    dataset = kind(dataset_of(files, in_memory=in_memory).shuffle(seed=1))
    report = DataLoader(dataset, num_workers=workers, on_fallback="raise").explain()
    assert report.mode == "full", report
    is_equal(dataset, num_workers=workers)


def test_datasets_of_users_that_are_left_to_torch(files):
    for dataset in (dataset_of(files).with_transform(documented), dataset_of(files).with_format("numpy")):
        assert DataLoader(Wrapper(dataset), on_fallback="silent").explain().mode == "torch"


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("problem", ["missing", "truncated", "text", "null"])
@pytest.mark.parametrize("kind", ["function", "wrapper"])
def test_errors_are_those_of_torch_and_the_next_batch_comes(kind, problem, workers, files, tmp_path):
    path = tmp_path / "damaged.jpg"
    if problem == "truncated":
        path.write_bytes(files[0].read_bytes()[:-300])
    elif problem == "text":
        path.write_bytes(b"not an image")
    in_memory = problem == "truncated"  # Hugging Face does not close such files
    dataset = dataset_of([*files[:4], path, *files[4:]], in_memory=in_memory)
    if problem == "null":
        dataset = datasets.Dataset.from_dict({"image": [str(files[0])] * 4 + [None] * 2, "label": list(range(6))})
        dataset = dataset.cast_column("image", datasets.Image())
    dataset = Wrapper(dataset) if kind == "wrapper" else dataset.with_transform(documented)
    options = {"num_workers": workers, "shuffle": False}
    assert DataLoader(dataset, num_workers=workers).explain().mode == "full"
    is_equal(dataset, **options)
    with pytest.raises((OSError, AttributeError)) as caught:
        list(DataLoader(dataset, batch_size=3, **options))
    text = str(caught.value) + "\n".join(getattr(caught.value, "__notes__", ()))
    if problem != "null":
        assert f"raised while the file {(path.name if in_memory else str(path))!r} was read" in text
        assert "raised while sample 4 was loaded" in text


def test_an_index_out_of_range(files):
    dataset = dataset_of(files).with_transform(documented)
    is_equal(dataset, batch_sampler=[[1, 2], [3, COUNT], [4, 5]], batch_size=1, shuffle=False)


def fails(examples: Any) -> Any:
    if 6 in examples["label"]:
        raise ValueError("no six")
    return {"image": [RANDOM(image.convert("RGB")) for image in examples["image"]], "x": np.random.rand(3)}


@pytest.mark.parametrize("workers", [0, 1])
def test_errors_of_the_function(workers, files):
    is_equal(dataset_of(files).with_transform(fails), num_workers=workers)


def test_samples_without_batches(files):
    dataset = dataset_of(files).with_transform(documented)
    is_equal(dataset, batch_size=None, shuffle=False)
