"""User callbacks in this process: how they are called, how epochs end, and error messages."""

import functools
import re

import numpy as np
import pytest

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, CheckpointError, SourceError
from dalify.data.sample_info import BatchInfo, SampleInfo
from dalify.sources.external import ExternalSource, SourceOptions

BATCH_SIZE = 3


def make(source, num_outputs=None, batch_size=BATCH_SIZE, **options):
    return ExternalSource(source, SourceOptions(batch_size=batch_size, num_outputs=num_outputs, **options))


def epoch_of(source, most=10):
    """Return all batches until the end of the epoch, and reset."""
    batches = []
    for _ in range(most):
        try:
            batches.append(source.next_batch())
        except StopIteration:
            with pytest.raises(StopIteration):  # it remains at the end until reset
                source.next_batch()
            break
    source.reset()
    return batches


def five_items():
    yield from range(5)


class Callable1:
    def __call__(self, info):
        return info


class Methods:
    def none(self):
        return "called"

    def one(self, info):
        return info

    def generate(self):
        yield from range(5)


class CallableGenerator:
    def __call__(self):
        yield from range(5)


class OwnIterator:
    """As in DALI's examples, the object is its own iterator and restarts in __iter__."""

    def __iter__(self):
        self.number = 0
        return self

    def __next__(self):
        if self.number == 5:
            raise StopIteration
        self.number += 1
        return self.number - 1


class GetItem:
    def __getitem__(self, index):
        if index == 5:
            raise IndexError
        return index


@pytest.mark.parametrize(
    "source",
    [
        lambda info: info,
        Callable1(),
        Methods().one,
        functools.partial(lambda first, info: info, 1),
        lambda info=0: info,
        lambda info, /, scale=2: info,
        lambda info, *rest: info,
        lambda info, **options: info,
    ],
)
def test_one_argument_is_the_info(source):
    per_sample = make(source, batch=False)
    assert per_sample.next_batch() == [[SampleInfo(i, i, 0, 0) for i in range(3)]]
    assert per_sample.next_batch() == [[SampleInfo(3 + i, i, 1, 0) for i in range(3)]]
    per_sample.reset()
    assert per_sample.next_batch() == [[SampleInfo(i, i, 0, 1) for i in range(3)]]

    per_batch = make(source)
    assert [per_batch.next_batch() for _ in range(2)] == [[0], [1]]
    per_batch.reset()
    assert per_batch.next_batch() == [0]

    with_info = make(source, batch_info=True)
    assert [with_info.next_batch() for _ in range(2)] == [[BatchInfo(0, 0)], [BatchInfo(1, 0)]]
    with_info.reset()
    assert with_info.next_batch() == [BatchInfo(0, 1)]


@pytest.mark.parametrize("source", [lambda: "called", Methods().none, functools.partial(Callable1(), "called")])
def test_no_argument(source):
    assert make(source).next_batch() == ["called"]
    assert make(source, batch=False).next_batch() == [["called"] * 3]


ITERABLES = {
    "list": lambda: [0, 1, 2, 3, 4],
    "range": lambda: range(5),
    "generator function": lambda: five_items,
    "partial generator function": lambda: functools.partial(five_items),
    "method": lambda: Methods().generate,
    "callable generator": lambda: CallableGenerator(),
    "own iterator": lambda: OwnIterator(),
    "getitem": lambda: GetItem(),
}


@pytest.mark.parametrize("make_iterable", ITERABLES.values(), ids=ITERABLES)
def test_cycles(make_iterable):
    whole = [[0], [1], [2], [3], [4]]
    for cycle in (None, "no", False):
        once = make(make_iterable(), cycle=cycle)
        assert [epoch_of(once) for _ in range(3)] == [whole, [], []]
    again = make(make_iterable(), cycle="raise")
    assert [epoch_of(again) for _ in range(3)] == [whole] * 3
    for cycle in ("quiet", True):
        endless = make(make_iterable(), cycle=cycle)
        assert epoch_of(endless, 12) == [[i % 5] for i in range(12)]


@pytest.mark.parametrize("make_iterable", ITERABLES.values(), ids=ITERABLES)
def test_cycles_sample_by_sample_drop_the_batch_that_is_cut_off(make_iterable):
    assert epoch_of(make(make_iterable(), batch=False)) == [[[0, 1, 2]]]
    again = make(make_iterable(), batch=False, cycle="raise")
    assert [epoch_of(again) for _ in range(2)] == [[[[0, 1, 2]]]] * 2
    endless = make(make_iterable(), batch=False, cycle="quiet", batch_size=12)
    assert endless.next_batch() == [[i % 5 for i in range(12)]]


