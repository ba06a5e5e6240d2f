"""``fn.cache``: rejected uses, and every reader with keys for its entries."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import eager, fn, ops, pipeline_def, types
from dalify.base.errors import ArgumentValueError, CacheError, SerializationError
from dalify.pipeline.pipeline import parts_of
from dalify.registry import catalog
from tests.helpers.photo_pipelines import assert_same_samples, values
from tests.operators.readers.datasets import DATASETS

IMAGES = [np.full((4, 5, 3), value, np.uint8) for value in range(3)]
KNOWING = sorted(name for name in DATASETS if catalog.find(name).entry_identity is not None)


def _built(function: Any, **options: Any) -> Any:
    pipe = pipeline_def(function)(batch_size=3, num_threads=2, device_id=None, **{"seed": 1, **options})
    pipe.build()
    return pipe


REFUSED = {
    "an argument that is drawn": (
        lambda images: fn.rotate(images, angle=fn.random.uniform(range=(0.0, 9.0))),
        r"fn.random.uniform at .*test_cache.py:\d+ in <lambda>\(\), which is random",
    ),
    "a random operator": (lambda images: fn.random_resized_crop(images, size=[9, 9]), "which is random"),
    "noise far in front": (
        lambda images: fn.flip(fn.cast(fn.noise.gaussian(images, stddev=3.0), dtype=types.UINT8)) + 1,
        "fn.noise.gaussian",
    ),
    "data from outside": (
        lambda images: images + fn.external_source(source=lambda: IMAGES),
        "samples have no identity",
    ),
    "a Python function": (
        lambda images: fn.python_function(images, function=lambda image: image),
        "which calls a function that may return different results each time",
    ),
    "a Python function of batches": (
        lambda images: fn.python_function(
            images, function=lambda image: image, batch_processing=True, deterministic=True
        ),
        "which calls a function",
    ),
    "the whole batch": (
        lambda images: fn.normalize(images, batch=True, axes=[0, 1]),
        "which processes the whole batch",
    ),
    "other samples": (lambda images: fn.pad(images), "fn.pad at .* which processes the whole batch"),
    "a permuted batch": (lambda images: fn.permute_batch(images, indices=[2, 1, 0]), "which processes the whole batch"),
    "files that are written": (lambda images: fn.dump_image(images), "which has side effects"),
    "the GPU": (lambda images: images.gpu(), "caches are on the CPU"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(photo_folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    make, message = REFUSED[name]

    def run() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        images = fn.resize(fn.decoders.image(encoded), size=[4, 5])
        images = make(images)
        return fn.cache(images)

    with pytest.raises(CacheError, match=message) as caught:
        _built(run)
    assert re.search(r"test_cache.py:\d+ in run\(\)\n +return fn.cache\(images\)", str(caught.value))
    assert caught.value.hint


def test_refused_without_a_reader() -> None:
    with pytest.raises(CacheError, match="there is no reader before it"):
        _built(lambda: fn.cache(types.Constant(np.zeros(3, np.uint8), device="cpu") + 1))
    with pytest.raises(CacheError, match="on fn\\.external_source"):
        _built(lambda: fn.cache(fn.external_source(source=lambda: IMAGES)))


def test_refused_in_a_condition(photo_folder: Path) -> None:
    def run() -> Any:
        encoded, labels = fn.readers.file(file_root=str(photo_folder))
        images = fn.decoders.image(encoded)
        if labels[0] > 1:
            images = fn.cache(fn.flip(images))
        return images

    with pytest.raises(CacheError, match="it is inside a condition"):
        _built(run)


def test_readers_that_do_not_know_their_entries_are_refused() -> None:
    data = [(np.zeros(3, np.uint8),)] * 5

    def run() -> Any:
        return fn.cache(fn.readers.dataset(dataset=data))

    with pytest.raises(CacheError, match="cannot detect whether its data have changed") as caught:
        _built(run)
    assert "readers.file" in str(caught.value.hint)
    assert "readers.dataset" not in str(caught.value.hint)


@pytest.mark.parametrize(
    "arguments",
    [
        {"cache_type": "lru"},
        {"cache_size": -1},
        {"cache_type": "largest", "cache_folder": "x"},
        {"cache_folder": "s3://bucket/cache"},
        {"cache_folder": "a\0b"},
    ],
)
@pytest.mark.parametrize("decoder", [True, False])
def test_wrong_arguments(photo_folder: Path, arguments: dict[str, Any], decoder: bool) -> None:
    def run() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        if decoder:
            return fn.decoders.image(encoded, **arguments)
        return fn.cache(fn.decoders.image(encoded), **arguments)

    with pytest.raises(ArgumentValueError, match="cache_"):
        _built(run)


# -- readers


def _read(name: str, arguments: dict[str, Any], is_cached: bool, **options: Any) -> Any:
    module, _, last = name.rpartition(".")
    given = {key: value(dalify) if callable(value) else value for key, value in arguments.items()}

    def run() -> Any:
        reader = fn
        for part in [*module.split("."), last]:
            reader = getattr(reader, part)
        outputs = reader(**given, random_shuffle=True)
        outputs = tuple(outputs.values()) if isinstance(outputs, dict) else outputs
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        if not is_cached:
            return tuple(outputs)
        kept = fn.cache(*outputs, **options)
        return tuple(kept) if isinstance(kept, (tuple, list)) else kept

    return _built(run)


@pytest.mark.parametrize("in_folder", [False, True])
@pytest.mark.parametrize("name", KNOWING)
def test_readers(name: str, in_folder: bool, tmp_path: Path) -> None:
    """What comes from the cache is what the reader gives; a change of the data is seen."""
    (tmp_path / "data").mkdir()
    arguments = DATASETS[name](tmp_path / "data", 11)
    options = {"cache_folder": str(tmp_path / "cache")} if in_folder else {}
    plain, first = _read(name, arguments, False), _read(name, arguments, True, **options)
    wanted = [values(plain.run()) for _ in range(12)]
    for batch in wanted:
        assert_same_samples(values(first.run()), batch)
    again = _read(name, arguments, True, **options)
    for batch in wanted:
        assert_same_samples(values(again.run()), batch)
    (step,) = parts_of(again).builder.engine().plan.caches
    assert step.counts.misses == 0
    kept = step.store  # while it is held, the next pipeline finds it
    first.close()
    again.close()  # otherwise they would read ahead in the changed files
    # New modification times of all files invalidate all cached results.
    for path in [path for path in (tmp_path / "data").rglob("*") if path.is_file()]:
        os.utime(path, ns=(1, 1))
    changed = _read(name, arguments, True, **options)
    for batch in wanted:
        assert_same_samples(values(changed.run()), batch)
    (step,) = parts_of(changed).builder.engine().plan.caches
    assert step.counts.misses >= 11
    del kept


def test_labels_that_changed(photo_folder: Path, tmp_path: Path) -> None:
    """Labels are cached with the images; they come from a list that may change while the files do not."""
    names = [str(path.relative_to(photo_folder)) for path in sorted(photo_folder.glob("*/*.jpg"))]
    found = []
    kept = []
    for labels in (range(12), range(100, 112)):
        (tmp_path / "list").write_text("".join(f"{name} {label}\n" for name, label in zip(names, labels, strict=True)))

        def run() -> Any:
            encoded, labels = fn.readers.file(file_root=str(photo_folder), file_list=str(tmp_path / "list"))
            return fn.cache(fn.decoders.image(encoded)), labels

        kept.append(_built(run))
        found.append([int(label[0]) for _ in range(8) for label in values(kept[-1].run())[1]])
    assert found == [[*range(12)] * 2, [*range(100, 112)] * 2]


def test_a_list_that_grew(photo_folder: Path, tmp_path: Path) -> None:
    """Which entries there are is no part of what a sample is known by."""
    paths = sorted(map(str, photo_folder.glob("*/*.jpg")))
    pipes = []
    for count in (6, 12):

        def run(count: int = count) -> Any:
            encoded, labels = fn.readers.file(files=paths[:count])
            return fn.cache(fn.decoders.image(encoded)), labels

        pipe = dalify.Pipeline(batch_size=3, num_threads=2, device_id=None, prefetch_queue_depth=1)
        with pipe:
            pipe.set_outputs(*run())
        pipe.build()
        for _ in range(count // 3):
            pipe.run()
        pipes.append(pipe)
    (step,) = parts_of(pipes[1]).builder.engine().plan.caches
    assert step.counts.misses == 6


def test_a_file_that_changed_while_the_pipeline_runs(photo_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(photo_folder, tmp_path / "photos"))
    paths = sorted(folder.glob("*/*.jpg"))

    def run() -> Any:
        encoded, _ = fn.readers.file(files=[str(path) for path in paths[:3]])
        return fn.cache(fn.decoders.image(encoded))

    pipe = _built(run, prefetch_queue_depth=1)
    (before,) = values(pipe.run())
    assert_same_samples([before], values(pipe.run()))
    time.sleep(0.02)  # more than the resolution of the file system's clock
    shutil.copyfile(paths[7], paths[1])
    pipe.run()  # it was under way
    (after,) = values(pipe.run())
    assert_same_samples([[before[0], before[2]]], [[after[0], after[2]]])
    assert after[1].shape != before[1].shape or (after[1] != before[1]).any()


# -- other ways to call it


def test_class(photo_folder: Path) -> None:
    def run() -> Any:
        encoded, labels = ops.readers.File(file_root=str(photo_folder))()
        keep = ops.Cache(cache_size=8)
        return keep(ops.decoders.Image()(encoded)), labels

    pipe = _built(run)
    for _ in range(9):
        pipe.run()
    assert "samples came from the cache" in pipe.explain()


def test_immediate_calls_keep_nothing() -> None:
    image = IMAGES[1]
    np.testing.assert_array_equal(eager.cache(image), image)


def test_serialized(photo_folder: Path, tmp_path: Path) -> None:
    """A cache writes to its folder, so a deserialized graph with a cache folder is rejected."""

    def run() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        return fn.cache(fn.decoders.image(encoded), cache_folder=str(tmp_path / "cache"))

    def decoded() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        return fn.decoders.image(encoded, cache_folder=str(tmp_path / "cache"), cache_size=4)

    for function in (run, decoded):
        text = _built(function).serialize()
        with pytest.raises(SerializationError, match="writes files"):
            dalify.Pipeline.deserialize(text)
        pipe = dalify.Pipeline.deserialize(text, allow_side_effects=True, device_id=None)
        pipe.run()
        pipe.close()
        assert (tmp_path / "cache").exists()
        shutil.rmtree(tmp_path / "cache")
