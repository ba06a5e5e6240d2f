"""Pickling by value of functions that use names of dalify."""

from __future__ import annotations

import cloudpickle
import pytest

from dalify import fn, ops
from dalify.base.optional import LazyModule


@pytest.mark.parametrize("namespace", [fn, fn.readers, ops, ops.readers], ids=lambda item: item.__name__)
def test_namespaces_are_pickled_by_name(namespace: object) -> None:
    assert cloudpickle.loads(cloudpickle.dumps(namespace)) is namespace


def test_lazy_modules_are_pickled_without_their_package() -> None:
    copied = cloudpickle.loads(cloudpickle.dumps(LazyModule("no_such_package", "this test", "nothing")))
    with pytest.raises(ImportError, match="this test needs the package 'no_such_package'"):
        _ = copied.anything


def test_factories_of_pipelines_are_pickled_by_value() -> None:
    program = """
from dalify import fn, pipeline_def

@pipeline_def(batch_size=2, num_threads=1, seed=1)
def pipeline():
    return fn.random.uniform(range=[0.0, 1.0])
"""
    main = {"__name__": "__main__", "__builtins__": __builtins__}
    exec(program, main)  # of a main program, because its functions cannot be imported
    factory = main["pipeline"]
    copied = cloudpickle.loads(cloudpickle.dumps(factory))
    assert copied is not factory
    assert copied().num_outputs == 1
