"""HabanaDataLoader over COCO with SSD's transforms: batches equal to those of torch's loader, bit for bit."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, RandomSampler

from dalify.base.errors import ArgumentValueError
from dalify.mediapipe.habana_dataloader import HabanaDataLoader
from tests.helpers.photos import drawn_photo
from tests.helpers.torchvision_import import import_torchvision
from tests.mediapipe.ssd_program import COCODetection, SSDTransformer
from tests.plugin.dropin.torch_reference import same

IMAGES = 13


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Limit torch to one thread: its threads would wait for each other on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def coco(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A folder of photographs and its annotations; one photograph has no box, one is gray, one is a PNG."""
    folder = tmp_path_factory.mktemp("coco")
    draw = np.random.default_rng(0)
    images, annotations = [], []
    for number in range(IMAGES):
        height, width = 60 + 7 * number, 150 - 5 * number
        image = Image.fromarray(drawn_photo(height, width, number)).convert("L" if number == 3 else "RGB")
        name = f"{number:012}.{'png' if number == 4 else 'jpg'}"
        image.save(folder / name)
        images.append({"id": 1000 + number, "file_name": name, "height": height, "width": width})
        for _ in range(0 if number == 5 else 1 + number % 4):
            left, top = draw.uniform(0, [width * 0.6, height * 0.6]).tolist()
            box = [left, top, *draw.uniform(8, [width - left, height - top]).tolist()]
            annotations.append({"image_id": 1000 + number, "category_id": int(draw.choice([1, 3, 90])), "bbox": box})
    categories = [{"id": number, "name": str(number)} for number in (1, 3, 90)]
    info = {"description": "COCO 2017 Dataset"}
    content = {"info": info, "images": images, "annotations": annotations, "categories": categories}
    (folder / "annotations.json").write_text(json.dumps(content))
    return str(folder), str(folder / "annotations.json")


def dataset(coco: tuple[str, str], kind: type[COCODetection] = COCODetection, **options: Any) -> Any:
    transforms = import_torchvision("torchvision.transforms")
    return kind(*coco, SSDTransformer(transforms, size=(60, 48), **options))


def epochs(kind: type[DataLoader], data: Any, count: int = 1, **options: Any) -> list[Any]:
    """All batches of some epochs, and what the generators give afterwards."""
    torch.manual_seed(4)
    random.seed(5)
    loader = kind(data, sampler=RandomSampler(data), drop_last=True, **options)
    batches = [batch for _ in range(count) for batch in loader]
    return [*batches, float(torch.rand(1)), random.random()]


@pytest.mark.parametrize(("num_workers", "is_evaluation"), [(0, False), (2, False), (0, True)])
def test_batches_equal_torch(coco: tuple[str, str], num_workers: int, is_evaluation: bool) -> None:
    data = dataset(coco, val=is_evaluation)
    loader = HabanaDataLoader(data, batch_size=5, num_workers=num_workers, drop_last=True)
    assert loader.accelerated
    assert len(loader) == (IMAGES - 1) // 5
    assert "COCODetection of 12 files with boxes" in str(loader.explain())
    found = epochs(HabanaDataLoader, data, 2, batch_size=5, num_workers=num_workers)
    same(found, epochs(DataLoader, data, 2, batch_size=5, num_workers=num_workers))
    images, keys, (heights, widths), boxes, labels = found[0]
    anchors = 200 if is_evaluation else 8732
    assert images.shape == (5, 3, 60, 48)
    assert keys.dtype == heights.dtype == widths.dtype == labels.dtype == torch.int64
    assert boxes.shape == (5, anchors, 4)
    assert labels.shape == (5, anchors)


