"""Pipelines with and without a cache have equal results."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.base.errors import CacheError, DalifyError, DecodeError
from dalify.executor.cache_step import CacheStep
from dalify.pipeline.pipeline import parts_of
from tests.helpers.photos import write_photo_folder
from tests.helpers.platforms import needs_posix
from tests.helpers.web_server import web_server


@pytest.fixture(autouse=True)
def _no_other_pipelines() -> None:
    """Collect garbage, because pipelines of other tests share the memory of equal caches until they are collected."""
    gc.collect()


@pytest.fixture
def folder(tmp_path: Path, photo_folder: Path) -> Path:
    """Return a copy of the photos for tests that modify them."""
    return Path(shutil.copytree(photo_folder, tmp_path / "photos"))


def _make(function: Callable[..., Any], *arguments: Any, batch_size: int = 5, **options: Any) -> Any:
    options = {"num_threads": 2, "seed": 5, **options}
    pipe = pipeline_def(function)(*arguments, batch_size=batch_size, device_id=None, **options)
    pipe.build()
    return pipe


def _caches(pipe: Any) -> list[CacheStep]:
    built = parts_of(pipe).builder.built  # also of a closed pipeline
    assert built is not None
    return built.engine.plan.caches


def _cache(pipe: Any) -> CacheStep:
    (found,) = _caches(pipe)
    return found


def _values(outputs: Any) -> list[list[np.ndarray]]:
    return [[np.array(tensor) for tensor in output] for output in outputs]


def _batches(pipe: Any, count: int) -> list[list[list[np.ndarray]]]:
    return [_values(pipe.run()) for _ in range(count)]


def _assert_same(some: Any, others: Any) -> None:
    assert len(some) == len(others)
    for one, other in zip(some, others, strict=True):
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            assert one.tobytes() == other.tobytes()
        else:
            _assert_same(one, other)


def _assert_like_uncached(make: Callable[[bool], Any], batches: int = 12) -> Any:
    """Run both twice: a second pipeline uses the cache of the first one while it exists."""
    plain, first = make(False), make(True)
    wanted = _batches(plain, batches)
    _assert_same(_batches(first, batches), wanted)
    again = make(True)
    first.close()
    _assert_same(_batches(again, batches), wanted)
    assert sum(step.counts.hits for step in _caches(again)) > 0
    plain.close()
    return again


def _training(root: Path, is_cached: bool, shuffle: bool = True, options: Any = None, resized: bool = True) -> Any:
    encoded, labels = fn.readers.file(file_root=str(root), random_shuffle=shuffle, name="reader")
    images = fn.decoders.image(encoded)
    if resized:
        # Otherwise it is fused with the crop, which changes a few values by one.
        images = fn.resize(images, size=[64, 48], preserve=not is_cached)
    if is_cached:
        images = fn.cache(images, **(options or {}))
    images = fn.crop_mirror_normalize(
        images, crop=[40, 40], mirror=fn.random.coin_flip(), dtype=types.FLOAT, mean=[100.0] * 3, std=[50.0] * 3
    )
    return images, labels


# -- results


@pytest.mark.parametrize("batch_size", [1, 5, 12, 32])
@pytest.mark.parametrize("num_threads", [1, 3])
def test_training(photo_folder: Path, batch_size: int, num_threads: int) -> None:
    again = _assert_like_uncached(
        lambda cached: _make(_training, photo_folder, cached, batch_size=batch_size, num_threads=num_threads)
    )
    assert _cache(again).counts.misses == 0


@pytest.mark.parametrize("resized", [True, False])
@pytest.mark.parametrize("options", [{}, {"cache_type": "largest"}, {"cache_threshold": 5000}])
def test_options(photo_folder: Path, options: dict[str, Any], resized: bool) -> None:
    _assert_like_uncached(lambda cached: _make(_training, photo_folder, cached, True, options, resized))


@pytest.mark.parametrize("cache_type", ["threshold", "largest"])
def test_a_small_cache(tmp_path: Path, cache_type: str) -> None:
    """A chunk may contain any combination of cached and computed samples."""
    write_photo_folder(tmp_path, images_per_class=8, longest_side=400)
    options = {"cache_size": 2, "cache_type": cache_type}
    again = _assert_like_uncached(lambda cached: _make(_training, tmp_path, cached, True, options, False), 24)
    step = _cache(again)
    assert step.counts.hits > 0
    assert step.counts.misses > 0
    assert step.store is not None
    assert step.store.size_bytes <= 2 << 20


def test_nothing_is_computed_again(photo_folder: Path) -> None:
    """On a hit no operator before the cache runs: function, decoder and reader."""
    calls: list[int] = []

    def run(is_cached: bool) -> Any:
        encoded, labels = fn.readers.file(file_root=str(photo_folder))
        images = fn.decoders.image(encoded)
        images = fn.python_function(images, function=lambda image: calls.append(1) or image, deterministic=True)
        return fn.cache(images) if is_cached else images, labels

    pipe = _make(run, True, batch_size=4)
    first = _batches(pipe, 3)
    reader = next(iter(parts_of(pipe).builder.engine().plan.readers.values()))
    assert len(calls) >= 12
    counted = len(calls)
    read: list[Any] = []
    reader.run = lambda frame: read.append(frame)
    _assert_same(_batches(pipe, 6), first * 2)
    assert counted == len(calls)
    assert not read
    pipe.close()


def test_encoded_files_and_labels_used_elsewhere(photo_folder: Path) -> None:
    """If encoded files are used elsewhere, the reader reads them, and labels are those of the reader."""

    def run(is_cached: bool) -> Any:
        encoded, labels = fn.readers.file(file_root=str(photo_folder), random_shuffle=True)
        images = fn.decoders.image(encoded)
        shapes = fn.peek_image_shape(encoded)
        return fn.cache(images) if is_cached else images, labels + 1, shapes

    _assert_like_uncached(lambda cached: _make(run, cached))


def test_the_cached_value_is_an_output_as_well(photo_folder: Path) -> None:
    def run(is_cached: bool) -> Any:
        encoded, labels = fn.readers.file(file_root=str(photo_folder))
        images = fn.resize(fn.decoders.image(encoded), size=[20, 20])
        kept = fn.cache(images) if is_cached else images
        return images, kept, images + 1, labels

    again = _assert_like_uncached(lambda cached: _make(run, cached))
    assert _cache(again).counts.misses == 0


def test_several_values(photo_folder: Path) -> None:
    def run(is_cached: bool) -> Any:
        encoded, labels = fn.readers.file(file_root=str(photo_folder), random_shuffle=True)
        images = fn.decoders.image(encoded)
        small, large = fn.resize(images, size=[20, 30]), fn.resize(images, resize_shorter=50)
        if is_cached:
            small, large, labels = fn.cache(small, large, labels)
        return small, large, labels * 2

    again = _assert_like_uncached(lambda cached: _make(run, cached))
    assert _cache(again).counts.misses == 0


def test_two_caches_behind_one_reader(photo_folder: Path) -> None:
    def run(is_cached: bool) -> Any:
        encoded, labels = fn.readers.file(file_root=str(photo_folder), random_shuffle=True)
        one, other = fn.decoders.image(encoded), fn.decoders.image(encoded, output_type=types.GRAY)
        if is_cached:
            one, other = fn.cache(one), fn.cache(other)
        return one, other, labels

    again = _assert_like_uncached(lambda cached: _make(run, cached))
    assert [step.counts.misses for step in _caches(again)] == [0, 0]


def test_a_cache_in_front_of_a_cache(photo_folder: Path) -> None:
    def run(is_cached: bool) -> Any:
        encoded, labels = fn.readers.file(file_root=str(photo_folder), random_shuffle=True)
        images = fn.decoders.image(encoded)
        if is_cached:
            images = fn.cache(images, cache_size=1)
        images = fn.resize(images + types.Constant(np.uint8(1)), size=[20, 30])
        return fn.cache(images, cache_size=1) if is_cached else images, labels

    _assert_like_uncached(lambda cached: _make(run, cached))


def test_conditions_in_front(photo_folder: Path) -> None:
    """The results of conditions on data, and the samples of branches, are equal in each epoch."""

    def run(is_cached: bool) -> Any:
        encoded, labels = fn.readers.file(file_root=str(photo_folder), random_shuffle=True)
        images = fn.decoders.image(encoded)
        if labels[0] > 0:
            images = fn.flip(images) if images.shape()[0] > 100 else fn.resize(images, size=[30, 30])
        else:
            images = fn.cast(255 - images, dtype=types.UINT8)
        images = fn.cache(images) if is_cached else images
        if labels[0] == 2:
            images = fn.rotate(images, angle=fn.random.uniform(range=(0.0, 90.0)))
        return images, labels

    _assert_like_uncached(lambda cached: _make(run, cached))


def test_arguments_from_the_graph(photo_folder: Path) -> None:
    def run(is_cached: bool) -> Any:
        encoded, labels = fn.readers.file(file_root=str(photo_folder), random_shuffle=True)
        angle = fn.cast(labels[0], dtype=types.FLOAT) * 10.0
        images = fn.rotate(fn.decoders.image(encoded), angle=angle, fill_value=0)
        return fn.cache(images) if is_cached else images, angle

    _assert_like_uncached(lambda cached: _make(run, cached))


def test_two_readers(photo_folder: Path) -> None:
    """The key of a sample of two readers contains both entries."""

    def run(is_cached: bool) -> Any:
        one, _ = fn.readers.file(file_root=str(photo_folder), random_shuffle=True)
        other, label = fn.readers.file(file_root=str(photo_folder), random_shuffle=True)
        images = fn.resize(fn.decoders.image(one), size=[30, 30]) // 2
        images += fn.resize(fn.decoders.image(other), size=[30, 30]) // 2
        return fn.cache(images) if is_cached else images, label

    _assert_like_uncached(lambda cached: _make(run, cached), 30)


def test_shards_and_samplers(photo_folder: Path) -> None:
    """Shards and orders share a cache: the order of samples is not part of the key."""
    pipes = [_make(_sharded, photo_folder, cached, shard) for shard in (0, 1) for cached in (False, True)]
    for plain, cached in (pipes[:2], pipes[2:]):
        _assert_same(_batches(cached, 6), _batches(plain, 6))
    assert _cache(pipes[1]).store is _cache(pipes[3]).store
    whole = _make(_sharded, photo_folder, True, 0, 1)
    _batches(whole, 2)
    assert _cache(whole).counts.misses == 0


def _sharded(root: Path, is_cached: bool, shard: int, shards: int = 2) -> Any:
    encoded, labels = fn.readers.file(
        file_root=str(root), random_shuffle=True, shard_id=shard, num_shards=shards, pad_last_batch=True
    )
    images = fn.decoders.image(encoded)
    return fn.cache(images) if is_cached else images, labels


def test_states_do_not_depend_on_caches(photo_folder: Path) -> None:
    """A run can resume from the state of a run without a cache, and vice versa."""
    plain, cached = _make(_training, photo_folder, False), _make(_training, photo_folder, True)
    _batches(plain, 4)
    _batches(cached, 4)
    states = plain.state_dict(), cached.state_dict()
    assert json.dumps(states[0]) == json.dumps(states[1])
    wanted = _batches(plain, 5)
    for state, is_cached in ((states[0], True), (states[1], False)):
        pipe = _make(_training, photo_folder, is_cached)
        pipe.load_state_dict(state)
        _assert_same(_batches(pipe, 5), wanted)


# -- decoders


def _decoded(root: Path, options: dict[str, Any], decoder: Any = None) -> Any:
    encoded, labels = fn.readers.file(file_root=str(root), random_shuffle=True)
    return fn.decoders.image(encoded, **options, **(decoder or {})), labels


@pytest.mark.parametrize("cache_type", ["threshold", "largest"])
def test_decoders(photo_folder: Path, cache_type: str) -> None:
    options = {"cache_type": cache_type, "cache_size": 64}
    again = _assert_like_uncached(lambda cached: _make(_decoded, photo_folder, options if cached else {}))
    assert _cache(again).counts.misses == 0
    assert "samples came from the cache, 0 were computed" in again.explain()


@pytest.mark.parametrize("options", [{}, {"cache_size": 10}, {"cache_type": "threshold"}])
def test_decoders_without_a_cache(photo_folder: Path, options: dict[str, Any]) -> None:
    """Without a type or a size, nothing is cached, as in DALI."""
    assert not _caches(_make(_decoded, photo_folder, options))


def test_decoder_arguments_are_part_of_the_key(photo_folder: Path) -> None:
    options = {"cache_type": "threshold", "cache_size": 64}
    pipes = {}
    for name, decoder in {"rgb": {}, "gray": {"output_type": types.GRAY}, "float": {"dtype": types.FLOAT}}.items():
        pipes[name] = _make(_decoded, photo_folder, options, decoder)
        plain = _make(_decoded, photo_folder, {}, decoder)
        _assert_same(_batches(pipes[name], 6), _batches(plain, 6))
    assert len({id(_cache(pipe).store) for pipe in pipes.values()}) == 3


def test_decoders_of_unnamed_data(photo_folder: Path) -> None:
    """Like DALI, samples without a name are not cached; explain() reports it."""
    photos = [np.fromfile(path, np.uint8) for path in sorted(photo_folder.glob("*/*.jpg"))[:3]]

    def run() -> Any:
        return fn.decoders.image(fn.external_source(source=lambda: photos), cache_type="largest", cache_size=10)

    pipe = _make(run, batch_size=3)
    _assert_same(_batches(pipe, 1), _batches(pipe, 1))
    assert not _caches(pipe)
    assert "is not cached: the input cannot be cached: it depends on fn.external_source" in pipe.explain()


@pytest.mark.parametrize("cached_by", ["decoder", "operator"])
def test_mixed_decoders(photo_folder: Path, cached_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")

    def run(is_cached: bool) -> Any:
        encoded, labels = fn.readers.file(file_root=str(photo_folder))
        options = {"cache_type": "threshold", "cache_size": 9} if is_cached and cached_by == "decoder" else {}
        if cached_by == "decoder":
            images = fn.decoders.image(encoded, device="mixed", **options)
        else:
            images = fn.decoders.image(encoded)
            images = fn.cache(images).gpu() if is_cached else images.gpu()
        return fn.resize(images, size=[30, 30]).cpu(), labels.gpu().cpu()

    pipes = [pipeline_def(run)(cached, batch_size=4, num_threads=2, device_id=0) for cached in (False, True)]
    plain, cached = (_batches(pipe, 9) for pipe in pipes)
    _assert_same(plain, cached)
    assert _cache(pipes[1]).counts.hits >= 24


# -- bad samples


@pytest.mark.parametrize("on_error", ["skip", "replace"])
@pytest.mark.parametrize("damage", ["decode", "read"])
def test_bad_samples(folder: Path, on_error: str, damage: str) -> None:
    """Bad samples are not cached: each epoch reports them, and their replacements are equal."""
    bad = sorted(folder.glob("*/*.jpg"))[3]
    if damage == "decode":
        bad.write_bytes(bad.read_bytes()[:300])

    plain, cached = (_make(_training, folder, is_cached, on_error=on_error) for is_cached in (False, True))
    if damage == "read":
        bad.unlink()
    for _ in range(3):
        _assert_same(_batches(cached, 5), _batches(plain, 5))
        assert [str(item) for item in cached.bad_samples()] == [str(item) for item in plain.bad_samples()]
    assert len(plain.bad_samples()) >= 2


def test_messages_are_equal_with_and_without_a_cache(folder: Path) -> None:
    bad = sorted(folder.glob("*/*.jpg"))[7]
    contents = bad.read_bytes()
    bad.write_bytes(contents[:300])
    messages: list[str] = []
    for cached in (False, True):
        pipe = _make(_training, folder, cached, False)
        for _ in range(2):
            with pytest.raises(DecodeError) as caught:
                _batches(pipe, 3)
            messages.append(str(caught.value))
        bad.write_bytes(contents)
        pipe.run()  # it continues
        bad.write_bytes(contents[:300])
    assert str(bad) in messages[0]
    assert messages[:2] == messages[2:]


def test_errors_after_the_cache_name_the_file(folder: Path) -> None:
    def run() -> Any:
        encoded, _ = fn.readers.file(file_root=str(folder))
        images = fn.cache(fn.decoders.image(encoded))
        return fn.crop(images, crop=[118, 118])  # no photo is that large in both directions

    pipe = _make(run)
    messages = []
    for _ in range(15):
        with pytest.raises(DalifyError) as caught:
            pipe.run()
        messages.append(str(caught.value))
    assert all(str(folder) in message for message in messages)
    assert _cache(pipe).counts.hits > 0


def test_lower_limits_apply_to_cached_samples(photo_folder: Path) -> None:
    """A pipeline with lower limits does not get samples from the cache of a pipeline with higher limits."""
    loose = _make(_decoded, photo_folder, {"cache_type": "threshold", "cache_size": 64})
    _batches(loose, 3)
    strict = _make(
        _decoded, photo_folder, {"cache_type": "threshold", "cache_size": 64}, limits={"max_image_pixels": 100}
    )
    with pytest.raises(DalifyError, match="pixels"):
        strict.run()


# -- changed data, changed functions


def test_changed_files(folder: Path) -> None:
    cached = _make(_training, folder, True, False, prefetch_queue_depth=1)
    _batches(cached, 6)
    paths = sorted(folder.glob("*/*.jpg"))
    one, other = paths[0].read_bytes(), paths[5].read_bytes()
    paths[0].write_bytes(other)
    paths[5].write_bytes(one)
    for _ in range(4):  # until all batches that were read before are finished
        cached.run()
    cached.reset()
    plain = _make(_training, folder, False, False)
    _batches(cached, 12)
    cached.reset()
    state = cached.state_dict()
    plain.load_state_dict(state)
    _assert_same(_batches(cached, 6), _batches(plain, 6))


def test_functions_are_part_of_the_key(photo_folder: Path) -> None:
    """Equal functions share a cache; a different constant, closure or called function is a different key."""

    def make(amount: int) -> Any:
        def run() -> Any:
            encoded, _ = fn.readers.file(file_root=str(photo_folder))
            images = fn.decoders.image(encoded)
            return fn.cache(fn.python_function(images, function=lambda x: x // amount, deterministic=True))

        return _make(run)

    pipes = [make(2), make(3), make(2)]
    values = [_batches(pipe, 3) for pipe in pipes]
    _assert_same(values[0], values[2])
    assert _cache(pipes[0]).store is _cache(pipes[2]).store is not _cache(pipes[1]).store
    assert (values[0][0][0][0] != values[1][0][0][0]).any()


class _Slow:
    """Records whether it runs at the same time as another call."""

    inside = 0
    most = 0


def _slow(image: np.ndarray) -> np.ndarray:
    _Slow.inside += 1
    time.sleep(0.002)
    _Slow.most = max(_Slow.most, _Slow.inside)
    _Slow.inside -= 1
    return image


def test_functions_run_one_at_a_time(photo_folder: Path) -> None:
    def run() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        return fn.cache(fn.python_function(fn.decoders.image(encoded), function=_slow, deterministic=True))

    _batches(_make(run, num_threads=4, prefetch_queue_depth=4), 6)
    assert _Slow.most == 1


def test_functions_without_comparable_values(photo_folder: Path) -> None:
    calls: list[int] = []

    def run() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        images = fn.python_function(
            fn.decoders.image(encoded), function=lambda x: calls.append(1) or x, deterministic=True
        )
        return fn.cache(images)

    assert _cache(_make(run)).counts.hits == 0  # the key of a list contains its items
    calls_of: Any = object()

    def other() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        return fn.cache(
            fn.python_function(fn.decoders.image(encoded), function=lambda x: calls_of or x, deterministic=True)
        )

    with pytest.raises(CacheError, match="argument function of"):
        _make(other)


# -- a folder


def test_folder(photo_folder: Path, tmp_path: Path) -> None:
    options = {"cache_folder": str(tmp_path / "cache"), "cache_size": 16}
    again = _assert_like_uncached(lambda cached: _make(_training, photo_folder, cached, True, options, False))
    assert _cache(again).counts.misses == 0
    again.close()
    # All kinds of damage: damaged samples are decoded again.
    files = sorted(path for path in (tmp_path / "cache").rglob("*") if len(path.name) == 30)
    assert len(files) == 12
    files[0].write_bytes(b"")
    files[1].write_bytes(files[2].read_bytes())
    os.truncate(files[3], 1000)
    contents = bytearray(files[4].read_bytes())
    contents[-100] ^= 1
    files[4].write_bytes(contents)
    plain = _make(_training, photo_folder, False, True, options, False)
    cached = _make(_training, photo_folder, True, True, options, False)
    _assert_same(_batches(cached, 12), _batches(plain, 12))
    assert 4 <= _cache(cached).counts.misses < 12


_PROGRAM = """
import sys
import numpy as np
from dalify import fn, pipeline_def
from dalify.pipeline.pipeline import parts_of

