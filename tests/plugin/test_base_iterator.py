"""Iterators of programs for DALI that derive from ``_DaliBaseIterator``."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dalify
from dalify.base.errors import NoDataError
from dalify.plugin import numpy as plugin
from dalify.plugin.base_iterator import LastBatchPolicy, _DaliBaseIterator

SAMPLES = 10


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice about `size`
        yield


def labels(dali: ModuleType, file: Path, shard: int, shards: int, **reader: Any) -> Any:
    @dali.pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def numbers() -> Any:
        options = {"files": [str(file)] * SAMPLES, "labels": list(range(SAMPLES)), **reader}
        return dali.fn.readers.file(name="Reader", shard_id=shard, num_shards=shards, **options)[1]

    return numbers()


def iterator_class(dali: ModuleType) -> Any:
    """Return a class with the methods of DALI's own iterators."""
    base: Any = import_module(f"{dali.__name__}.plugin.base_iterator")

    class Iterator(base._DaliBaseIterator):
        def __init__(self, pipelines: Any, names: list[str], *arguments: Any) -> None:
            self.output_map = names
            base._DaliBaseIterator.__init__(self, pipelines, *arguments)
            if self._prepare_first_batch:
                try:
                    self._first_batch = Iterator.__next__(self)
                    self._ever_consumed = False
                except StopIteration:
                    self._report_no_data_in_pipeline()

        _first_batch: Any = None

        def __next__(self) -> Any:
            self._ever_consumed = True
            if self._first_batch is not None:
                batch, self._first_batch = self._first_batch, None
                return batch
            outputs = self._get_outputs()
            data = [np.array(outputs[index][0].as_array()) for index in range(self._num_gpus)]
            self._schedule_runs()
            self._advance_and_check_drop_last()
            if self._reader_name:
                is_any_dropped, left = self._remove_padded()
                return [x[:count] for x, count in zip(data, left, strict=True)] if np.any(is_any_dropped) else data
            if self._last_batch_policy is base.LastBatchPolicy.PARTIAL and self._counter > self._size > 0:
                missing = self._num_gpus * self.batch_size - (self._counter - self._size)
                data = data[: -(-missing // self.batch_size)]
                data[-1] = data[-1][: missing % self.batch_size or self.batch_size]
            return data

    return Iterator


def epochs(dali: ModuleType, file: Path, shards: int, policy: str, by_reader: bool, padded: bool, first: bool) -> Any:
    policies: Any = import_module(f"{dali.__name__}.plugin.base_iterator").LastBatchPolicy
    pipes = [labels(dali, file, shard, shards, pad_last_batch=padded) for shard in range(shards)]
    size, reader = (-1, "Reader") if by_reader else (SAMPLES, None)
    is_padded = padded and not by_reader
    options = (size, reader, False, None, is_padded, getattr(policies, policy), first)
    loader = iterator_class(dali)(pipes, ["x"], *options)
    found: list[Any] = [loader.size, len(loader)]
    for _ in range(3):
        found.append([[part.ravel().tolist() for part in batch] for batch in loader])
        loader.reset()
    return found


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("by_reader", [True, False])
@pytest.mark.parametrize("policy", ["FILL", "PARTIAL", "DROP"])
@pytest.mark.parametrize("shards", [1, 2])
def test_epochs_are_those_of_the_own_iterators_and_of_dali(
    oracle: Any, tmp_path: Path, shards: int, policy: str, by_reader: bool, padded: bool, first: bool
) -> None:
    options = (tmp_path / "file", shards, policy, by_reader, padded, first)
    options[0].write_bytes(b"x")
    found = epochs(dalify, *options)
    assert found == epochs(oracle, *options)
    pipes = [labels(dalify, options[0], shard, shards, pad_last_batch=padded) for shard in range(shards)]
    size: dict[str, Any] = {"reader_name": "Reader"}
    if not by_reader:
        size = {"size": SAMPLES, "last_batch_padded": padded}
    loader = plugin.DALIGenericIterator(pipes, ["x"], last_batch_policy=LastBatchPolicy[policy], **size)
    own = [[[part["x"].ravel().tolist() for part in batch] for batch in loader] for _ in range(3)]
    assert found[2:] == own


def test_all_iterators_are_of_this_class() -> None:
    assert issubclass(plugin.DALIGenericIterator, _DaliBaseIterator)


def test_without_a_next_the_outputs_are_returned(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    loader = _DaliBaseIterator(labels(dalify, tmp_path / "file", 0, 1), reader_name="Reader", auto_reset=True)
    assert [[outputs[0].as_array().ravel().tolist() for (outputs,) in loader] for _ in range(2)] == [
        [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]],
        [[2, 3, 4, 5], [6, 7, 8, 9]],
    ]
    restored = _DaliBaseIterator(labels(dalify, tmp_path / "file", 0, 1), reader_name="Reader", auto_reset=True)
    restored.load_state_dict(loader.state_dict())
    (wanted,), (found,) = next(loader), next(restored)
    assert found[0].as_array().tolist() == wanted[0].as_array().tolist()


def test_a_subclass_may_end_an_epoch(tmp_path: Path) -> None:
    class Short(_DaliBaseIterator):
        def __next__(self) -> Any:
            if self._counter == 4:
                self._end_iteration()
            return super().__next__()[0][0].as_array().ravel().tolist()

    (tmp_path / "file").write_bytes(b"x")
    loader = Short(labels(dalify, tmp_path / "file", 0, 1), reader_name="Reader", auto_reset=True)
    assert [list(loader) for _ in range(2)] == [[[0, 1, 2, 3]]] * 2


def test_no_batch(tmp_path: Path) -> None:
    @dalify.pipeline_def(batch_size=2, num_threads=1)
    def nothing() -> Any:
        return dalify.fn.external_source(source=iter([]))

    with pytest.raises(NoDataError, match="no batch"):
        iterator_class(dalify)(nothing(), ["x"])