def test_parameters_are_the_transforms_own(coco: tuple[str, str]) -> None:
    data = dataset(coco)
    transforms = import_torchvision("torchvision.transforms")
    data.transform.crop.num_cropping_iterations = 3
    data.transform.crop.sample_options = ((0.2, 0.9), (None, None))
    data.transform.hflip.p = 0.9
    jitter = transforms.ColorJitter(brightness=0.5, hue=(0.1, 0.3))
    data.transform.img_trans = transforms.Compose(
        [transforms.Resize((40, 30), transforms.InterpolationMode.BICUBIC), jitter, transforms.ToTensor()]
    )
    data.transform.normalize = transforms.Normalize([0.5, 0.4, 0.3], [0.1, 0.2, 0.3])
    assert HabanaDataLoader(data).accelerated
    same(epochs(HabanaDataLoader, data, batch_size=4), epochs(DataLoader, data, batch_size=4))


def test_a_collate_function_gets_the_samples(coco: tuple[str, str]) -> None:
    data = dataset(coco)
    options = {"batch_size": 4, "num_workers": 1, "collate_fn": lambda samples: (random.random(), samples)}
    same(epochs(HabanaDataLoader, data, **options), epochs(DataLoader, data, **options))


def test_the_program_is_unchanged(coco: tuple[str, str]) -> None:
    """The constructor of a loader computes some samples; that changes no random numbers of the program."""
    random.seed(1)
    torch.manual_seed(1)
    expected = random.random(), float(torch.rand(1))
    random.seed(1)
    torch.manual_seed(1)
    HabanaDataLoader(dataset(coco))
    assert (random.random(), float(torch.rand(1))) == expected


class Shifted(COCODetection):
    def __getitem__(self, index: int) -> Any:
        image, *others = super().__getitem__(index)
        return image + 1, *others


def test_rules_of_their_own_are_noticed(
    coco: tuple[str, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = dataset(coco, Shifted)
    loader = HabanaDataLoader(data, batch_size=4)
    assert not loader.accelerated
    assert "differs from SSD's reference" in str(loader.fallback_reason)
    assert caplog.messages[-1].startswith("Failed to initialize Habana Dataloader, error: sample 0 of Shifted")
    assert caplog.messages[-1].endswith("\nRunning with PyTorch Dataloader")
    same(epochs(HabanaDataLoader, data, batch_size=4), epochs(DataLoader, data, batch_size=4))
    monkeypatch.setenv("DATALOADER_FALLBACK_EN", "false")
    with pytest.raises(ArgumentValueError, match="cannot be accelerated: sample 0"):
        HabanaDataLoader(data)


def test_unknown_items_are_left_to_torch(coco: tuple[str, str]) -> None:
    transforms = import_torchvision("torchvision.transforms")
    data = dataset(coco)
    data.transform.img_trans.transforms.insert(0, transforms.Lambda(lambda image: image))
    assert "Lambda" in str(HabanaDataLoader(data).fallback_reason)
    data = dataset(coco)
    del data.transform.crop.sample_options
    assert "sample_options" in str(HabanaDataLoader(data).fallback_reason)
    assert "backend='torch'" in str(HabanaDataLoader(dataset(coco), backend="torch").fallback_reason)
    assert "worker_init_fn" in str(HabanaDataLoader(dataset(coco), worker_init_fn=print).fallback_reason)
    data = dataset(coco)
    data.img_folder = "/nowhere"
    assert "samples cannot be computed: FileNotFoundError" in str(HabanaDataLoader(data).fallback_reason)


def test_a_broken_file_does_not_change_the_draws(coco: tuple[str, str]) -> None:
    """After the error, random numbers continue as those of torch."""
    content = (Path(coco[0]) / f"{IMAGES - 1:012}.jpg").read_bytes()
    (Path(coco[0]) / "cut.jpg").write_bytes(content[: len(content) // 2])

    def batches(kind: type[DataLoader]) -> list[Any]:
        data = dataset(coco)
        data.images[data.img_keys[1]] = ("cut.jpg", *data.images[data.img_keys[-1]][1:])
        torch.manual_seed(0)
        random.seed(0)
        found: list[Any] = []
        iterator = iter(kind(data, batch_size=1))
        for _ in range(4):
            try:
                found.append(next(iterator))
            except OSError as error:
                found.append(type(error).__name__)
        return found

    expected = batches(DataLoader)
    assert [type(batch) is str for batch in expected] == [False, True, False, False]
    same(batches(HabanaDataLoader), expected)
