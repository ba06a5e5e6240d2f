"""States of pipelines: after restoring at any step, all further batches are those of the original run."""

from __future__ import annotations

import itertools
import json
import random
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify import fn, pipeline_def
from dalify.base.errors import CheckpointError
from dalify.pipeline import Pipeline
from tests.helpers.platforms import needs_posix
from tests.helpers.programs import finished, running

# How a restored pipeline may differ from the one that was saved.
OTHERS = [{}, {"num_threads": 3}, {"prefetch_queue_depth": 1}, {"prefetch_queue_depth": 4}, {"exec_async": False}]

Maker = Callable[..., Pipeline]


@pytest.fixture(scope="module")
def files(numbered_files: list[str]) -> list[str]:
    return numbered_files


def step(pipe: Pipeline) -> Any:
    """Return the samples of the next batch; start the next epoch at the end of one."""
    try:
        outputs = pipe.run()
    except StopIteration:
        pipe.reset()
        return "end"
    return [[np.asarray(sample).tolist() for sample in output.as_cpu()] for output in outputs]


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    assert json.loads(json.dumps(state)) == state
    return json.loads(json.dumps(state))


def assert_restores_at_every_step(
    make: Maker, steps: int = 12, others: list[dict[str, Any]] = OTHERS, goes_back: bool = True
) -> list[Any]:
    """Restore in all ways, compare the rest of the run, and return the run."""
    states: list[dict[str, Any]] = []
    run: list[Any] = []
    undisturbed = make()
    for _ in range(steps):
        states.append(through_json(undisturbed.state_dict()))
        run.append(step(undisturbed))
    for start, (state, options) in enumerate(zip(states, itertools.cycle(others))):
        if start % 2:
            restored = make(**options, checkpoint=json.dumps(state).encode())
            assert restored.is_restored_from_checkpoint
        else:
            restored = make(**options)
            restored.load_state_dict(state)
        assert through_json(restored.state_dict()) == state
        assert [step(restored) for _ in run[start:]] == run[start:], f"restored before step {start} with {options}"
        restored.close()
    if goes_back:
        undisturbed.load_state_dict(states[1])
        assert [step(undisturbed) for _ in run[1:]] == run[1:]
    undisturbed.close()
    return run


# -- readers -----------------------------------------------------------------------------------------------------------


def reading(files: list[str], **reader: Any) -> Maker:
    def make(**options: Any) -> Pipeline:
        @pipeline_def(**{"batch_size": 3, "num_threads": 1, **options})
        def read() -> Any:
            contents, labels = fn.readers.file(files=files, **reader)
            return contents, labels, fn.random.uniform(range=(0.0, 1.0))

        return read()

    return make


MODES: list[dict[str, Any]] = [
    {},
    {"random_shuffle": True},
    {"shuffle_after_epoch": True},
    {"pad_last_batch": True},
    {"random_shuffle": True, "pad_last_batch": True},
    {"stick_to_shard": True},
]


@pytest.mark.parametrize("shards", [{}, {"num_shards": 3, "shard_id": 1}], ids=["whole", "shard"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: "-".join(mode) or "plain")
def test_readers(files: list[str], mode: dict[str, Any], shards: dict[str, int]) -> None:
    run = assert_restores_at_every_step(reading(files, **mode, **shards))
    assert len({json.dumps(batch) for batch in run}) == len(run)  # the random numbers are others in every batch


@settings(max_examples=30)
@given(data=st.data())
def test_any_sizes_shards_batches_and_depths(files: list[str], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 13), "files")
    shards = data.draw(st.integers(1, size), "shards")
    options = {"num_shards": shards, "shard_id": data.draw(st.integers(0, shards - 1), "shard")}
    make = reading(files[:size], **data.draw(st.sampled_from(MODES), "mode"), **options)
    batch_size = data.draw(st.integers(1, 8), "batch size")
    pipe = make(batch_size=batch_size, prefetch_queue_depth=data.draw(st.integers(1, 4), "depth"))
    for _ in range(data.draw(st.integers(0, 8), "batches before")):
        step(pipe)
    state = through_json(pipe.state_dict())
    other = make(batch_size=batch_size, prefetch_queue_depth=data.draw(st.integers(1, 4), "depth after"))
    for _ in range(data.draw(st.integers(0, 2), "batches of another run")):
        step(other)
    other.load_state_dict(state)
    assert [step(other) for _ in range(4)] == [step(pipe) for _ in range(4)]
    pipe.close()
    other.close()


