"""The sampler: DALI's shards and padding, exact shuffling, and resuming at every step."""

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dalify.base.errors import ArgumentValueError, CheckpointError
from dalify.sources.sampler import Sampler
from dalify.sources.sampler_options import SamplerOptions


def batches(count, batch_size, **options):
    sampler = Sampler(SamplerOptions(**options))
    return [sampler.next_batch(batch_size).tolist() for _ in range(count)]


def epoch_of(options, epoch):
    """Return the entries of one shard in one epoch, without padding."""
    sampler = Sampler(options)
    sampler.start_epoch(epoch)
    start, stop = options.window(epoch)
    return sampler.next_batch(stop - start)


@st.composite
def shardings(draw):
    num_shards = draw(st.integers(1, 9))
    return {"size": draw(st.integers(num_shards, 120)), "num_shards": num_shards}


MODES = [
    {},
    {"stick_to_shard": True},
    {"random_shuffle": True},
    {"random_shuffle": True, "stick_to_shard": True},
    {"shuffle_after_epoch": True},
]


def test_readme_examples():
    assert batches(5, 2, size=7, num_shards=3) == [[0, 1], [2, 3], [4, 5], [6, 0], [1, 2]]
    assert batches(4, 2, size=7, num_shards=3, pad_last_batch=True) == [[0, 1], [1, 1], [2, 3], [3, 3]]
    sticky = {"size": 7, "num_shards": 3, "shard_id": 2, "stick_to_shard": True}
    assert batches(3, 2, **sticky) == [[4, 5], [6, 4], [5, 6]]


def test_a_batch_may_span_several_epochs():
    assert batches(1, 12, size=5, num_shards=2) == [[0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]]


@pytest.mark.parametrize("size", [1, 4, 7, 10])
@pytest.mark.parametrize("mode", [{}, {"pad_last_batch": True}])
def test_order_equals_dali(size, mode, tmp_path):
    fn = pytest.importorskip("nvidia.dali.fn")
    pipeline_def = pytest.importorskip("nvidia.dali").pipeline_def
    files = []
    for number in range(size):
        path = tmp_path / f"{number:03d}.bin"
        path.write_bytes(b"x")
        files.append(str(path))

    cases = [
        (num_shards, shard_id, sticky)
        for num_shards in (1, 2, 3)
        if num_shards <= size
        for shard_id in range(num_shards)
        for sticky in (False, True)
    ]

    for batch_size in (1, 2, 3, 5, 12):
        # One pipeline with a reader per case, because building a pipeline takes longer than running it.
        @pipeline_def(batch_size=batch_size, num_threads=1, device_id=None, prefetch_queue_depth=1)
        def pipeline():
            return tuple(
                fn.readers.file(
                    files=files, num_shards=num, shard_id=shard, stick_to_shard=sticky, name=f"r{index}", **mode
                )[1]
                for index, (num, shard, sticky) in enumerate(cases)
            )

        pipe = pipeline()
        pipe.build()
        samplers = [
            Sampler(SamplerOptions(size=size, num_shards=num, shard_id=shard, stick_to_shard=sticky, **mode))
            for num, shard, sticky in cases
        ]
        for _ in range(9):
            for output, sampler in zip(pipe.run(), samplers, strict=True):
                np.testing.assert_array_equal(output.as_array().ravel(), sampler.next_batch(batch_size))
        for index, sampler in enumerate(samplers):
            assert pipe.reader_meta(f"r{index}") == sampler.options.meta()


@given(sharding=shardings(), mode=st.sampled_from(MODES), epoch=st.integers(0, 5), seed=st.integers(-1, 2**63))
def test_shards_cover_the_data_exactly_once(sharding, mode, epoch, seed):
    shards = [
        epoch_of(SamplerOptions(**sharding, **mode, shard_id=shard, seed=seed + shard), epoch)
        for shard in range(sharding["num_shards"])
    ]
    np.testing.assert_array_equal(np.sort(np.concatenate(shards)), np.arange(sharding["size"]))


@given(sharding=shardings(), batch_size=st.integers(1, 40), mode=st.sampled_from(MODES))
def test_padded_epochs_have_equally_many_batches_on_all_shards(sharding, batch_size, mode):
    for shard in range(sharding["num_shards"]):
        options = SamplerOptions(**sharding, **mode, shard_id=shard, pad_last_batch=True)
        sampler = Sampler(options)
        for epoch in range(2):
            given_samples = []
            for _ in range(math.ceil(options.largest_shard / batch_size)):
                batch = sampler.next_batch(batch_size)
                assert sampler.epoch == epoch
                valid = batch_size - sampler.padded_samples
                given_samples.extend(batch[:valid])
                assert (batch[valid:] == given_samples[-1]).all()
            np.testing.assert_array_equal(given_samples, epoch_of(options, epoch))


