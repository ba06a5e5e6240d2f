"""The parts of a pipeline: ownership, and what a subclass of the user may override."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dalify import fn, ops, pipeline_def
from dalify.pipeline import Pipeline
from dalify.pipeline.pipeline import parts_of

OPTIONS: dict[str, Any] = {"batch_size": 2, "num_threads": 2, "device_id": None, "seed": 1}


def counted(number: int) -> Any:
    return np.full(2, number, np.float32)


def numbers(**options: Any) -> Pipeline:
    @pipeline_def(**OPTIONS)
    def function() -> Any:
        return fn.copy(fn.external_source(counted, name="numbers"), name="copied")

    return function(**options)


class Old(Pipeline):
    """A pipeline of an old program."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**OPTIONS, **options)
        self.input = ops.ExternalSource(name="input")
        self.fed = 0

    def define_graph(self) -> Any:
        return self.input()

    def iter_setup(self) -> None:
        self.feed_input("input", counted(self.fed))
        self.fed += 1


KINDS: dict[str, Callable[[], Pipeline]] = {
    "function": numbers,
    "subclass": Old,
    "debug": lambda: numbers(debug=True),
    "taps": lambda: numbers(taps=["copied"]),
    "restored": lambda: numbers(checkpoint=numbers().checkpoint()),
    "copied": lambda: numbers().copy(),
}


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("kind", KINDS)
def test_the_last_reference_frees_a_pipeline_and_its_parts(kind: str) -> None:
    pipe = KINDS[kind]()
    for number in range(3):
        (batch,) = pipe.run()
        np.testing.assert_array_equal(np.asarray(batch.as_array()).ravel(), [number, number])
    parts = parts_of(pipe)
    owned = [pipe, parts.definition, parts.builder, parts.run, parts.checkpoints, parts.inspection, parts.taps]
    references = [weakref.ref(item) for item in owned]
    del pipe, parts, owned, batch
    assert [reference() for reference in references] == [None] * len(references)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "debug"])
@pytest.mark.usefixtures("no_collector")
def test_a_pipeline_that_was_closed_or_never_built_is_freed(kind: str) -> None:
    for close in (True, False):
        pipe = KINDS[kind]()
        if close:
            pipe.run()
            pipe.close()
        reference = weakref.ref(pipe)
        del pipe
        assert reference() is None


def test_a_subclass_may_have_attributes_of_nearly_any_name() -> None:
    class Named(Old):
        def __init__(self) -> None:
            super().__init__()
            for name in ("graph", "feed", "decode", "readers", "builder", "lock", "options", "engine", "parts", "line"):
                setattr(self, name, None)
                setattr(self, "_" + name if name != "parts" else "__parts", None)
            self._built = self._seed = self._name = self._made = self._api = self._closed = self._traced = None

    pipe = Named()
    for number in range(3):
        (batch,) = pipe.run()
        np.testing.assert_array_equal(np.asarray(batch.as_array()).ravel(), [number, number])
    state = pipe.state_dict()
    assert state["number"] == 3
    pipe.reset()
    pipe.close()


def test_what_a_subclass_overrides_is_called() -> None:
    calls = []

    class Watching(Pipeline):
        def define_graph(self) -> Any:
            calls.append("define_graph")
            assert Pipeline.current() is self
            return fn.external_source(name="numbers")

        def build(self) -> None:
            calls.append("build")
            super().build()

        def iter_setup(self) -> None:
            calls.append("iter_setup")

        def feed_input(self, *arguments: Any, **keywords: Any) -> None:
            calls.append("feed_input")
            super().feed_input(*arguments, **keywords)

    pipe = Watching(**OPTIONS, prefetch_queue_depth=1)
    (batch,) = pipe.run(numbers=counted(5))
    assert np.asarray(batch.as_array()).tolist() == [5, 5]
    assert calls == ["build", "define_graph", "feed_input", "iter_setup"]
    pipe.close()


def test_dalis_private_method_for_outputs_can_be_called() -> None:
    pipe = numbers()
    pipe._run_once()
    (batch,) = pipe._outputs()
    assert np.asarray(batch.as_array()).tolist() == [0, 0]
    pipe.close()


def test_a_pipeline_has_no_base_class_and_one_attribute() -> None:
    """Its methods delegate to parts; mixins would share the names of their attributes with the user's subclasses."""
    assert Pipeline.__bases__ == (object,)
    assert set(vars(numbers())) == {"_parts"}