def test_the_folder_of_the_files_may_change(files: list[str], tmp_path: Path) -> None:
    pipe = reading(files)()
    step(pipe)
    state = pipe.state_dict()
    moved = [str(tmp_path / Path(file).name) for file in files]
    for old, new in zip(files, moved, strict=True):
        Path(new).write_bytes(Path(old).read_bytes())
    other = reading(moved)()
    other.load_state_dict(state)
    assert step(other) == step(pipe)


def test_a_state_is_small_and_does_not_grow(files: list[str]) -> None:
    pipe = reading(files, random_shuffle=True)()
    sizes = []
    for _ in range(20):
        sizes.append(len(pipe.checkpoint()))
        step(pipe)
    assert max(sizes) < 700
    assert max(sizes) - min(sizes) < 10


def test_images_with_random_crops(photo_folder: Path) -> None:
    def make(**options: Any) -> Pipeline:
        @pipeline_def(**{"batch_size": 4, "num_threads": 2, **options})
        def training() -> Any:
            encoded, labels = fn.readers.file(file_root=str(photo_folder), random_shuffle=True)
            image = fn.decoders.image_random_crop(encoded)
            image = fn.resize(image, size=(8, 8))
            if fn.random.coin_flip(dtype=bool):
                image = fn.flip(image)
            else:
                image = fn.brightness(image, brightness=fn.random.normal(mean=1.0, stddev=0.2))
            return image, labels

        return training()

    assert_restores_at_every_step(make, 5)


def test_on_another_device(files: list[str], gpu: str) -> None:
    def make(device: str) -> Pipeline:
        @pipeline_def(batch_size=3, num_threads=2)
        def read() -> Any:
            _, labels = fn.readers.file(files=files, random_shuffle=True)
            noise = fn.random.uniform(range=(0.0, 1.0))
            return (labels.gpu() if device == "gpu" else labels), noise

        return read()

    pipe = make("cpu")
    for _ in range(3):
        step(pipe)
    other = make(gpu)
    other.load_state_dict(pipe.state_dict())
    assert [step(other) for _ in range(4)] == [step(pipe) for _ in range(4)]


# -- users' sources ----------------------------------------------------------------------------------------------------


def of_sample(info: Any) -> np.ndarray:
    if info.iteration == 4:
        raise StopIteration
    return np.array([info.idx_in_epoch, info.epoch_idx])


def of_batch(info: Any) -> np.ndarray:
    if info.iteration == 4:
        raise StopIteration
    return np.full((2, 1), 10 * info.epoch_idx + info.iteration)


def of_number(number: int) -> np.ndarray:
    if number == 4:
        raise StopIteration
    return np.full((2, 1), number)


def generate() -> Iterator[np.ndarray]:
    for number in range(5):
        yield np.full((2, 1), number)


