"""Iterators follow the conventions of torchdata's StatefulDataLoader: when a state may be taken, and what follows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from torch.utils.data import Dataset

from dalify import fn, pipeline_def
from dalify.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy

COUNT, BATCH, EPOCHS = 10, 3, 3


class Numbers(Dataset):
    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> np.int64:
        return np.int64(index)


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, seed=1)
def numbers(outputs: int) -> Any:
    number = fn.readers.dataset(
        dataset=Numbers(), num_outputs=1, random_shuffle=True, pad_last_batch=True, name="Reader"
    )
    return (number,) * outputs


def generic() -> Any:
    return DALIGenericIterator(
        numbers(1), ["data"], reader_name="Reader", auto_reset=True, last_batch_policy=LastBatchPolicy.PARTIAL
    )


def classification() -> Any:
    return DALIClassificationIterator(
        numbers(2), reader_name="Reader", auto_reset=True, last_batch_policy=LastBatchPolicy.PARTIAL
    )


@pytest.fixture(params=["torchdata", "generic", "classification"])
def make(request: pytest.FixtureRequest) -> Any:
    if request.param != "torchdata":
        return {"generic": generic, "classification": classification}[request.param]
    loaders = pytest.importorskip("torchdata.stateful_dataloader")
    return lambda: loaders.StatefulDataLoader(Numbers(), batch_size=BATCH, shuffle=False)


def items_of(batch: Any) -> list[int]:
    return (batch[0]["data"] if isinstance(batch, list) else batch).tolist()


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_a_state_of_any_position_continues(make: Any) -> None:
    loader = make()
    whole: list[list[int]] = []
    states: list[Any] = [loader.state_dict()]  # before the first batch
    for _ in range(EPOCHS):
        epoch = []
        for batch in loader:
            epoch.append(items_of(batch))
            states.append(loader.state_dict())
        assert sorted(number for items in epoch for number in items) == list(range(COUNT))
        whole += epoch
    per_epoch = len(whole) // EPOCHS
    for step, state in enumerate(states[:-per_epoch]):
        again = make()
        again.load_state_dict(state)
        left = [items_of(batch) for batch in again]
        # What is left of this epoch, perhaps nothing; the next one is complete.
        rest = -step % per_epoch
        if step == 0:
            assert left == whole[:per_epoch]
            continue
        assert left == whole[step : step + rest]
        assert [items_of(batch) for batch in again] == whole[step + rest : step + rest + per_epoch]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_a_loader_in_use_can_load_a_state(make: Any) -> None:
    loader = make()
    whole, states = [], []
    for batch in loader:
        whole.append(items_of(batch))
        states.append(loader.state_dict())
    iterator = iter(loader)
    next(iterator)
    loader.load_state_dict(states[0])
    assert [items_of(batch) for batch in loader] == whole[1:]


@pytest.mark.parametrize("ours", [generic, classification])
def test_states_are_plain_data(ours: Any) -> None:
    loader = ours()
    next(iter(loader))
    state = json.loads(json.dumps(loader.state_dict()))
    again = ours()
    again.load_state_dict(state)
    assert [items_of(batch) for batch in again] == [items_of(batch) for batch in ours()][1:]