@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1)
def pipe(root, cache):
    encoded, labels = fn.readers.file(file_root=root, random_shuffle=True)
    return fn.decoders.image(encoded, cache_type="threshold", cache_size=64, cache_folder=cache), labels

p = pipe(*sys.argv[1:3])
print("begun", flush=True)
total = 0
for _ in range(int(sys.argv[3])):
    images, labels = p.run()
    total = (total * 31 + sum(int(np.asarray(image).sum()) for image in images)) % 1000003
print(total, parts_of(p).builder.engine().plan.caches[0].counts.misses, flush=True)
"""


def _program(root: Path, cache: Path, batches: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _PROGRAM, str(root), str(cache), str(batches)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def _result(process: subprocess.Popen[bytes]) -> tuple[int, int]:
    with process:
        assert process.stdout is not None
        total, misses = process.stdout.read().split()[-2:]
    assert process.returncode == 0
    return int(total), int(misses)


@needs_posix
def test_processes(tmp_path: Path) -> None:
    """Processes share a folder, also if one of them is killed at any time."""
    write_photo_folder(tmp_path / "photos", images_per_class=30, longest_side=300)
    cache = tmp_path / "cache"
    for wait_s in (0.0, 0.03, 0.06):
        with _program(tmp_path / "photos", cache, 10_000) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(wait_s)
            process.kill()
    both = [_program(tmp_path / "photos", cache, 60) for _ in range(2)]
    totals = [_result(process) for process in both]
    last = _result(_program(tmp_path / "photos", cache, 60))
    plain = _result(_program(tmp_path / "photos", tmp_path / "empty", 60))
    assert {total for total, _ in (*totals, last, plain)} == {plain[0]}
    assert last[1] == 0
    assert plain[1] >= 90


# -- forks, threads, several pipelines


def _in_child(pipe: Any, results: Any) -> None:
    batches = _batches(pipe, 6)
    results.put(([value[0].tobytes() for batch in batches for value in batch], _cache(pipe).counts.misses))


@needs_posix
def test_fork(photo_folder: Path) -> None:
    """A child has the cache of its parent."""
    pipe = _make(_training, photo_folder, True)
    _batches(pipe, 6)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=_in_child, args=(pipe, results))
    process.start()
    found, misses = results.get(timeout=60)
    process.join()
    known = _cache(pipe).counts.misses
    assert found == [value[0].tobytes() for batch in _batches(pipe, 6) for value in batch]
    assert misses == known


def test_pipelines_side_by_side(photo_folder: Path) -> None:
    pipes = [_make(_training, photo_folder, True, prefetch_queue_depth=3) for _ in range(3)]
    plain = _make(_training, photo_folder, False)
    for _ in range(8):
        wanted = _values(plain.run())
        for pipe in pipes:
            pipe.schedule_run()
        for pipe in pipes:
            _assert_same(_values(pipe.share_outputs()), wanted)
            pipe.release_outputs()
    assert len({id(_cache(pipe).store) for pipe in pipes}) == 1
    store = _cache(pipes[0]).store
    assert store is not None
    assert len(store) == 12  # type: ignore[arg-type]


def test_outputs_are_the_users(photo_folder: Path) -> None:
    """Modifying an output does not change the cache."""

    def run() -> Any:
        encoded, labels = fn.readers.file(file_root=str(photo_folder))
        return fn.cache(fn.decoders.image(encoded)), labels

    pipe = _make(run, batch_size=12)
    first = _batches(pipe, 1)
    for _ in range(3):
        images, labels = pipe.run()
        _assert_same([_values((images, labels))], first)
        for output in (images, labels):
            for tensor in output:
                np.asarray(tensor)[...] = 0


def test_closing_frees_the_memory(photo_folder: Path) -> None:
    pipe = _make(_training, photo_folder, True)
    _batches(pipe, 3)
    kept = weakref.ref(_cache(pipe).store)
    pipe.close()
    assert kept() is None
    assert "caches nothing: the pipeline is closed" in str(_cache(pipe))


def test_debug_mode(photo_folder: Path) -> None:
    plain, cached = (_make(_training, photo_folder, is_cached, False, debug=is_cached) for is_cached in (False, True))
    _assert_same(_batches(cached, 4), _batches(plain, 4))


# -- files elsewhere


def test_urls_are_not_requested_again(photo_folder: Path) -> None:
    """Cached samples are not requested, not even in advance."""
    names = [str(path.relative_to(photo_folder)) for path in sorted(photo_folder.glob("*/*.jpg"))]

    def run(url: str, is_cached: bool) -> Any:
        encoded, labels = fn.readers.file(files=[f"{url}/{name}" for name in names], random_shuffle=True)
        images = fn.decoders.image(encoded)
        return fn.cache(images) if is_cached else images, labels

    with web_server(photo_folder) as (url, behavior):
        plain, cached = (_make(run, url, is_cached, prefetch_queue_depth=1) for is_cached in (False, True))
        wanted = _batches(plain, 9)
        plain.close()
        _assert_same(_batches(cached, 4), wanted[:4])
        asked = len(behavior.asked)
        _assert_same(_batches(cached, 5), wanted[4:])
        assert len(behavior.asked) == asked
        cached.close()


def test_memory_statistics(photo_folder: Path) -> None:
    """Steps in a cache are measured like others."""
    sizes = []
    for is_cached in (False, True):
        pipe = _make(_training, photo_folder, is_cached, False, enable_memory_stats=True)
        _batches(pipe, 3)
        found = pipe.executor_statistics()
        sizes.append({name.rsplit("_", 1)[0]: value["max_real_memory_size"] for name, value in found.items()})
    assert sizes[1]["CPU_decoders.image"] == sizes[0]["CPU_decoders.image"]
    assert sizes[1]["CPU_crop_mirror_normalize"] == sizes[0]["CPU_crop_mirror_normalize"]


@pytest.mark.parametrize("in_folder", [False, True])
@pytest.mark.parametrize("on_error", ["skip", "replace", "raise"])
def test_samples_of_mixed_types(tmp_path: Path, on_error: str, in_folder: bool) -> None:
    """Whether a sample differs from its batch does not depend on the cache."""
    random = np.random.default_rng(3)
    for number in range(24):
        kind = (np.float32, (3, 4)) if number % 5 else [(np.uint8, (3, 4)), (np.float32, (6,))][number % 2]
        np.save(tmp_path / f"{number:02d}.npy", random.integers(0, 99, kind[1]).astype(kind[0]))
    options = {"cache_folder": str(tmp_path / "cache")} if in_folder else {}

    def run(is_cached: bool) -> Any:
        arrays = fn.readers.numpy(
            files=[str(path) for path in sorted(tmp_path.glob("*.npy"))], random_shuffle=True, initial_fill=8
        )
        arrays = fn.cast(arrays, dtype=types.FLOAT) * 2.0
        return fn.cache(arrays, **options) if is_cached else arrays

    plain, cached = (
        _make(run, is_cached, batch_size=6, num_threads=3, on_error=on_error) for is_cached in (False, True)
    )
    outcomes: list[list[Any]] = [[], []]
    for _ in range(16):
        for pipe, found in zip((plain, cached), outcomes, strict=True):
            try:
                found.append(_values(pipe.run()))
            except DalifyError as error:
                found.append(str(error))
    for one, other in zip(*outcomes, strict=True):
        if isinstance(one, str):
            assert one == other
        else:
            _assert_same(other, one)
    assert [str(bad) for bad in cached.bad_samples()] == [str(bad) for bad in plain.bad_samples()]
    assert any(isinstance(one, str) for one in outcomes[0]) or on_error != "raise"
    assert len(plain.bad_samples()) > 5 or on_error == "raise"
    assert _cache(cached).counts.hits > 10


# -- worker processes


@needs_posix
@pytest.mark.parametrize("in_folder", [False, True])
def test_worker_processes(photo_folder: Path, tmp_path: Path, in_folder: bool) -> None:
    options = {"cache_size": 8, **({"cache_folder": str(tmp_path / "cache")} if in_folder else {})}
    plain = _make(_training, photo_folder, False, True, None, False)
    cached = _make(_training, photo_folder, True, True, options, False, processes=2)
    _assert_same(_batches(cached, 24), _batches(plain, 24))
    step = _cache(cached)
    total, most = step.counts.hits + step.counts.misses, 12 if in_folder else 24
    assert total >= 120
    assert 0 < step.counts.misses <= most + 10  # two may compute the same sample at the same time
    assert ("in memory of 2 processes" in cached.explain()) == (not in_folder)
    cached.close()
    plain.close()


@needs_posix
def test_bad_samples_in_worker_processes(folder: Path) -> None:
    bad = sorted(folder.glob("*/*.jpg"))[3]
    bad.write_bytes(bad.read_bytes()[:300])
    plain, cached = (
        _make(_training, folder, is_cached, on_error="skip", processes=2 * is_cached) for is_cached in (False, True)
    )
    _assert_same(_batches(cached, 9), _batches(plain, 9))
    assert [str(item) for item in cached.bad_samples()] == [str(item) for item in plain.bad_samples()]
    cached.close()