class Counter:
    """A callable without arguments."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> np.ndarray:
        self.calls += 1
        return np.full((2, 1), self.calls)


def from_source(make_source: Callable[[], Any], reader: list[str] | None = None, **arguments: Any) -> Maker:
    def make(**options: Any) -> Pipeline:
        @pipeline_def(**{"batch_size": 2, "num_threads": 1, **options})
        def given_data() -> Any:
            data = fn.external_source(make_source(), **arguments)
            files = fn.readers.file(files=reader, random_shuffle=True)[1] if reader else 0
            return data, files, fn.random.uniform(range=(0.0, 1.0))

        return given_data()

    return make


SOURCES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "sample": (lambda: of_sample, {"batch": False}),
    "batch": (lambda: of_batch, {"batch_info": True}),
    "number": (lambda: of_number, {}),
    "nothing": (Counter, {}),
    "list": (lambda: list(generate()), {}),
    "list, raise": (lambda: list(generate()), {"cycle": "raise"}),
    "list, quiet": (lambda: list(generate()), {"cycle": "quiet"}),
    "list of samples": (lambda: list(np.arange(7).reshape(7, 1)), {"cycle": "raise", "batch": False}),
    "generator function": (lambda: generate, {"cycle": "raise"}),
    "generator function, once": (lambda: generate, {}),
}


@pytest.mark.parametrize("name", SOURCES)
def test_sources(name: str, files: list[str]) -> None:
    make_source, arguments = SOURCES[name]
    run = assert_restores_at_every_step(from_source(make_source, files, **arguments), goes_back=name != "nothing")
    assert ("end" in run) == (name not in ("nothing", "list, quiet"))


@pytest.mark.parametrize("name", ["sample", "batch", "number", "list", "list, raise", "generator function"])
def test_sources_in_worker_processes(name: str) -> None:
    make_source, arguments = SOURCES[name]
    make = from_source(make_source, parallel=True, **arguments)
    assert_restores_at_every_step(make, 6, [{}, {"py_num_workers": 2}, {"prefetch_queue_depth": 1}])


def test_a_state_of_worker_processes_can_be_loaded_without_them() -> None:
    make_source, arguments = SOURCES["list, raise"]
    parallel = from_source(make_source, parallel=True, **arguments)()
    for _ in range(3):
        step(parallel)
    state = parallel.state_dict()
    here = from_source(make_source, **arguments)()
    here.load_state_dict(state)
    assert [step(here) for _ in range(6)] == [step(parallel) for _ in range(6)]
    parallel.close()


class Numbers:
    """An iterable with a state, like torch's stateful datasets; the state is loaded before the iteration."""

    def __init__(self) -> None:
        self.asked = 0
        self.place = {"next": 0}

    def __iter__(self) -> Iterator[np.ndarray]:
        while self.place["next"] < 6:
            self.asked += 1
            self.place["next"] += 1
            yield np.full((2, 1), self.place["next"])
        self.place["next"] = 0

    def state_dict(self) -> dict[str, Any]:
        return self.place  # the object continues to change

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.place = state


class Walker:
    """Its own iterator, which restarts in ``__iter__``; its state can only be loaded afterwards."""

    def __init__(self) -> None:
        self.asked = 0
        self.number = 0

    def __iter__(self) -> Walker:
        self.number = 0
        return self

    def __next__(self) -> np.ndarray:
        if self.number == 6:
            raise StopIteration
        self.asked += 1
        self.number += 1
        return np.full((2, 1), self.number)

    def state_dict(self) -> dict[str, Any]:
        return {"number": self.number}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.number = state["number"]


class Walked:
    """An iterable whose iterators have a state."""

    def __iter__(self) -> Iterator[np.ndarray]:
        walker = Walker()
        iter(walker)
        return walker


class StatefulCounter(Counter):
    """A callable with a state."""

    def state_dict(self) -> dict[str, Any]:
        return {"calls": self.calls}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.calls = state["calls"]


@pytest.mark.parametrize("cycle", ["raise", "quiet", None])
@pytest.mark.parametrize("kind", [Numbers, Walker, Walked])
def test_sources_that_save_their_position(kind: type, cycle: str | None, files: list[str]) -> None:
    assert_restores_at_every_step(from_source(kind, files, cycle=cycle), 9)


@pytest.mark.parametrize("kind", [Numbers, Walker])
def test_sources_that_save_their_position_do_not_repeat_previous_samples(kind: type) -> None:
    sources: list[Any] = []

    def make_source() -> Any:
        sources.append(kind())
        return sources[-1]

    make = from_source(make_source, cycle="raise")
    pipe = make()
    for _ in range(4):
        step(pipe)
    restored = make(prefetch_queue_depth=1)
    restored.load_state_dict(pipe.state_dict())
    assert sources[1].asked == 0
    assert step(restored)[0] == [[5], [5]]
    assert sources[1].asked == 1


def test_a_callable_that_saves_its_position() -> None:
    assert_restores_at_every_step(from_source(StatefulCounter))


def test_a_position_that_json_cannot_store() -> None:
    class Odd(Numbers):
        def state_dict(self) -> dict[str, Any]:
            return {"next": np.arange(3)}

    pipe = from_source(Odd)()
    step(pipe)  # no batch is lost
    with pytest.raises(CheckpointError, match=r"JSON cannot represent the state_dict\(\) of a source"):
        pipe.state_dict()


