"""Cache keys depend exactly on the values that change a sample."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import fn, types
from dalify.base import limits
from dalify.base.errors import CacheError
from dalify.executor import cache_keys
from dalify.executor.cache_keys import digest_of
from dalify.graph import DataNode
from dalify.pipeline.pipeline import parts_of

FACTOR = 2


def _digest(make: Callable[[], DataNode]) -> str:
    pipe = dalify.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.cache(make()))
    node = parts_of(pipe).builder.graph().outputs[0].node
    return digest_of(list(node.edges()), node)


def _images(reader: Any = None, decoder: Any = None) -> DataNode:
    encoded, _ = fn.readers.file(files=["a.jpg", "b.jpg"], **(reader or {}))
    return fn.decoders.image(encoded, **(decoder or {}))


SAME = {
    "shuffled": lambda: _images({"random_shuffle": True, "initial_fill": 7}),
    "a shard": lambda: _images({"shard_id": 1, "num_shards": 2, "stick_to_shard": True}),
    "a name": lambda: _images({"name": "reader"}),
    "other files": lambda: fn.decoders.image(fn.readers.file(files=["c.jpg"])[0]),
    "handling of bad samples": lambda: _images({"on_error": "skip"}, {"on_error": "replace"}),
    "defaults that are written out": lambda: _images(None, {"output_type": types.RGB, "dtype": types.UINT8}),
}
OTHER = {
    "another type": lambda: _images(None, {"output_type": types.GRAY}),
    "another element type": lambda: _images(None, {"dtype": types.FLOAT}),
    "another operator": lambda: fn.flip(_images()),
    "a constant": lambda: _images() + 1,
    "another constant": lambda: _images() + 2,
    "a constant of another type": lambda: _images() + 1.0,
    "a constant array": lambda: _images() + types.Constant(np.uint8([1, 1, 1]), device="cpu"),
    "another order": lambda: 1 - _images(),
    "the encoded file": lambda: fn.readers.file(files=["a.jpg"])[0],
    "the label": lambda: fn.readers.file(files=["a.jpg"])[1],
    "a function": lambda: fn.python_function(_images(), function=lambda x: x, deterministic=True),
    "another function": lambda: fn.python_function(_images(), function=lambda x: x + 1, deterministic=True),
    "the same name twice": lambda: _images() + fn.flip(_images()),
    "a named constant": lambda: fn.python_function(_images(), function=lambda x: x * FACTOR, deterministic=True),
}


@pytest.mark.parametrize("name", SAME)
def test_same(name: str) -> None:
    assert _digest(SAME[name]) == _digest(_images)


def test_all_others_differ() -> None:
    found = {name: _digest(make) for name, make in OTHER.items()}
    found["plain"] = _digest(_images)
    assert len(set(found.values())) == len(found)
    assert found == {name: _digest(make) for name, make in {**OTHER, "plain": _images}.items()}


def test_limits_and_versions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _digest(_images)
    with limits.applied(limits.Limits(max_image_pixels=1000)):
        assert _digest(_images) != plain
    monkeypatch.setattr(cache_keys.importlib.metadata, "version", lambda _: "0.0")
    assert _digest(_images) != plain


def test_named_constants_count(monkeypatch: pytest.MonkeyPatch) -> None:
    make = OTHER["a named constant"]
    before = _digest(make)
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3)
    assert _digest(make) != before


def _helper(x: np.ndarray) -> np.ndarray:
    return _deeper(x) + 1


def _deeper(x: np.ndarray) -> np.ndarray:
    return x * FACTOR


def _again(x: np.ndarray) -> np.ndarray:
    return x if x.size else _again(x)


def test_functions_that_are_called_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> DataNode:
        return fn.python_function(_images(), function=_helper, deterministic=True)

    before = _digest(make)
    assert _digest(make) == before
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3)
    assert _digest(make) != before
    assert _digest(lambda: fn.python_function(_images(), function=_again, deterministic=True))


def test_methods_and_defaults() -> None:
    def with_default(amount: int) -> Callable[[Any], Any]:
        def function(x: Any, amount: int = amount) -> Any:
            return x + amount

        return function

    found = [
        _digest(lambda: fn.python_function(_images(), function=with_default(amount), deterministic=True))  # noqa: B023
        for amount in (1, 2, 1)
    ]
    assert found[0] == found[2] != found[1]


def test_objects_without_comparable_values() -> None:
    thing = object()

    def make() -> DataNode:
        return fn.python_function(_images(), function=lambda x: (thing, x)[1], deterministic=True)

    with pytest.raises(CacheError, match=r"the argument function of fn\.python_function is a function"):
        _digest(make)


_PROGRAM = """
from tests.executor.test_cache_keys import OTHER, _digest, _images
print(_digest(_images), *(_digest(make) for make in OTHER.values()))
"""


@pytest.mark.parametrize("seed", ["1", "2"])
def test_same_in_each_process(seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environment, cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [_digest(_images), *(_digest(make) for make in OTHER.values())]
