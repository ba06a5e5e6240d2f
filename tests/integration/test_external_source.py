"""`external_source` in whole pipelines: one program runs in dalify and in DALI; calls and results are compared."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import dalify
from dalify import fn, pipeline_def, types
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BatchSizeError,
    DTypeError,
    LayoutError,
    PipelineStateError,
    ShapeError,
    SourceError,
)
from tests.helpers.steps import plain, steps_of

BATCH_SIZE = 3
OURS = SimpleNamespace(fn=fn, types=types, pipeline_def=pipeline_def, Pipeline=dalify.Pipeline)


@pytest.fixture(scope="module")
def theirs(oracle: Any) -> Any:
    return SimpleNamespace(fn=oracle.fn, types=oracle.types, pipeline_def=oracle.pipeline_def, Pipeline=oracle.Pipeline)


def built(library: Any, graph: Callable[[], Any], **options: Any) -> Any:
    given = {"batch_size": BATCH_SIZE, "num_threads": 1, "device_id": None, **options}
    pipe = library.pipeline_def(**given)(graph)()
    pipe.build()
    return pipe


class Case:
    """One kind of source: `make(calls)` returns source and arguments, `calls` records the calls of the source."""

    def __init__(self, name: str, make: Callable[[list[Any], Any], dict[str, Any]], steps: str = "rrr") -> None:
        self.name, self.make, self.steps = name, make, steps

    def run(self, library: Any, **options: Any) -> tuple[list[Any], list[Any]]:
        calls: list[Any] = []

        def graph() -> Any:
            result = library.fn.external_source(**self.make(calls, library))
            return tuple(result) if isinstance(result, list) else result

        pipe = built(library, graph, **options)
        seen = steps_of(pipe, self.steps)
        return seen, calls


CASES: list[Case] = []


def case(steps: str = "rrr") -> Callable[[Callable[[list[Any], Any], dict[str, Any]]], None]:
    def add(make: Callable[[list[Any], Any], dict[str, Any]]) -> None:
        CASES.append(Case(make.__name__, make, steps))

    return add


def batch_of(number: int, count: int = BATCH_SIZE) -> np.ndarray:
    return np.arange(count * 2, dtype=np.int32).reshape(count, 2) + 100 * number


# -- how a source is asked ---------------------------------------------------------------------------------------------


@case()
def callable_without_argument(calls: list[Any], library: Any) -> dict[str, Any]:
    def source() -> np.ndarray:
        calls.append("called")
        return batch_of(len(calls))

    return {"source": source}


@case("rrrr0rrr")
def callable_with_the_iteration(calls: list[Any], library: Any) -> dict[str, Any]:
    def source(iteration: int) -> np.ndarray:
        calls.append(iteration)
        if iteration == 3:
            raise StopIteration
        return batch_of(iteration)

    return {"source": source}


@case("rrr0rr")
def callable_with_batch_info(calls: list[Any], library: Any) -> dict[str, Any]:
    def source(info: Any) -> np.ndarray:
        calls.append((info.iteration, info.epoch_idx))
        if info.iteration == 2:
            raise StopIteration
        return batch_of(info.iteration + 10 * info.epoch_idx)

    return {"source": source, "batch_info": True}


@case("rrrr0rrr")
def callable_with_sample_info(calls: list[Any], library: Any) -> dict[str, Any]:
    def source(info: Any) -> np.ndarray:
        calls.append((info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx))
        if info.idx_in_epoch >= 10:  # the tenth sample is alone in its batch, which is dropped
            raise StopIteration
        return np.float32(info.idx_in_epoch)

    return {"source": source, "batch": False}


@case()
def callable_without_argument_per_sample(calls: list[Any], library: Any) -> dict[str, Any]:
    def source() -> np.ndarray:
        calls.append("called")
        return np.array([len(calls)])

    return {"source": source, "batch": False}


@case("rrrr0rrr")
def method(calls: list[Any], library: Any) -> dict[str, Any]:
    class Loader:
        def load(self, iteration: int) -> np.ndarray:
            calls.append(iteration)
            if iteration == 2:
                raise StopIteration
            return batch_of(iteration)

    return {"source": Loader().load}


@case("rrrr0rrr")
def object_that_can_be_called(calls: list[Any], library: Any) -> dict[str, Any]:
    class Loader:
        def __call__(self, info: Any) -> np.ndarray:
            calls.append(info.idx_in_epoch)
            if info.iteration == 2:
                raise StopIteration
            return np.int64(info.idx_in_epoch)

    return {"source": Loader(), "batch": False}


# -- iterables and their ends ------------------------------------------------------------------------------------------


class Countdown:
    """An iterator that `__iter__` restarts."""

    def __init__(self, calls: list[Any]) -> None:
        self.calls = calls

    def __iter__(self) -> Countdown:
        self.calls.append("iter")
        self.left = 2
        return self

    def __next__(self) -> np.ndarray:
        if not self.left:
            raise StopIteration
        self.left -= 1
        return batch_of(self.left)


def generating(calls: list[Any], count: int = 2) -> Callable[[], Iterator[np.ndarray]]:
    def generate() -> Iterator[np.ndarray]:
        calls.append("begun")
        for number in range(count):
            yield batch_of(number)

    return generate


def _iterables() -> Iterator[Case]:
    for cycle in (None, "no", False, "raise", "quiet", True):
        # DALI ignores a reset before the end of the data, and with these two there is none.
        steps = "rrrrr" if cycle in ("quiet", True) else "rrr0rrr0r"
        yield Case(
            f"generator_function_{cycle}", lambda c, _, cycle=cycle: {"source": generating(c), "cycle": cycle}, steps
        )
        yield Case(f"own_iterator_{cycle}", lambda c, _, cycle=cycle: {"source": Countdown(c), "cycle": cycle}, steps)
        yield Case(
            f"list_{cycle}", lambda _, __, cycle=cycle: {"source": [batch_of(0), batch_of(1)], "cycle": cycle}, steps
        )
    yield Case("generator_object", lambda c, _: {"source": generating(c)()}, "rrr0rr")
    seven = [np.int16(number) for number in range(7)]
    yield Case("list_per_sample", lambda _, __: {"source": seven, "batch": False, "cycle": "raise"}, "rrr0rr")
    yield Case("list_per_sample_quiet", lambda _, __: {"source": seven, "batch": False, "cycle": True}, "rrrrr")


CASES += _iterables()

# -- several outputs, declarations -------------------------------------------------------------------------------------


@case()
def two_outputs_per_batch(calls: list[Any], library: Any) -> dict[str, Any]:
    return {"source": lambda: (batch_of(1), [np.float32(i) for i in range(BATCH_SIZE)]), "num_outputs": 2}


@case()
def two_outputs_per_sample(calls: list[Any], library: Any) -> dict[str, Any]:
    return {
        "source": lambda info: (np.ones((2, info.idx_in_batch + 1), np.uint8), np.int32([info.idx_in_epoch])),
        "num_outputs": 2,
        "batch": False,
        "layout": ["HW", "X"],
        "dtype": [library.types.UINT8, library.types.INT32],
        "ndim": [2, 1],
    }


@case()
def one_output_in_a_tuple(calls: list[Any], library: Any) -> dict[str, Any]:
    return {"source": lambda: (batch_of(0),), "num_outputs": 1}


@case()
def short_lists_leave_the_rest_unset(calls: list[Any], library: Any) -> dict[str, Any]:
    return {
        "source": lambda: (batch_of(0), batch_of(1)),
        "num_outputs": 2,
        "layout": ["A"],
        "dtype": [library.types.INT32],
    }


@case()
def one_declaration_for_all_outputs(calls: list[Any], library: Any) -> dict[str, Any]:
    return {
        "source": lambda: [batch_of(0), batch_of(1)],
        "num_outputs": 2,
        "layout": "A",
        "dtype": library.types.INT32,
        "ndim": 1,
    }


# -- forms of data -----------------------------------------------------------------------------------------------------


@case()
def ragged_samples(calls: list[Any], library: Any) -> dict[str, Any]:
    return {"source": lambda: [np.zeros((2, i), np.uint8) for i in range(BATCH_SIZE)], "layout": "HW"}


@case()
def numbers(calls: list[Any], library: Any) -> dict[str, Any]:
    return {"source": lambda: [np.array(i, np.float32) for i in range(BATCH_SIZE)]}


@case()
def fewer_samples_than_fit(calls: list[Any], library: Any) -> dict[str, Any]:
    return {"source": [batch_of(0, 3), batch_of(1, 1), batch_of(2, 2)], "cycle": "raise"}


@case()
def bool_and_half(calls: list[Any], library: Any) -> dict[str, Any]:
    return {"source": lambda: (np.ones((3, 2), bool), np.ones((3, 2), np.float16)), "num_outputs": 2}


@pytest.mark.parametrize("each", CASES, ids=lambda each: each.name)
def test_equals_dali(each: Case, theirs: Any) -> None:
    expected, their_calls = each.run(theirs)
    result, calls = each.run(OURS)
    assert result == expected
    assert calls == their_calls


@pytest.mark.parametrize("depth", [1, 3])
def test_prefetch_is_visible_as_in_dali(depth: int, theirs: Any) -> None:
    for name in ("callable_with_the_iteration", "callable_with_sample_info", "generator_function_raise"):
        each = next(each for each in CASES if each.name == name)
        assert each.run(OURS, prefetch_queue_depth=depth) == each.run(theirs, prefetch_queue_depth=depth)


def noting(calls: list[int]) -> Callable[[int], np.ndarray]:
    def source(iteration: int) -> np.ndarray:
        calls.append(iteration)
        return batch_of(iteration)

    return source


def test_two_batches_are_asked_for_ahead(theirs: Any) -> None:
    for library in (theirs, OURS):
        calls: list[int] = []

        pipe = built(library, lambda library=library, calls=calls: library.fn.external_source(noting(calls)))
        assert calls == []
        pipe.run()
        assert calls == [0, 1]
        pipe.run()
        assert calls == [0, 1, 2]


@pytest.mark.parametrize("first_ends", [True, False])
def test_the_first_source_to_end_ends_the_epoch_for_all(first_ends: bool, theirs: Any) -> None:
    seen = []
    for library in (theirs, OURS):

        def ending(count: int) -> Callable[[int], np.ndarray]:
            def source(iteration: int) -> np.ndarray:
                if iteration >= count:
                    raise StopIteration
                return batch_of(iteration)

            return source

        lengths = (2, 4) if first_ends else (4, 2)

        def graph(library: Any = library, lengths: tuple[int, int] = lengths) -> Any:
            return tuple(library.fn.external_source(ending(count)) for count in lengths)

        seen.append(steps_of(built(library, graph), "rrrr0rrr"))
    assert seen[0] == seen[1]
    assert [each if each == "end" else "batch" for each in seen[1]] == [
        "batch",
        "batch",
        "end",
        "end",
        "batch",
        "batch",
        "end",
    ]


# -- fed data ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [{}, {"layout": "A", "ndim": 1}])
def test_fed_batches(arguments: dict[str, Any], theirs: Any) -> None:
    seen = []
    for library in (theirs, OURS):
        pipe = built(library, lambda library=library: library.fn.external_source(name="x", **arguments))
        runs = []
        for number in range(3):
            pipe.feed_input("x", batch_of(number))
        for _ in range(2):
            runs.append(plain(pipe.run()))
        pipe.feed_input("x", [np.int32([1, 2]), np.int32([3])])
        runs += [plain(pipe.run()), plain(pipe.run())]
        seen.append(runs)
    assert seen[0] == seen[1]


def test_run_takes_data_by_name(theirs: Any) -> None:
    seen = []
    for library in (theirs, OURS):

        def graph(library: Any = library) -> Any:
            return library.fn.external_source(name="x") + library.fn.external_source(name="y")

        pipe = built(library, graph, prefetch_queue_depth=1)
        seen.append([plain(pipe.run(x=batch_of(number), y=batch_of(1))) for number in range(3)])
    assert seen[0] == seen[1]


def test_repeat_last_uses_the_last_batch_again() -> None:  # DALI 2.4 fails here where there is no GPU
    pipe = built(OURS, lambda: fn.external_source(name="x", repeat_last=True))
    with pytest.raises(PipelineStateError, match="no data were fed"):
        pipe.run()
    pipe.feed_input("x", batch_of(1))
    first = [pipe.run()[0].as_array()[0, 0] for _ in range(3)]
    pipe.feed_input("x", batch_of(2))
    later = [pipe.run()[0].as_array()[0, 0] for _ in range(4)]
    assert first == [100] * 3
    assert later[-1] == 200


def test_a_layout_may_come_with_the_data(theirs: Any) -> None:
    for library in (theirs, OURS):
        pipe = built(library, lambda library=library: library.fn.external_source(name="x"), prefetch_queue_depth=1)
        pipe.feed_input("x", batch_of(0), layout="C")
        assert pipe.run()[0].layout() == "C"


def test_feeding_by_node() -> None:
    made: list[Any] = []

    def graph() -> Any:
        made.append(fn.external_source(name="x"))
        return made[0] * 2

    pipe = built(OURS, graph)
    pipe.feed_input(made[0], batch_of(0))
    assert (pipe.run()[0].as_array() == batch_of(0) * 2).all()


def test_mistakes_in_feeding() -> None:
    pipe = built(OURS, lambda: (fn.external_source(name="x"), fn.external_source(lambda: batch_of(0), name="sourced")))
    with pytest.raises(PipelineStateError, match=r"no data were fed to the external_source 'x'(?s:.*)feed_input"):
        pipe.run()
    with pytest.raises(PipelineStateError, match=r"no external_source 'y'(?s:.*)It has: x, sourced"):
        pipe.feed_input("y", batch_of(0))
    with pytest.raises(PipelineStateError, match="has a source and cannot be fed"):
        pipe.feed_input("sourced", batch_of(0))
    with pytest.raises(PipelineStateError, match="has a source and cannot be fed"):
        pipe.run(sourced=batch_of(0))
    with pytest.raises(SourceError, match="None cannot be fed as data"):
        pipe.feed_input("x", None)
    with pytest.raises(BatchSizeError, match="the batch has 4 samples"):
        pipe.feed_input("x", batch_of(0, 4))
    with pytest.raises(LayoutError, match=r"the layout 'HWC' cannot describe samples of shape \(2,\)"):
        pipe.feed_input("x", batch_of(0), layout="HWC")
    pipe.feed_input("x", batch_of(7))
    assert pipe.run()[0].as_array()[0, 0] == 700
    named = built(OURS, lambda: fn.external_source(name="x", layout="C"), prefetch_queue_depth=1)
    with pytest.raises(LayoutError, match=r"with the layout 'W', but the declared layout is 'C'(?s:.*)Omit layout"):
        named.feed_input("x", batch_of(0), layout="W")
    for layout in ("C", "", None):
        named.feed_input("x", batch_of(0), layout=layout)
        assert named.run()[0].layout() == "C"


# -- whose memory ------------------------------------------------------------------------------------------------------


def test_a_user_may_reuse_a_buffer() -> None:
    buffer = np.zeros((BATCH_SIZE, 4), np.int64)

    def source(iteration: int) -> np.ndarray:
        buffer[:] = iteration
        return buffer

    pipe = built(OURS, lambda: fn.external_source(source))
    assert [int(pipe.run()[0].as_array()[0, 0]) for _ in range(5)] == [0, 1, 2, 3, 4]


def test_no_copy_takes_the_memory_as_it_is() -> None:
    buffer = np.arange(BATCH_SIZE * 4).reshape(BATCH_SIZE, 4)
    pipe = built(OURS, lambda: fn.external_source(lambda: buffer, no_copy=True))
    assert np.shares_memory(pipe.run()[0].as_array(), buffer)
    copied = built(OURS, lambda: fn.external_source(lambda: buffer))
    assert not np.shares_memory(copied.run()[0].as_array(), buffer)


def test_fed_data_are_copied_at_once() -> None:
    buffer = np.zeros((BATCH_SIZE, 4), np.int64)
    pipe = built(OURS, lambda: fn.external_source(name="x"), prefetch_queue_depth=1)
    pipe.feed_input("x", buffer)
    buffer[:] = 9
    assert (pipe.run()[0].as_array() == 0).all()


def test_kept_outputs_are_never_overwritten() -> None:
    pipe = built(OURS, lambda: fn.external_source(lambda iteration: np.full((BATCH_SIZE, 1000), iteration)))
    kept = [pipe.run()[0].as_array() for _ in range(20)]
    gc.collect()
    assert [int(array[0, 0]) for array in kept] == list(range(20))
    assert all((array == array[0, 0]).all() for array in kept)


def test_outputs_of_dalify_and_dlpack_objects_are_data() -> None:
    class Capsules:
        """Supports only DLPack."""

        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack__(self, **_: Any) -> Any:
            return self.array.__dlpack__()

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    first = built(OURS, lambda: fn.external_source(lambda: batch_of(4), layout="X"))
    (given,) = first.run()
    forms = [given, list(given), given.as_tensor(), [Capsules(batch_of(4)[index]) for index in range(3)]]
    for form in forms:
        pipe = built(OURS, lambda form=form: fn.external_source(lambda: form))
        assert (pipe.run()[0].as_array() == batch_of(4)).all()
    assert built(OURS, lambda: fn.external_source(lambda: given)).run()[0].layout() == "X"


def test_forms_that_dali_does_not_accept() -> None:
    wanted = np.arange(6).reshape(BATCH_SIZE, 2)
    for data in (
        torch.from_numpy(wanted),
        list(torch.from_numpy(wanted)),
        [torch.tensor([0, 1], requires_grad=False), np.array([2, 3]), [4, 5]],
        wanted.astype(">i8"),
        np.asfortranarray(wanted),
        [row[::1] for row in np.repeat(wanted, 2, axis=0)[::2]],
        np.repeat(wanted, 2, axis=1)[:, ::2],
    ):
        (batch,) = built(OURS, lambda data=data: fn.external_source(lambda: data, dtype=np.int64, ndim=1)).run()
        assert batch.dtype == types.INT64
        assert (batch.as_array() == wanted).all()


# -- errors ------------------------------------------------------------------------------------------------------------


def check_mistake(
    bad: Any, error: type[Exception], message: str, good: Callable[[int], Any] = batch_of, **arguments: Any
) -> Exception:
    """The second batch is bad: it raises an error, and the next batch is returned."""

    def source(iteration: int) -> Any:
        return bad if iteration == 1 else good(iteration)

    pipe = built(OURS, lambda: fn.external_source(source, **arguments), prefetch_queue_depth=1)
    pipe.run()
    with pytest.raises(error, match=message) as caught:
        pipe.run()
    text = str(caught.value)
    assert text.count("fn.external_source: ") == 1
    assert "test_external_source.py:" in text
    (after,) = pipe.run()
    expected = np.asarray(good(2))
    assert (after.as_array() == expected).all()
    return caught.value


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (
            batch_of(1).astype(np.float32),
            DTypeError,
            "the data has dtype float32, but earlier batches had int32",
        ),
        (batch_of(1)[:, 0], ShapeError, r"the samples have 0 dimensions \(\), but earlier batches had 1"),
        (
            [np.int32([1]), np.int32([[1]]), np.int32([1])],
            ShapeError,
            r"(?s)sample 1 has 2 dimensions.*sample 1 of the batch",
        ),
        ([np.int32([1]), np.float32([1]), np.int32([1])], DTypeError, "sample 1 has dtype float32"),
        (batch_of(1, 4), BatchSizeError, r"the batch has 4 samples, but the pipeline's batch_size is 3"),
        ([], SourceError, "a batch without samples"),
        (dalify.tensors.TensorListCPU(np.zeros((0, 1), np.int32)), SourceError, "a batch without samples"),
        (None, SourceError, r"(?s)the source .*returned None.*raise StopIteration"),
        ([None] * 3, SourceError, r"(?s)None cannot be used as data.*sample 0 of the batch"),
        ([object()] * 3, SourceError, "a value of type object cannot be used"),
        (np.array([[None]] * 3), DTypeError, "arrays of Python objects cannot be used"),
        ([["a"], ["b"], ["c"]], DTypeError, r"(?s)strings cannot be used.*np\.frombuffer"),
        ([[1, 2], [[3], 4], [1]], SourceError, "a nested list with different lengths"),
        (np.int32(5), ShapeError, "a single number is not a batch"),
        (np.zeros((3, 2), np.complex64), DTypeError, "complex64"),
        (np.zeros((3, 2), "M8[s]"), DTypeError, "datetime64"),
        ({"a": 1}, SourceError, r"(?s)returned a dictionary.*num_outputs=1"),
    ],
)
def test_bad_data_fails_one_batch(bad: Any, error: type[Exception], message: str) -> None:
    check_mistake(bad, error, message)


def test_declarations_hold_from_the_first_batch_on() -> None:
    for arguments, error, message in (
        ({"dtype": types.FLOAT}, DTypeError, "dtype int32, but the declared one is float32"),
        ({"ndim": 2}, ShapeError, r"the samples have 1 dimension \(2,\), but the declared one is 2"),
        ({"layout": "HW"}, LayoutError, r"the layout 'HW' does not match samples with 1 dimension \(2,\)"),
    ):
        pipe = built(OURS, lambda arguments=arguments: fn.external_source(lambda: batch_of(0), **arguments))
        with pytest.raises(error, match=message):
            pipe.run()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ((1,), "returned 1 output, but num_outputs is 2"),
        ((1, 2, 3), r"returned 3 outputs, but num_outputs is 2(?s:.*)num_outputs=3"),
        (5, "returned a value of type int, but num_outputs=2 requires a tuple"),
        (None, "returned None"),
    ],
)
def test_wrong_numbers_of_outputs(bad: Any, message: str) -> None:
    for batch in (True, False):

        def source(info: Any, batch: bool = batch) -> Any:
            iteration = info if batch else info.iteration
            good = (batch_of(0), batch_of(1)) if batch else (np.int32(1), np.int32(2))
            return bad if iteration == 1 else good

        pipe = built(
            OURS,
            lambda source=source, batch=batch: tuple(fn.external_source(source, 2, batch=batch)),
            prefetch_queue_depth=1,
        )
        pipe.run()
        with pytest.raises(SourceError, match=message):
            pipe.run()
        assert len(pipe.run()) == 2


def test_sources_must_agree_on_the_size_of_a_batch() -> None:
    def sized(sizes: list[int], name: str | None = None) -> Any:
        return fn.external_source(lambda iteration: batch_of(iteration, sizes[iteration]), name=name)

    pipe = built(OURS, lambda: (sized([3, 3, 3]), sized([3, 2, 3], "right")), prefetch_queue_depth=1)
    pipe.run()
    with pytest.raises(
        BatchSizeError, match=r"different sizes \(test_external_source\.py:\d+ in .*: 3, right: 2\)"
    ) as caught:
        pipe.run()
    assert "test_external_source.py" in str(caught.value)
    left, right = pipe.run()
    assert (left.as_array() == right.as_array()).all()


class OwnError(Exception):
    """An exception class of the user."""


def test_an_error_in_a_source_keeps_its_type_names_the_source_and_fails_one_batch() -> None:
    def failing(iteration: int) -> np.ndarray:
        if iteration == 1:
            raise OwnError("no more coffee")
        return batch_of(iteration)

    other: list[int] = []

    def fine(iteration: int) -> np.ndarray:
        other.append(iteration)
        return batch_of(iteration)

    pipe = built(OURS, lambda: (fn.external_source(fine), fn.external_source(failing)), prefetch_queue_depth=1)
    pipe.run()
    with pytest.raises(OwnError, match="no more coffee") as caught:
        pipe.run()
    assert str(caught.value) == "no more coffee"
    notes = "\n".join(caught.value.__notes__)
    assert "failing() at test_external_source.py" in notes
    assert "for batch 1 of epoch 0" in notes
    left, right = pipe.run()
    assert (left.as_array() == batch_of(2)).all()
    assert (right.as_array() == batch_of(2)).all()


def test_an_error_during_prefetching_loses_no_batch() -> None:
    def failing(iteration: int) -> np.ndarray:
        if iteration == 3:
            raise OwnError
        return batch_of(iteration)

    pipe = built(OURS, lambda: fn.external_source(failing))
    seen: list[Any] = []
    for _ in range(6):
        try:
            seen.append(int(pipe.run()[0].as_array()[0, 0]) // 100)
        except OwnError:
            seen.append("error")
    assert [each for each in seen if each != "error"] == [0, 1, 2, 4, 5]
    assert seen.count("error") == 1


def test_a_source_must_not_run_its_own_pipeline() -> None:
    def source(iteration: int) -> np.ndarray:
        if iteration == 1:
            pipe.run()
        return batch_of(iteration)

    pipe = built(OURS, lambda: fn.external_source(source), prefetch_queue_depth=1)
    pipe.run()
    with pytest.raises(PipelineStateError, match="the source runs the pipeline that is calling it"):
        pipe.run()
    assert (pipe.run()[0].as_array() == batch_of(2)).all()


def test_what_a_source_may_be() -> None:
    for source, message in (
        (5, "neither callable nor iterable"),
        (lambda a, b: 0, "takes 2 positional arguments"),
        (lambda *a: 0, "takes any number of positional arguments"),
    ):
        with pytest.raises(ArgumentTypeError, match=message) as caught:
            built(OURS, lambda source=source: fn.external_source(source))
        assert str(caught.value).count("fn.external_source: ") == 1
    for arguments, message in (
        ({"source": lambda: 0, "cycle": "raise"}, "cycle is only for iterables and generator functions"),
        ({"source": [1], "cycle": "loud"}, "cycle must be one of"),
        ({"source": (each for each in ()), "cycle": True}, "a generator cannot be iterated twice"),
        ({"source": lambda: 0, "prefetch_queue_depth": 2}, "prefetch_queue_depth requires parallel=True"),
        ({"source": lambda: 0, "num_outputs": 0}, "num_outputs must be at least 1"),
        ({"parallel": True}, "parallel=True requires a source"),
        ({"source": lambda: 0, "layout": ["HW", "C"]}, "layout has 2 items for 1 output"),
    ):
        with pytest.raises(ArgumentValueError, match=message):
            built(OURS, lambda arguments=arguments: fn.external_source(**arguments))


# -- graph -------------------------------------------------------------------------------------------------------------


def test_one_output_asked_for_is_a_list_of_one() -> None:
    assert isinstance(fn.external_source(lambda: (batch_of(0),), num_outputs=1), list)
    assert not isinstance(fn.external_source(lambda: batch_of(0)), list)


def test_outputs_that_nobody_needs_may_be_left() -> None:
    def graph() -> Any:
        _, middle, _ = fn.external_source(lambda: (batch_of(0), batch_of(1), batch_of(2)), num_outputs=3)
        return middle

    (middle,) = built(OURS, graph).run()
    assert (middle.as_array() == batch_of(1)).all()


def test_class_operator() -> None:
    one = dalify.ops.ExternalSource(source=lambda: batch_of(0))
    two = dalify.ops.ExternalSource(source=lambda: (batch_of(1), batch_of(2)), num_outputs=2)
    outputs = built(OURS, lambda: (one(), *two())).run()
    assert [int(batch.as_array()[0, 0]) for batch in outputs] == [0, 100, 200]


@pytest.mark.usefixtures("gpu")
def test_data_for_the_device() -> None:
    pipe = built(OURS, lambda: fn.external_source(lambda: batch_of(3), device="gpu", layout="X"), device_id=0)
    (batch,) = pipe.run()
    assert isinstance(batch, dalify.tensors.TensorListGPU)
    assert batch.layout() == "X"
    assert (batch.as_cpu().as_array() == batch_of(3)).all()
    tensors = built(OURS, lambda: fn.external_source(lambda: torch.ones(3, 2), device="gpu"), device_id=0)
    assert (tensors.run()[0].as_cpu().as_array() == 1).all()
    ragged = built(
        OURS, lambda: fn.external_source(lambda: [np.ones(i + 1) for i in range(3)], device="gpu"), device_id=0
    )
    assert ragged.run()[0].shape() == [(1,), (2,), (3,)]


@pytest.mark.usefixtures("gpu")
def test_data_on_the_device_for_the_cpu() -> None:
    values = torch.tensor([[1.5], [-2.5]])
    for given in (values, values.bfloat16()):  # NumPy does not support bfloat16 on its own
        pipe = built(OURS, lambda: fn.external_source(name="x"), batch_size=2, device_id=0)
        pipe.feed_input("x", dalify.tensors.TensorListGPU(given))
        (batch,) = pipe.run()
        assert isinstance(batch, dalify.tensors.TensorListCPU)
        assert batch.as_array().astype(np.float32).tolist() == values.tolist()


def test_the_source_runs_in_the_thread_of_run() -> None:
    threads: list[Any] = []

    def source() -> np.ndarray:
        threads.append(threading.current_thread())
        return batch_of(0)

    pipe = built(OURS, lambda: fn.external_source(source))
    pipe.run()
    pipe.run()
    assert set(threads) == {threading.current_thread()}