def test_generators_continue_at_their_position() -> None:
    make = from_source(lambda: generate())  # a generator, which can be iterated only once
    pipe = make(prefetch_queue_depth=1)
    states = []
    run = []
    for _ in range(3):
        states.append(pipe.state_dict())
        run.append(step(pipe))
    fresh = make(prefetch_queue_depth=1, seed=pipe.seed)
    fresh.load_state_dict(states[2])
    assert step(fresh) == run[2]
    with pytest.raises(CheckpointError, match="has returned 3 items and cannot go back to the 1"):
        fresh.load_state_dict(states[1])
    with pytest.raises(CheckpointError, match="cannot go back"):
        fresh.run()  # not from the half of a state
    state = pipe.state_dict()
    fresh.load_state_dict(state)
    other_seed = make(prefetch_queue_depth=1)
    step(other_seed)
    with pytest.raises(CheckpointError, match="cannot return its previous items again"):
        other_seed.load_state_dict(state)


def test_shorter_data_are_refused() -> None:
    pipe = from_source(lambda: list(generate()))()
    for _ in range(4):
        step(pipe)
    short = from_source(lambda: list(generate())[:2])()
    with pytest.raises(CheckpointError, match="after 4 items of the source list object, which now ends after 2"):
        short.load_state_dict(pipe.state_dict())


def test_data_fed_by_hand_are_fed_again() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def fed() -> Any:
        return fn.external_source(name="data"), fn.random.uniform(range=(0.0, 1.0))

    def run(pipe: Pipeline, number: int) -> Any:
        return [output.as_array().tolist() for output in pipe.run(data=np.full((2, 1), number))]

    pipe = fed()
    run(pipe, 0)
    state = pipe.state_dict()
    other = fed()
    other.load_state_dict(state)
    assert [run(other, number) for number in (1, 2)] == [run(pipe, number) for number in (1, 2)]


def test_errors_fail_the_same_batch() -> None:
    def sometimes(number: int) -> np.ndarray:
        if number % 3 == 1:
            raise KeyError(number)
        return np.full((2, 1), number)

    def batch(pipe: Pipeline) -> Any:
        try:
            return step(pipe)
        except KeyError as error:
            return str(error)

    make = from_source(lambda: sometimes)
    pipe = make()
    for place in range(5):
        other = make()
        other.load_state_dict(pipe.state_dict())
        assert other.state_dict() == pipe.state_dict()
        expected = batch(pipe)
        assert batch(other) == expected
        assert isinstance(expected, str) == (place % 3 == 1)


# -- what is refused ---------------------------------------------------------------------------------------------------


def plain(files: list[str], low: float = 0.0, extra: bool = False, swap: bool = False, **options: Any) -> Pipeline:
    @pipeline_def(**{"batch_size": 3, "num_threads": 1, **options})
    def read() -> Any:
        contents, labels = fn.readers.file(files=files)
        noise = fn.random.uniform(range=(low, 1.0))
        number = labels + 1 if extra else labels
        return (contents, noise, number) if swap else (contents, number, noise)

    return read()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"low": 0.5}, r"fn\.random\.uniform has different arguments"),
        ({"extra": True}, "arithmetic was used 0 times, now 1"),
        ({"swap": True}, "connected differently"),
        ({"batch_size": 4}, "made with batch_size=3, the pipeline has 4"),
        ({"seed": 6}, "made with seed=5, but the pipeline has seed=6"),
    ],
)
def test_states_of_other_pipelines(files: list[str], changes: dict[str, Any], message: str) -> None:
    pipe = plain(files, seed=5)
    step(pipe)
    state = pipe.state_dict()
    other = plain(files, **changes)
    before = step(other)
    with pytest.raises(CheckpointError, match=message):
        other.load_state_dict(state)
    assert before != step(other) != "end"  # it continues without a change
    with pytest.raises(CheckpointError, match=message):
        plain(files, **changes, checkpoint=json.dumps(state)).run()