def test_generator_objects_and_iterators_are_consumed_once():
    for source in (five_items(), iter([0, 1, 2, 3, 4])):
        once = make(source)
        assert [len(epoch_of(once)) for _ in range(2)] == [5, 0]


def test_any_sample_can_end_the_epoch():
    def source(info):
        if info.idx_in_epoch >= 5:
            raise StopIteration
        return info.idx_in_epoch

    ended = make(source, batch=False)
    assert [epoch_of(ended) for _ in range(2)] == [[[[0, 1, 2]]]] * 2


def test_a_reset_in_the_middle_does_not_restart_iterables():
    source = make([0, 1, 2, 3])
    source.next_batch()
    source.reset()
    assert source.next_batch() == [1]
    assert (source.epoch, source.iteration) == (1, 1)


def test_a_restart_in_the_middle_iterates_again_over_repeatable_sources():
    for cycle, first in (("raise", 0), ("quiet", 0), (None, 2)):
        source = make([0, 1, 2, 3], cycle=cycle)
        source.next_batch()
        source.next_batch()
        source.restart()
        assert source.next_batch() == [first]
        assert (source.epoch, source.iteration) == (1, 1)


def test_outputs():
    assert make(lambda: ("a", "b"), 2).next_batch() == ["a", "b"]
    assert make(lambda: ["a"], 1).next_batch() == ["a"]
    assert make(lambda i: (i.idx_in_batch, "x"), 2, batch=False).next_batch() == [[0, 1, 2], ["x"] * 3]
    assert make(lambda i: [i.idx_in_batch], 1, batch=False).next_batch() == [[0, 1, 2]]
    rows = make(lambda: np.arange(6).reshape(2, 3), 2).next_batch()
    np.testing.assert_array_equal(rows, [[0, 1, 2], [3, 4, 5]])


def wrong_number(info):
    return (1, 2, 3)


@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize(
    ("result", "num_outputs", "message"),
    [
        ((1, 2, 3), 2, "returned 3 outputs, but num_outputs is 2"),
        ((1,), 2, "returned 1 output, but num_outputs is 2"),
        (None, 2, "returned None"),
        (5, 2, "a value of type int, but num_outputs=2 requires a tuple"),
        ({"a": 1}, 2, "returned 1 output"),
        ("ab", 2, "type str"),
    ],
)
def test_wrong_outputs_name_the_source_and_fail_one_batch(result, num_outputs, message, batch):
    good = (1,) * num_outputs

    def load(info):
        iteration = info if batch else info.iteration
        return result if iteration == 0 and (batch or info.idx_in_batch == 1) else good

    source = make(load, num_outputs, batch=batch)
    with pytest.raises(SourceError, match=message) as caught:
        source.next_batch()
    text = str(caught.value)
    assert "load()" in text
    assert re.search(r"test_external.py:\d+ in load\(\)\n +def load\(info\)", text)
    assert batch or "sample 1 of the batch" in text
    assert source.next_batch()[0] in (1, [1, 1, 1])


def test_none_instead_of_a_batch():
    with pytest.raises(SourceError, match=r"(?s)returned None.*StopIteration at the end"):
        make(lambda: None).next_batch()


def test_errors_of_the_source_keep_their_type_and_fail_one_batch():
    def load(info):
        if info.idx_in_epoch == 4:
            raise KeyError("label")
        return info.idx_in_epoch

    source = make(load, batch=False)
    assert source.next_batch() == [[0, 1, 2]]
    with pytest.raises(KeyError, match="label") as caught:
        source.next_batch()
    (note,) = caught.value.__notes__
    assert re.search(
        r"source of fn.external_source, .*load\(\) at test_external.py:\d+, for sample 1 of batch 1 of epoch 0", note
    )
    assert source.next_batch() == [[6, 7, 8]]


def test_errors_inside_iterables_name_the_sample():
    def generate():
        yield 0
        yield 1
        raise ValueError("bad file")

    with pytest.raises(ValueError, match="bad file") as caught:
        make(generate, batch=False).next_batch()
    assert "for sample 2 of batch 0 of epoch 0" in caught.value.__notes__[0]


async def asynchronous():
    return 1


def generator_with_argument(info):
    yield info


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (5, "int object is neither callable nor iterable"),
        (lambda a, b: 0, "takes 2 positional arguments"),
        (lambda a=1, b=2: 0, "takes 2 positional arguments"),
        (lambda *items: 0, "any number of positional arguments"),
        (lambda *, key: 0, "needs the keyword argument 'key'"),
        (asynchronous, "asynchronous"),
        (generator_with_argument, "generator function with arguments"),
        (max, "is a built-in with an unknown signature"),
    ],
)
def test_invalid_sources(source, message):
    with pytest.raises(ArgumentTypeError, match=message):
        make(source)


