"""Batches compared with those of torch's own function."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch.utils import data
from torch.utils.data._utils.collate import default_collate_fn_map

from dalify.plugin.pytorch import DataLoader
from dalify.plugin.pytorch.dropin.collating import default_collate
from tests.plugin.dropin.torch_reference import TorchLoader, cifar, datasets, same, transforms

FLOATS = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
SAMPLES: dict[str, list[Any]] = {
    "pairs": [(FLOATS, 1), (FLOATS + 1, 2)],
    "bytes": [(FLOATS.to(torch.uint8), "a"), (FLOATS.to(torch.uint8), "b")],
    "nested labels": [(FLOATS, {"a": (1, 2.0)}), (FLOATS, {"a": (3, 4.0)})],
    "another order of memory": [(FLOATS.permute(2, 0, 1), 1), (FLOATS.permute(2, 0, 1), 2)],
    "sixteen bits": [(FLOATS.half(), 1), (FLOATS.half(), 2)],
    "lists": [[FLOATS, 1], [FLOATS, 2]],
    "three": [(FLOATS, 1, 2), (FLOATS, 3, 4)],
    "tensors": [FLOATS, FLOATS],
    "numbers first": [(1, FLOATS), (2, FLOATS)],
    "empty": [(FLOATS[:0], 1), (FLOATS[:0], 1)],
    "dictionaries": [{"a": FLOATS, "b": 1, "c": "x", "d": [1, 2]}, {"a": FLOATS + 1, "b": 2, "c": "y", "d": [3, 4]}],
    "other keys": [{"a": FLOATS}, {"b": 1, "a": FLOATS}],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_same_as_torch(name):
    found, expected = default_collate(SAMPLES[name]), data.default_collate(SAMPLES[name])
    same(found, expected)
    if isinstance(found, list) and isinstance(found[0], torch.Tensor):
        assert found[0].stride() == expected[0].stride()


@pytest.mark.parametrize(
    "samples",
    [
        [],
        [(FLOATS, 1), (FLOATS[:1], 2)],
        [(FLOATS, 1), (FLOATS, 2, 3)],
        [(FLOATS, 1), (FLOATS, object())],
        [(FLOATS, 1), (FLOATS.clone().requires_grad_(), 1)],
        [{"a": FLOATS}, {"b": FLOATS}],
        [{"a": FLOATS}, {"a": FLOATS[:1]}],
    ],
)
def test_same_errors(samples):
    raised: list[Any] = []
    for function in (default_collate, data.default_collate):
        try:
            raised.append(function(samples))
        except Exception as error:
            raised.append((type(error), str(error)))
    if isinstance(raised[0], tuple):
        assert raised[0] == raised[1]
    else:
        same(*raised)


def test_batches_are_kept():
    kept = [default_collate([(FLOATS + number, 0)] * 2)[0] for number in range(4)]
    for number, batch in enumerate(kept):
        assert torch.equal(batch, torch.stack([FLOATS + number] * 2))


def describe(samples, *, collate_fn_map=None):
    return [type(samples[0]).__name__, len(samples)]


@pytest.mark.parametrize("kind", [int, torch.Tensor, tuple, Sequence, Collection, object])
@pytest.mark.parametrize("mode", ["full", "hybrid"])
def test_functions_that_users_add_to_the_table_of_torch(kind, mode, monkeypatch):
    monkeypatch.setitem(default_collate_fn_map, kind, describe)
    own = [] if mode == "full" else [lambda image: image]
    dataset = cifar(transforms.Compose([transforms.CenterCrop(8), *own, transforms.ToTensor()]), 4)
    loader = DataLoader(dataset, batch_size=2)
    assert loader.explain().mode == mode
    same(list(loader), list(TorchLoader(dataset, batch_size=2)))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", [dict, Mapping, Collection, object])
def test_functions_for_dictionaries(kind, workers, photo_folder, monkeypatch):
    class Dictionaries(datasets.ImageFolder):
        def __getitem__(self, index: int) -> Any:
            image, label = super().__getitem__(index)
            return {"image": image, "label": label}

    monkeypatch.setitem(default_collate_fn_map, kind, describe)
    steps = transforms.Compose([transforms.Resize((8, 8)), transforms.ToTensor()])
    dataset = Dictionaries(str(photo_folder), steps)
    options = {"batch_size": 2, "num_workers": workers}
    loader = DataLoader(dataset, **options)
    assert loader.explain().mode == "full"
    same(list(loader), list(TorchLoader(dataset, **options)))