def test_an_explicit_default_changes_nothing(files: list[str]) -> None:
    state = reading(files)().state_dict()
    reading(files, pad_last_batch=False, random_shuffle=False, prefetch_queue_depth=3)().load_state_dict(state)
    with pytest.raises(CheckpointError, match=r"fn\.readers\.file has different arguments"):
        reading(files, pad_last_batch=True)().load_state_dict(state)


def test_other_data_and_shards(files: list[str]) -> None:
    state = reading(files, num_shards=3, shard_id=0)().state_dict()
    with pytest.raises(CheckpointError, match="made with 13 samples, but the reader now has 12") as caught:
        reading(files[:12], num_shards=3, shard_id=0)().load_state_dict(state)
    assert "fn.readers.file" in str(caught.value)
    state_of_shuffled = reading(files, num_shards=3, shard_id=0, random_shuffle=True)().state_dict()
    with pytest.raises(CheckpointError, match="made with 3 shards, but the reader now has 2") as caught:
        reading(files, num_shards=2, shard_id=0, random_shuffle=True)().load_state_dict(state_of_shuffled)
    assert "pipe.load_state_dict([state_of_shard_0, state_of_shard_1, ...])" in str(caught.value)
    with pytest.raises(CheckpointError, match="made by shard 0, but the reader is shard 1"):
        reading(files, num_shards=3, shard_id=1)().load_state_dict(state)
    # Shards of equal size have the same position, so the state of one rank is sufficient for all.
    state = reading(files[:12], num_shards=3, shard_id=0)().state_dict()
    reading(files[:12], num_shards=3, shard_id=1)().load_state_dict(state)


def test_strings_that_are_not_states(files: list[str]) -> None:
    pipe = plain(files)
    text = pipe.checkpoint()
    for wrong in (b"", b"\x0a\x03abc", "no", b"[]", b"{}", text[:-9], b"3", "null"):
        with pytest.raises(CheckpointError, match="not a checkpoint"):
            plain(files, checkpoint=wrong)
    with pytest.raises(CheckpointError, match="its format is 'dalify state 0', expected 'dalify state 1'"):
        plain(files, checkpoint=text.replace(b"state 1", b"state 0"))
    with pytest.raises(CheckpointError, match="its format is None"):
        pipe.load_state_dict({"pipelines": []})


@settings(max_examples=40)
@given(data=st.data())
def test_changed_strings_are_rejected(files: list[str], data: st.DataObject) -> None:
    text = plain(files, seed=3).checkpoint()
    place = data.draw(st.integers(0, len(text) - 1), "place")
    changed = text[:place] + bytes([data.draw(st.integers(32, 126), "letter")]) + text[place + 1 :]
    if json.loads(text) == _or_none(changed):
        return
    with pytest.raises(CheckpointError):
        plain(files, checkpoint=changed)