def test_wrong_arguments():
    with pytest.raises(ArgumentValueError, match=r"cycle must be one of 'no'.* got 'forever'"):
        make([1], cycle="forever")
    with pytest.raises(ArgumentValueError, match=r"(?s)cycle is only for iterables.*test_external.py:\d+"):
        make(lambda: 0, cycle="raise")
    with pytest.raises(ArgumentValueError, match=r"(?s)generator cannot be iterated twice.*generator function itself"):
        make(five_items(), cycle="quiet")
    with pytest.raises(ArgumentValueError, match="num_outputs must be at least 1"):
        make([1], 0)


def test_an_endless_loop_over_an_empty_iterator_is_an_error():
    for exhausted in ([], iter([1])):
        source = make(exhausted, cycle="quiet", batch=False)
        with pytest.raises(SourceError, match="returned nothing when it was iterated again"):
            source.next_batch()


RESUMABLE = {
    "per sample": lambda: {"source": lambda i: tuple(i), "batch": False},
    "per batch": lambda: {"source": lambda i: tuple(i), "batch_info": True},
    "list": lambda: {"source": range(7)},
    "samples of a list": lambda: {"source": range(7), "batch": False},
    "raise": lambda: {"source": range(7), "batch": False, "cycle": "raise"},
    "quiet": lambda: {"source": five_items, "batch": False, "cycle": "quiet"},
    "no argument": lambda: {"source": iter(range(100)).__next__},
}


@pytest.mark.parametrize("make_keywords", RESUMABLE.values(), ids=RESUMABLE)
def test_restoring_at_every_step_continues_equally(make_keywords):
    def step(source):
        try:
            return source.next_batch()
        except StopIteration:
            source.reset()
            return "end"

    original = make(**make_keywords())
    states, expected = [], []
    for _ in range(9):
        states.append(original.state())
        expected.append(step(original))
    for index, state in enumerate(states):
        restored = make(**make_keywords())
        restored.restore(state)
        assert [step(restored) for _ in expected[index:]] == expected[index:]


def test_the_state_at_the_end_of_an_epoch_is_the_end():
    source = make([1])
    source.next_batch()
    with pytest.raises(StopIteration):
        source.next_batch()
    restored = make([1])
    restored.restore(source.state())
    with pytest.raises(StopIteration):
        restored.next_batch()


def test_states_that_do_not_fit():
    state = make([1]).state()
    with pytest.raises(CheckpointError, match="after 4 items of the source list object, which now ends after 2"):
        make([1, 2]).restore({**state, "items": 4})
    with pytest.raises(CheckpointError, match="not the state of an external source"):
        make([1]).restore({"epoch": 0})


def test_close_finishes_generators():
    finished = []

    def generate():
        try:
            yield 1
            yield 2
        finally:
            finished.append(True)

    source = make(generate)
    source.next_batch()
    source.close()
    assert finished == [True]
    with pytest.raises(StopIteration):
        source.next_batch()


def test_epochs_equal_dali():
    """The same sources return the same batches and epochs in the real DALI."""
    fn = pytest.importorskip("nvidia.dali.fn")
    pipeline_def = pytest.importorskip("nvidia.dali").pipeline_def

    def per_sample(info):
        if info.iteration >= 2:
            raise StopIteration
        return np.array([info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx])

    def per_batch(info):
        if info.iteration >= 2:
            raise StopIteration
        return np.full((BATCH_SIZE, 2), (info.iteration, info.epoch_idx))

    cases = [
        {"source": per_sample, "batch": False},
        {"source": per_batch, "batch_info": True},
        {"source": [np.full((2, 1), i) for i in range(3)], "cycle": "raise"},
        {"source": [np.full((2, 1), i) for i in range(3)]},
        {"source": [np.full(1, i) for i in range(7)], "batch": False, "cycle": "raise"},
    ]
    for case in cases:

        @pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None, prefetch_queue_depth=1)
        def pipeline():
            return fn.external_source(**case)  # noqa: B023 -- built immediately

        pipe = pipeline()
        pipe.build()
        ours = make(**case)
        for _ in range(3):
            theirs = []
            try:
                while len(theirs) < 10:
                    theirs.append([np.array(sample).tolist() for sample in pipe.run()[0]])
            except StopIteration:
                pipe.reset()
            assert [[np.asarray(sample).tolist() for sample in batch[0]] for batch in epoch_of(ours)] == theirs
