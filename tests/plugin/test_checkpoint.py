"""States of iterators: restored before any batch, an iterator returns the same further batches."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify import fn, pipeline_def
from dalify.base.errors import CheckpointError
from dalify.pipeline import Pipeline
from dalify.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

SIZE = 11


@pytest.fixture(scope="module")
def files(numbered_files: list[str]) -> list[str]:
    return numbered_files[:SIZE]


def pipelines(files: list[str], shards: int = 1, states: list[bytes] | None = None, **options: Any) -> list[Pipeline]:
    reader = {key: options.pop(key) for key in ("random_shuffle", "pad_last_batch", "stick_to_shard") if key in options}

    def make(shard: int) -> Pipeline:
        more = {} if states is None else {"checkpoint": states[shard]}

        @pipeline_def(**{"batch_size": 3, "num_threads": 1, "enable_checkpointing": True, **options, **more})
        def read() -> Any:
            _, labels = fn.readers.file(files=files, name="Reader", shard_id=shard, num_shards=shards, **reader)
            return labels, fn.random.uniform(range=(0.0, 1.0))

        return read()

    return [make(shard) for shard in range(shards)]


def plain(batches: list[dict[str, torch.Tensor]]) -> Any:
    return [{name: tensor.tolist() for name, tensor in batch.items()} for batch in batches]


def stepping(iterator: DALIGenericIterator) -> Any:
    """Batches and "end", epoch after epoch, as a training that calls ``reset()`` after each sees them."""
    while True:
        yield from (plain(batches) for batches in _rest(iterator))
        yield "end"
        iterator.reset()


def _rest(iterator: DALIGenericIterator) -> Any:
    while True:
        try:
            yield next(iterator)
        except StopIteration:
            return


Maker = Callable[..., DALIGenericIterator]


def assert_restores_at_every_step(make: Maker, steps: int) -> None:
    undisturbed = make()
    states: list[tuple[dict[str, Any], list[bytes]]] = []
    run: list[Any] = []
    going = stepping(undisturbed)
    for _ in range(steps):
        states.append((undisturbed.state_dict(), undisturbed.checkpoints()))
        run.append(next(going))
    others = [{}, {"prefetch_queue_depth": 1}, {"num_threads": 2}, {"prefetch_queue_depth": 3}]
    for start, ((state, strings), options) in enumerate(zip(states, itertools.cycle(others))):
        assert state == json.loads(json.dumps(state))
        if start % 2:
            restored = make(states=strings, **options)
        else:
            restored = make(**options)
            restored.load_state_dict(json.loads(json.dumps(state)))
        assert restored.state_dict() == state
        if start and run[start - 1] == "end":
            restored.reset()  # the state was taken between two epochs
        assert list(itertools.islice(stepping(restored), steps - start)) == run[start:], f"step {start}, {options}"


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("policy", LastBatchPolicy)
def test_every_policy(files: list[str], policy: LastBatchPolicy, padded: bool, shards: int) -> None:
    def make(**options: Any) -> DALIGenericIterator:
        made = pipelines(files, shards, random_shuffle=True, pad_last_batch=padded, **options)
        return DALIGenericIterator(made, ["labels", "noise"], reader_name="Reader", last_batch_policy=policy)

    assert_restores_at_every_step(make, 12)


@pytest.mark.filterwarnings("ignore:size does not take shards")
@pytest.mark.parametrize("policy", LastBatchPolicy)
@pytest.mark.parametrize("options", [{"size": SIZE}, {"size": SIZE, "last_batch_padded": True}], ids=str)
def test_epochs_of_a_given_size(files: list[str], policy: LastBatchPolicy, options: dict[str, Any]) -> None:
    def make(**changes: Any) -> DALIGenericIterator:
        made = pipelines(files, pad_last_batch="last_batch_padded" in options, **changes)
        return DALIGenericIterator(made, ["labels", "noise"], last_batch_policy=policy, **options)

    assert_restores_at_every_step(make, 9)


def test_epochs_until_the_data_end() -> None:
    def given_number(info: Any) -> np.ndarray:
        if info.iteration == 3:
            raise StopIteration
        return np.full((2, 1), 10 * info.epoch_idx + info.iteration)

    def make(states: list[bytes] | None = None, **options: Any) -> DALIGenericIterator:
        more = {} if states is None else {"checkpoint": states[0]}

        @pipeline_def(**{"batch_size": 2, "num_threads": 1, **options, **more})
        def graph() -> Any:
            return fn.external_source(given_number, batch_info=True), fn.random.uniform(range=(0.0, 1.0))

        return DALIGenericIterator(graph(), ["data", "noise"])

    assert_restores_at_every_step(make, 9)


@settings(max_examples=25)
@given(data=st.data())
def test_any_position_in_any_epoch(files: list[str], data: st.DataObject) -> None:
    shards = data.draw(st.integers(1, 4), "shards")
    reader = {name: data.draw(st.booleans(), name) for name in ("pad_last_batch", "stick_to_shard", "random_shuffle")}
    policy = data.draw(st.sampled_from(LastBatchPolicy), "policy")
    batch_size = data.draw(st.integers(1, 5), "batch size")
    fresh = data.draw(st.booleans(), "fresh epochs")

    def make(depth: int, states: list[bytes] | None = None) -> DALIGenericIterator:
        made = pipelines(files, shards, states, batch_size=batch_size, prefetch_queue_depth=depth, **reader)
        return DALIGenericIterator(
            made, ["labels", "noise"], reader_name="Reader", last_batch_policy=policy, fresh_epochs=fresh
        )

    pipe = make(data.draw(st.integers(1, 3), "depth"))
    going = stepping(pipe)
    before = data.draw(st.integers(0, 14), "steps before")
    last = None
    for _ in range(before):
        last = next(going)
    restored = make(data.draw(st.integers(1, 3), "depth after"), pipe.checkpoints())
    if last == "end":
        restored.reset()
    assert list(itertools.islice(stepping(restored), 8)) == list(itertools.islice(going, 8))


@settings(max_examples=40)
@given(data=st.data())
def test_epochs_of_a_size_that_is_not_that_of_the_source(data: st.DataObject) -> None:
    items = [np.full((2, 1), number) for number in range(data.draw(st.integers(1, 5), "batches of the source"))]
    cycle = data.draw(st.sampled_from(["raise", "quiet"]), "cycle")
    policy = data.draw(st.sampled_from(LastBatchPolicy), "policy")
    size = data.draw(st.integers(2, 9), "size")

    def make(states: list[bytes] | None = None) -> DALIGenericIterator:
        more = {} if states is None else {"checkpoint": states[0]}
        depth = data.draw(st.integers(1, 3), "depth")

        @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=depth, **more)
        def graph() -> Any:
            return fn.external_source(items, cycle=cycle), fn.random.uniform(range=(0.0, 1.0))

        prepare = data.draw(st.booleans(), "prepare first batch")
        return DALIGenericIterator(
            graph(), ["data", "noise"], size=size, last_batch_policy=policy, prepare_first_batch=prepare
        )

    undisturbed = make()
    going = stepping(undisturbed)
    last = None
    for _ in range(data.draw(st.integers(0, 9), "steps before")):
        last = next(going)
    restored = make(undisturbed.checkpoints())
    if last == "end":
        restored.reset()
    assert list(itertools.islice(stepping(restored), 8)) == list(itertools.islice(going, 8))


# -- loops, as users of torchdata write them ---------------------------------------------------------------------------


def loop(iterator: DALIGenericIterator) -> list[list[int]]:
    return [batch["labels"].ravel().tolist() for (batch,) in iterator]


def by_reader(made: list[Pipeline], **options: Any) -> DALIGenericIterator:
    options = {"last_batch_policy": LastBatchPolicy.PARTIAL, "auto_reset": True, **options}
    return DALIGenericIterator(made, ["labels", "noise"], reader_name="Reader", **options)


def test_a_loop_gives_the_rest_of_the_epoch_and_the_next_loop_the_next_epoch(files: list[str]) -> None:
    loader = by_reader(pipelines(files, random_shuffle=True, pad_last_batch=True))
    first = loop(loader)
    seen: list[Any] = []
    state: dict[str, Any] = {}
    for number, (batch,) in enumerate(loader):
        seen.append(batch["labels"].ravel().tolist())
        if number == 1:
            state = loader.state_dict()
    following = loop(loader)
    other = by_reader(pipelines(files, random_shuffle=True, pad_last_batch=True))
    next(iter(other))  # whatever was read before
    other.load_state_dict(state)
    assert other.epoch == 1
    assert loop(other) == seen[2:]
    assert loop(other) == following
    assert sorted(itertools.chain(*seen)) == sorted(itertools.chain(*first)) == list(range(SIZE))


def test_a_state_between_two_epochs(files: list[str]) -> None:
    for auto_reset in (True, False):
        loader = by_reader(pipelines(files, random_shuffle=True, pad_last_batch=True), auto_reset=auto_reset)
        loop(loader)
        state = loader.state_dict()
        other = by_reader(pipelines(files, random_shuffle=True, pad_last_batch=True), auto_reset=auto_reset)
        other.load_state_dict(state)
        assert loop(other) == loop(loader)
        assert loop(other) == loop(loader)


def test_reset_after_restoring_begins_the_next_epoch(files: list[str]) -> None:
    loader = by_reader(pipelines(files, random_shuffle=True, pad_last_batch=True, seed=2))
    next(loader)
    state = loader.state_dict()
    loader.reset()
    other = by_reader(pipelines(files, random_shuffle=True, pad_last_batch=True, seed=2))
    other.load_state_dict(state)
    other.reset()
    assert loop(other) == loop(loader)


def test_torch_can_save_the_state(files: list[str], tmp_path: Path) -> None:
    loader = by_reader(pipelines(files))
    next(loader)
    torch.save({"loader": loader.state_dict()}, tmp_path / "run.pt")
    other = by_reader(pipelines(files))
    other.load_state_dict(torch.load(tmp_path / "run.pt", weights_only=True)["loader"])
    assert loop(other) == [[3, 4, 5], [6, 7, 8], [9, 10]]


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_states_that_do_not_belong_together(files: list[str]) -> None:
    loader = by_reader(pipelines(files, 2))
    early = loader.checkpoints()
    next(loader)
    late = loader.checkpoints()
    with pytest.raises(CheckpointError, match="were not saved together"):
        by_reader(pipelines(files, 2, [early[0], late[1]]))
    with pytest.raises(CheckpointError, match="made by shard 1, but the reader is shard 0"):
        by_reader(pipelines(files, 2, late[::-1]))
    with pytest.raises(CheckpointError, match="the checkpoint has 2 pipelines, the iterator has 1"):
        by_reader(pipelines(files)).load_state_dict(loader.state_dict())
    with pytest.raises(CheckpointError, match="not a state of an iterator"):
        loader.load_state_dict({"pipelines": "text"})


def test_another_policy_is_refused(files: list[str]) -> None:
    state = by_reader(pipelines(files)).state_dict()
    other = by_reader(pipelines(files), last_batch_policy=LastBatchPolicy.DROP)
    with pytest.raises(
        CheckpointError, match="counts reader 11 1 3 PARTIAL 0 0, but this iterator counts reader 11 1 3 DROP"
    ):
        other.load_state_dict(state)


def test_a_state_that_no_iterator_made_is_reported(files: list[str]) -> None:
    (pipe,) = pipelines(files)
    pipe.run()
    with pytest.warns(UserWarning, match="checkpoints without an iterator"):
        loader = by_reader(pipelines(files, states=[pipe.checkpoint()]))
    assert next(loader)[0]["labels"].ravel().tolist() == [3, 4, 5]


# -- DALI --------------------------------------------------------------------------------------------------------------


def test_the_calls_equal_dali(oracle: ModuleType, files: list[str]) -> None:
    functions = pytest.importorskip("nvidia.dali.fn")
    plugin = pytest.importorskip("nvidia.dali.plugin.base_iterator")

    class Theirs(plugin._DaliBaseIterator):
        """Their iterators for frameworks need a GPU build of the framework; what counts the epochs does not."""

        def __next__(self) -> Any:
            self._ever_consumed = True
            if self._prepare_first_batch and self._first_batch is not None:
                batch, self._first_batch = self._first_batch, None
                return batch
            outputs = self._get_outputs()
            batch = [np.asarray(sample).tolist() for sample in outputs[0][0]]
            self._schedule_runs()
            self._advance_and_check_drop_last()
            return batch

    def read(module: Any, define: Any, **more: Any) -> Any:
        @define(batch_size=3, num_threads=1, device_id=None, enable_checkpointing=True, **more)
        def graph() -> Any:
            return module.readers.file(files=files, name="Reader", pad_last_batch=True)[1]

        return graph()

    def run(make_pipe: Callable[..., Any], make_iterator: Callable[[Any], Any]) -> list[Any]:
        first = make_iterator(make_pipe())
        for _ in range(2):
            next(first)
        strings = first.checkpoints()
        assert isinstance(strings, list)
        assert isinstance(strings[0], bytes)
        second = make_iterator(make_pipe(checkpoint=strings[0]))
        return [_labels(batch) for batch in second]

    def _labels(batch: Any) -> list[int]:
        found = batch[0]["labels"] if isinstance(batch[0], dict) else batch
        return np.asarray(found).ravel().tolist()

    theirs = run(
        lambda **more: read(functions, oracle.pipeline_def, **more),
        lambda pipe: Theirs(pipe, reader_name="Reader", prepare_first_batch=False),
    )
    ours = run(
        lambda **more: read(fn, pipeline_def, **more),
        lambda pipe: DALIGenericIterator(pipe, ["labels"], reader_name="Reader"),
    )
    assert ours == theirs == [[6, 7, 8], [9, 10, 10]]


# -- another number of processes


def _iterators(files: list[str], shards: int, policy: LastBatchPolicy, **options: Any) -> list[DALIGenericIterator]:
    """One iterator per process, each with one pipeline."""
    return [
        DALIGenericIterator(pipeline, ["label", "number"], reader_name="Reader", last_batch_policy=policy)
        for pipeline in pipelines(files, shards, **options)
    ]


@settings(max_examples=25, deadline=None)
@given(
    old=st.integers(1, 5),
    new=st.integers(1, 5),
    batches=st.sampled_from([0, 1, 2, -1]),
    policy=st.sampled_from([LastBatchPolicy.PARTIAL, LastBatchPolicy.FILL]),
    pad=st.booleans(),
    shuffle=st.booleans(),
)
def test_another_number_of_processes_reads_the_rest_once(
    files: list[str], old: int, new: int, batches: int, policy: LastBatchPolicy, pad: bool, shuffle: bool
) -> None:
    options: dict[str, Any] = {"random_shuffle": shuffle, "pad_last_batch": pad, "batch_size": 2}
    before = _iterators(files, old, policy, **options)
    is_all = batches == -1
    batches = len(before[0]) if is_all else min(batches, len(before[0]) - 1)
    read: list[int] = []
    for iterator in before:
        for _ in range(batches):
            read += next(iterator)[0]["label"].flatten().tolist()
    states = json.loads(json.dumps([iterator.state_dict() for iterator in before]))
    after = _iterators(files, new, policy, **options)
    lengths = set()
    for iterator in after:
        if old == new:
            iterator.load_state_dict(states[after.index(iterator)])
        else:
            iterator.load_state_dict(states)
        lengths.add(len(iterator))
        count = 0
        for item in iterator:
            count += 1
            read += item[0]["label"].flatten().tolist()
        assert count == next(iter(lengths)) - batches
    assert len(lengths) == 1  # every process gets equally many batches
    if is_all:  # nothing is left, also where the last batch reached into the next epoch
        assert lengths == {batches}
    assert set(read) == set(range(SIZE))
    if policy is LastBatchPolicy.PARTIAL and pad:
        assert sorted(read) == list(range(SIZE))
    if pad:  # and the next epoch is a whole one
        whole = len(_iterators(files, new, policy, **options)[0])
        following = [label for it in after for item in it for label in item[0]["label"].flatten().tolist()]
        assert {len(iterator) for iterator in after} == {whole}
        assert set(following) == set(range(SIZE))


def test_states_of_all_processes_are_needed(files: list[str]) -> None:
    before = _iterators(files, 3, LastBatchPolicy.PARTIAL, random_shuffle=True)
    for iterator in before:
        next(iterator)
    states = [iterator.state_dict() for iterator in before]
    (after,) = _iterators(files, 1, LastBatchPolicy.PARTIAL, random_shuffle=True)
    with pytest.raises(CheckpointError, match="pass the list of the states") as caught:
        after.load_state_dict({"pipelines": [item for state in states for item in state["pipelines"]]})
    with pytest.raises(CheckpointError, match=r"\[2\] are missing"):
        after.load_state_dict(states[:2])
    with pytest.raises(CheckpointError, match="list of states is empty"):
        after.load_state_dict([])
    next(before[0])
    with pytest.raises(CheckpointError, match="saved after different batches") as caught:
        after.load_state_dict([before[0].state_dict(), *states[1:]])
    assert "after the same batch" in str(caught.value)
    after.load_state_dict(states)
    rest = [label for item in after for label in item[0]["label"].flatten().tolist()]
    assert len(rest) == SIZE - 9