def _or_none(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


# -- files, crashes ----------------------------------------------------------------------------------------------------


def test_checkpoint_files(files: list[str], tmp_path: Path) -> None:
    pipe = plain(files)
    step(pipe)
    path = tmp_path / "run.checkpoint"
    path.write_bytes(b"an older one")
    assert pipe.checkpoint(path) == path.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["run.checkpoint"]
    assert step(plain(files, checkpoint=path.read_text())) == step(pipe)
    (tmp_path / "latest").symlink_to("run.checkpoint")
    assert pipe.checkpoint(tmp_path / "latest") == path.read_bytes()
    assert (tmp_path / "latest").is_symlink()


TRAINING = """
    import json, os, sys
    from pathlib import Path
    import numpy as np
    from dalify import fn, pipeline_def

    log, saved, files, steps = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]), int(sys.argv[4])

    def doubled(info):
        return np.array([info.idx_in_epoch])

    @pipeline_def(batch_size=3, num_threads=2, prefetch_queue_depth=int(sys.argv[5]))
    def training():
        contents, labels = fn.readers.file(files=files, random_shuffle=True)
        noise = fn.random.uniform(range=(0.0, 1.0))
        return labels, fn.external_source(doubled, batch=False), noise

    pipe = training(checkpoint=saved.read_bytes()) if saved.exists() else training()
    done = json.loads(saved.read_text())["number"] if saved.exists() else 0
    if not saved.exists():
        pipe.checkpoint(saved)  # the seed was drawn by chance
    with log.open("a") as out:
        for number in range(done, steps):
            outputs = [item.as_array().ravel().tolist() for item in pipe.run()]
            out.write(json.dumps([number, outputs]) + "\\n")
            out.flush()
            pipe.checkpoint(saved)
    print("finished", flush=True)
"""


@pytest.mark.slow
@needs_posix
def test_repeatedly_killed_training(files: list[str], tmp_path: Path) -> None:
    """Every step that is repeated after a kill, and every later step, is equal to that of a run without kills."""
    steps, chance = 2000, random.Random(4)
    program = tmp_path / "training.py"
    program.write_text(textwrap.dedent(TRAINING))
    log, saved = tmp_path / "log", tmp_path / "checkpoint"

    def arguments(log: Path, saved: Path, depth: int) -> list[Any]:
        return [program, log, saved, json.dumps(files), steps, depth]

    for attempt in range(3):
        with running(*arguments(log, saved, 1 + attempt)) as process:
            lines = _line_count(log)
            until = time.monotonic() + 60
            while _line_count(log) == lines and process.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(chance.uniform(0.0, 0.2))
            process.kill()
            process.wait()
        if attempt == 0:
            first = json.loads(saved.read_text())
            seed = first["seed"]
        assert json.loads(saved.read_text())["seed"] == seed
    done = _line_count(log)
    assert finished(*arguments(log, saved, 2))[1] == "finished\n"

    undisturbed = tmp_path / "undisturbed"
    begin = reading_for_training(files, seed).checkpoint()
    other = tmp_path / "other"
    other.write_bytes(begin)
    assert finished(*arguments(undisturbed, other, 2))[1] == "finished\n"
    expected = [json.loads(line) for line in undisturbed.read_text().splitlines()]
    assert len(expected) == steps
    assert 4 < done < steps, "the kills must hit the run in its middle"
    numbers = set()
    for line in log.read_text().splitlines():
        number, outputs = _parsed(line)
        if number is not None:
            assert [number, outputs] == expected[number]
            numbers.add(number)
    assert len(numbers) >= steps - 4  # a line may be cut off where the process was killed while writing it


def _parsed(line: str) -> tuple[int | None, Any]:
    try:
        number, outputs = json.loads(line)
    except ValueError:
        return None, None
    return number, outputs


def _line_count(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def reading_for_training(files: list[str], seed: int) -> Pipeline:
    @pipeline_def(batch_size=3, num_threads=1, seed=seed)
    def training() -> Any:
        _, labels = fn.readers.file(files=files, random_shuffle=True)
        noise = fn.random.uniform(range=(0.0, 1.0))
        return labels, fn.external_source(of_sample, batch=False), noise

    return training()


# -- DALI's way to write it --------------------------------------------------------------------------------------------


def test_the_calls_equal_dali(oracle: ModuleType, files: list[str], tmp_path: Path) -> None:
    """One program for both libraries, which saves, restores and reads states."""
    theirs = pytest.importorskip("nvidia.dali.fn")

    def program(functions: Any, define: Any, path: Path) -> list[Any]:
        @define(batch_size=3, num_threads=1, device_id=None, enable_checkpointing=True, seed=4)
        def read() -> Any:
            labels = functions.readers.file(files=files, name="Reader")[1]
            return labels, functions.external_source(lambda info: np.array([info.idx_in_epoch]), batch=False)

        def labels(pipe: Any) -> list[Any]:
            return [np.asarray(sample).tolist() for output in pipe.run() for sample in output]

        pipe = read()
        pipe.build()
        seen: list[Any] = [pipe.is_restored_from_checkpoint]
        for _ in range(6):
            labels(pipe)
        text = pipe.checkpoint(str(path))
        seen += [isinstance(text, bytes), path.read_bytes() == text]
        restored = read(checkpoint=text)
        restored.build()
        seen += [restored.is_restored_from_checkpoint, *(labels(restored) for _ in range(5))]
        return seen

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = program(theirs, oracle.pipeline_def, tmp_path / "theirs")
    assert program(fn, pipeline_def, tmp_path / "ours") == expected