@settings(max_examples=40)
@given(
    sharding=shardings(),
    mode=st.sampled_from(MODES),
    pad=st.booleans(),
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=8),
)
def test_restoring_at_every_step_continues_equally(sharding, mode, pad, sizes):
    options = SamplerOptions(**sharding, **mode, pad_last_batch=pad, seed=11)
    original = Sampler(options)
    states, expected = [], []
    for batch_size in sizes:
        states.append(original.state())
        expected.append(original.next_batch(batch_size))
    for step, state in enumerate(states):
        restored = Sampler(options)
        restored.restore(state)
        for batch_size, batch in zip(sizes[step:], expected[step:], strict=True):
            np.testing.assert_array_equal(restored.next_batch(batch_size), batch)


@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=10), mode=st.sampled_from(MODES))
def test_the_stream_does_not_depend_on_its_division(sizes, mode):
    options = SamplerOptions(size=23, num_shards=2, **mode)
    sampler = Sampler(options)
    pieces = np.concatenate([sampler.next_batch(size) for size in sizes])
    np.testing.assert_array_equal(pieces, Sampler(options).next_batch(sum(sizes)))


@pytest.mark.parametrize("mode", [{"random_shuffle": True}, {"shuffle_after_epoch": True}])
def test_epochs_differ_and_repeat_with_the_seed(mode):
    options = SamplerOptions(size=50, seed=3, **mode)
    epochs = [tuple(epoch_of(options, epoch)) for epoch in range(6)]
    assert len(set(epochs)) == 6
    assert tuple(range(50)) not in epochs
    assert epochs == [tuple(epoch_of(SamplerOptions(size=50, seed=3, **mode), epoch)) for epoch in range(6)]


def test_seeds_of_the_two_shuffles():
    orders = [tuple(epoch_of(SamplerOptions(size=50, random_shuffle=True, seed=seed), 0)) for seed in range(4)]
    assert len(set(orders)) == 4
    same = [tuple(epoch_of(SamplerOptions(size=50, shuffle_after_epoch=True, seed=seed), 0)) for seed in range(4)]
    assert len(set(same)) == 1  # otherwise readers of different seeds would not share the data
    other = [
        tuple(epoch_of(SamplerOptions(size=50, shuffle_after_epoch=True, shuffle_after_epoch_seed=seed), 0))
        for seed in range(4)
    ]
    assert len(set(other)) == 4


def test_shards_of_sorted_data_are_mixed():
    classes = np.repeat(np.arange(10), 100)
    options = SamplerOptions(size=1000, num_shards=10, random_shuffle=True, stick_to_shard=True)
    assert len(np.unique(classes[epoch_of(options, 0)])) == 10


def test_start_epoch_ends_the_current_one():
    sampler = Sampler(SamplerOptions(size=9))
    sampler.next_batch(4)
    sampler.start_epoch(0)
    assert sampler.next_batch(2).tolist() == [0, 1]
    with pytest.raises(ArgumentValueError, match="at least 0; got -1"):
        sampler.start_epoch(-1)


@pytest.mark.parametrize("epoch", [0, 1])
def test_start_epoch_drops_the_rest_of_other_shards(epoch):
    shards = [Sampler(SamplerOptions(size=20, num_shards=2, shard_id=shard)) for shard in range(2)]
    for shard in shards:
        shard.next_batch(4)
    sampler = Sampler(SamplerOptions(size=20))
    sampler.restore({"shards": [shard.state() for shard in shards]})
    assert sampler.next_batch(3).tolist() == [4, 5, 6]
    sampler.start_epoch(epoch)
    assert sampler.next_batch(20).tolist() == list(range(20))


@pytest.mark.parametrize("initial_fill", [0, -1])
def test_the_size_of_the_buffer_does_not_matter_without_shuffling(initial_fill):
    sampler = Sampler(SamplerOptions(5, initial_fill=initial_fill))
    assert sampler.next_batch(5).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "no samples"),
        ({"size": 2, "num_shards": 3}, "2 samples cannot be divided into 3 shards"),
        ({"size": 5, "num_shards": 0}, "num_shards must be at least 1"),
        ({"size": 5, "num_shards": 2, "shard_id": 2}, r"in \[0, 1\] \(num_shards - 1\); got 2"),
        ({"size": 5, "shard_id": -1}, "got -1"),
        ({"size": 5, "random_shuffle": True, "initial_fill": 0}, "initial_fill must be at least 1"),
        ({"size": 5, "random_shuffle": True, "shuffle_after_epoch": True}, "cannot be used together"),
        ({"size": 5, "stick_to_shard": True, "shuffle_after_epoch": True}, "cannot be used together"),
    ],
)
def test_mistakes(options, message):
    with pytest.raises(ArgumentValueError, match=message):
        SamplerOptions(**options)


def test_a_state_of_other_data_is_refused():
    state = Sampler(SamplerOptions(size=9, num_shards=2)).state()
    with pytest.raises(CheckpointError, match="made with 9 samples, but the reader now has 8"):
        Sampler(SamplerOptions(size=8, num_shards=2)).restore(state)
    with pytest.raises(CheckpointError, match="not the state of a reader"):
        Sampler(SamplerOptions(size=9)).restore({"epoch": 1})
    with pytest.raises(CheckpointError, match="invalid position"):
        Sampler(SamplerOptions(size=9, num_shards=2)).restore({**state, "position": -1})


