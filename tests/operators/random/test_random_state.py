"""``_random_state``: the state of a generator in place of a seed, as the real DALI takes it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import eager
from dalify.base.errors import ArgumentTypeError, ArgumentValueError

STATE = np.uint32([1, 2, 3, 4, 5, 6, 4_000_000_000])


def drawn(dali: Any, state: Any, batch_size: int = 3, operator: Any = None, **options: Any) -> list[np.ndarray]:
    """Return two batches of numbers."""

    def pipeline():
        given = dali.fn.external_source(source=lambda: state) if isinstance(state, list) else state
        made = operator or (lambda **arguments: dali.fn.random.uniform(shape=[3], **arguments))
        return made(_random_state=given, **options)

    pipe = dali.pipeline_def(pipeline)(batch_size=batch_size, num_threads=2, device_id=None, seed=1)
    pipe.build()
    return [np.array(pipe.run()[0].as_array()) for _ in range(2)]


def _properties(dali: Any) -> list[bool]:
    """Return what does not depend on the numbers themselves."""
    first, second = drawn(dali, STATE)
    return [
        bool((first == second).all()),
        bool((first == drawn(dali, STATE, seed=7)[0]).all()),
        bool((first == drawn(dali, [STATE, STATE + 1, STATE + 2])[0]).all()),
        bool((first == drawn(dali, np.append(STATE, np.uint32(9)))[0]).all()),
        bool((first == drawn(dali, STATE + 1)[0]).any()),
        bool((first[0] == first[1]).any()),
    ]


def test_as_in_dali(oracle: ModuleType) -> None:
    assert _properties(dalify) == _properties(oracle)


def test_the_state_of_the_first_sample_is_used() -> None:
    assert _properties(dalify) == [True, True, True, True, False, False]


def test_other_operators(device: str) -> None:
    image = np.zeros((3, 4, 4, 3), np.float32)

    def noise(**arguments: Any) -> Any:
        x = dalify.fn.external_source(source=lambda: image)
        return dalify.fn.noise.gaussian(x.gpu() if device == "gpu" else x, stddev=1.0, **arguments).cpu()

    first, second = drawn(dalify, STATE, operator=noise)
    np.testing.assert_array_equal(first, second)
    assert (first != drawn(dalify, STATE + 1, operator=noise)[0]).any()


def test_immediate_calls() -> None:
    one, same = (eager.random.uniform(shape=[3], _random_state=STATE) for _ in range(2))
    np.testing.assert_array_equal(one, same)


def test_mistakes() -> None:
    with pytest.raises(ArgumentValueError, match="7 numbers of 32 bits; got 3"):
        drawn(dalify, STATE[:3])
    with pytest.raises(ArgumentTypeError, match="_random_state"):
        drawn(dalify, "state")
    with pytest.raises(TypeError, match="unknown argument '_random_state'"):
        drawn(dalify, STATE, operator=lambda **arguments: dalify.fn.zeros(shape=[3], **arguments))


def test_it_is_not_listed() -> None:
    assert "_random_state" not in dalify.fn.random.uniform.__doc__
    assert "_random_state" not in dalify.backend.GetSchema("random__Uniform").GetArgumentNames()