def _read(samplers, count, seen):
    """Read ``count`` samples on every shard, one by one; record the samples without padding by epoch."""
    for sampler in samplers:
        for _ in range(count):
            (entry,) = sampler.next_batch(1).tolist()
            if not sampler.padded_samples:
                seen.setdefault(sampler.epoch, []).append(entry)


@settings(max_examples=150)
@given(
    size=st.integers(6, 60),
    stages=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 25)), min_size=2, max_size=4),
    mode=st.sampled_from(MODES),
    pad=st.booleans(),
    start_epoch=st.integers(0, 3),
)
def test_other_numbers_of_shards_read_what_is_left_once(size, stages, mode, pad, start_epoch):
    """After any change of the number of shards, all shards together read each sample of every epoch once."""
    seen = {}
    samplers = []
    for number, (num_shards, count) in enumerate(stages):
        states = [sampler.state() for sampler in samplers]
        epochs = [sampler.epoch for sampler in samplers] or [0]
        assume(max(epochs) - min(epochs) <= 1)  # positions of shards of different size differ after many epochs
        samplers = [
            Sampler(SamplerOptions(size, shard, num_shards, pad_last_batch=pad, seed=100 * number + shard, **mode))
            for shard in range(num_shards)
        ]
        for sampler in samplers:
            if states and len(states) != num_shards:
                sampler.restore(json.loads(json.dumps({"shards": states})))
            elif states:
                sampler.restore(json.loads(json.dumps(states[sampler.options.shard_id])))
            else:
                sampler.start_epoch(start_epoch)
        # The seeds of a shard may change with the number of shards only.
        for sampler, state in zip(samplers, states, strict=False):
            if len(states) == num_shards:
                sampler.options = dataclasses.replace(sampler.options, seed=state["seed"])
        _read(samplers, count, seen)
    last = max(sampler.epoch for sampler in samplers)
    for sampler in samplers:
        while sampler.epoch <= last:
            _read([sampler], 1, seen)
    complete = [epoch for epoch in seen if epoch <= last]
    for epoch in complete:
        assert sorted(seen[epoch]) == list(range(size)), epoch


def test_state_of_one_shard_determines_the_others_if_order_is_common():
    old = Sampler(SamplerOptions(12, num_shards=3, shuffle_after_epoch=True))
    old.next_batch(2)
    new = [Sampler(SamplerOptions(12, shard, 2, shuffle_after_epoch=True)) for shard in range(2)]
    whole = Sampler(SamplerOptions(12, shuffle_after_epoch=True)).next_batch(12)
    read = []
    for sampler in new:
        sampler.restore(old.state())
        assert sampler.left() == {0: 6}
        read += sampler.next_batch(3).tolist()
    assert read == whole[[2, 3, 6, 7, 10, 11]].tolist()


def test_restored_state_is_short():
    """One number if all shards are at the same position, for any number of shards."""
    states = [Sampler(SamplerOptions(10**9, shard, 512, seed=1)).state() | {"position": 5} for shard in range(512)]
    sampler = Sampler(SamplerOptions(10**9, 0, 100, seed=1))
    sampler.restore({"shards": states})
    sampler.next_batch(64)
    assert len(json.dumps(sampler.state())) < 300


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda states: states[:2], r"shards \[0, 1\] of 3; \[2\] are missing"),
        (lambda states: [*states[:2], states[1]], r"\[0, 1, 1\] of 3; \[2\] are missing"),
        (lambda states: [*states[:2], {**states[2], "epoch": 2}], "not from the same batch"),
        (lambda states: states[:1], "depend on their seeds"),
    ],
)
def test_incomplete_states_are_refused(change, message):
    states = [Sampler(SamplerOptions(12, shard, 3, random_shuffle=True)).state() for shard in range(3)]
    with pytest.raises(CheckpointError, match=message):
        Sampler(SamplerOptions(12, 0, 2, random_shuffle=True)).restore({"shards": change(states)})


def test_repr_shows_the_position():
    sampler = Sampler(SamplerOptions(size=9, num_shards=2))
    sampler.next_batch(3)
    assert repr(sampler) == "Sampler(9 samples, shard 0 of 2, epoch 0, position 3)"


@pytest.mark.parametrize("mode", MODES)
def test_epochs_longer_than_a_block_of_the_shuffle(mode):
    options = SamplerOptions(size=10_000, num_shards=2, shard_id=1, **mode)
    whole = epoch_of(options, 0)
    assert len(np.unique(whole)) == 5000
    sampler = Sampler(options)
    sampler.restore({**sampler.state(), "position": 4090})
    np.testing.assert_array_equal(sampler.next_batch(20), whole[4090:4110])


def test_data_of_any_size_needs_no_memory():
    sampler = Sampler(SamplerOptions(size=10**12, random_shuffle=True))
    assert len(np.unique(sampler.next_batch(1000))) == 1000
    assert all(isinstance(value, int) for value in sampler.state().values())
