"""Options of odd types: NumPy scalars work; others are accepted, or raise dalify's own error with the name."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch

from dalify import Pipeline, fn, types
from dalify.base.errors import ArgumentRangeError, ArgumentTypeError, ArgumentValueError, DalifyError
from dalify.executor.options import OPTION_NAMES, PipelineOptions
from dalify.plugin.pytorch import DALIGenericIterator

BASE: dict[str, Any] = {"batch_size": 2, "num_threads": 1, "device_id": None}
ITERATOR_OPTIONS = (
    "output_map",
    "reader_name",
    "auto_reset",
    "fill_last_batch",
    "last_batch_padded",
    "last_batch_policy",
    "prepare_first_batch",
    "fresh_epochs",
    "collate",
    "valid_name",
)


class _Failing:
    """An object of which nothing works."""

    def _fail(self, *_: object) -> Any:
        raise RuntimeError("this class is broken")

    __repr__ = __str__ = __eq__ = __bool__ = __index__ = __int__ = __float__ = __iter__ = __len__ = _fail
    __hash__ = None  # pyright: ignore[reportAssignmentType]


class _WrongIndex:
    def __index__(self) -> Any:
        return "x"


ODD: dict[str, Any] = {
    "array of one": np.array([2]),
    "array of two": np.array([2, 3]),
    "array of no axes": np.array(2),
    "tensor of one": torch.tensor([2]),
    "tensor of two": torch.tensor([2, 3]),
    "NumPy float": np.float32(2.5),
    "NumPy bool": np.bool_(True),
    "NaN": float("nan"),
    "infinity": float("inf"),
    "negative": -5,
    "huge": 10**40,
    "digits": 10**5000,
    "text": "2",
    "long text": "x" * 200,
    "lone surrogate": "\ud800",
    "bytes": b"2",
    "list": [2],
    "tuple": (2,),
    "dictionary": {"a": 1},
    "set": {1},
    "class": int,
    "function": len,
    "object": object(),
    "broken": _Failing(),
    "list of broken": [_Failing()],
    "wrong index": _WrongIndex(),
    "complex": 2j,
    "decimal": Decimal(2),
}


def _error_of(make: Callable[[], object]) -> DalifyError | None:
    """Return dalify's error; other exceptions are raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            make()
    except DalifyError as error:
        return error
    return None


@pytest.mark.parametrize("name", sorted(OPTION_NAMES))
def test_odd_options_of_a_pipeline(name: str) -> None:
    for kind, value in ODD.items():
        error = _error_of(lambda value=value: PipelineOptions.of({**BASE, name: value}))
        if error is not None and name != "limits":
            assert name.removeprefix("experimental_") in error.message, kind
            assert isinstance(error, (ArgumentTypeError, ArgumentValueError)), kind
            assert len(str(error)) < 1000


@pytest.mark.parametrize("name", ["batch_size", "num_threads", "processes", "py_num_workers", "bytes_per_sample"])
@pytest.mark.parametrize("kind", ["array of one", "array of two", "tensor of two", "NaN", "class", "broken", "list"])
def test_integers(name: str, kind: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"{name} must be an integer; got"):
        Pipeline(**{**BASE, name: ODD[kind]})


def test_device_id_out_of_range() -> None:
    with pytest.raises(ArgumentRangeError, match="device_id must be a 32-bit integer"):
        Pipeline(batch_size=2, num_threads=1, device_id=1 << 40)


def test_numpy_scalars() -> None:
    """All of them work, and are saved as Python numbers."""
    pipe = Pipeline(
        batch_size=np.uint8(2),
        num_threads=np.int64(1),
        device_id=np.int32(0),
        seed=np.uint64(1 << 63),
        prefetch_queue_depth=np.int8(3),
        exec_async=np.bool_(True),
        max_error_rate=np.float16(0.5),
        output_ndim=[np.int16(0)],
        bytes_per_sample=np.uint32(5),
        processes=np.array(0),
    )
    with pipe:
        pipe.set_outputs(fn.random.uniform(range=[0, 1]))
    assert pipe.max_batch_size == 2
    assert pipe.seed == 1 << 63
    assert pipe.prefetch_queue_depth == 3
    assert len(pipe.run()[0]) == 2
    again = Pipeline.deserialize(pipe.serialize())
    assert np.array_equal(np.array(again.run()[0].as_array()), _first_batch(1 << 63))
    depths = {"cpu_size": np.int8(2), "gpu_size": np.int64(3)}
    options = PipelineOptions.of(
        {
            **BASE,
            "prefetch_queue_depth": depths,
            "output_dtype": types.FLOAT,
            "callback_timeout_s": np.float32(9.5),
        }
    )
    assert options.callback_timeout_s == 9.5
    assert json.loads(json.dumps(options.as_json()))["prefetch_queue_depth"] == {"cpu_size": 2, "gpu_size": 3}


def _first_batch(seed: int) -> np.ndarray:
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None, seed=seed)
    with pipe:
        pipe.set_outputs(fn.random.uniform(range=[0, 1]))
    return np.array(pipe.run()[0].as_array())


class _Numbers:
    def __len__(self) -> int:
        return 4

    def __getitem__(self, number: int) -> np.ndarray:
        return np.full(2, number)


@pytest.mark.parametrize("name", ITERATOR_OPTIONS)
def test_odd_options_of_an_iterator(name: str) -> None:
    pipe = Pipeline(**BASE)
    with pipe:
        pipe.set_outputs(fn.readers.dataset(dataset=_Numbers(), num_outputs=1, name="reader"))
    for kind, value in ODD.items():
        given: dict[str, Any] = {"output_map": ["x"], "reader_name": "reader", name: value}
        error = _error_of(lambda given=given: DALIGenericIterator(pipe, **given))
        if error is not None:
            assert ("reader" if name == "reader_name" else name) in error.message, kind
            assert len(str(error)) < 1000


@pytest.mark.parametrize("value", [np.True_, np.False_])
def test_numpy_switches_of_an_iterator(value: Any) -> None:
    pipe = Pipeline(**BASE)
    with pipe:
        pipe.set_outputs(fn.readers.dataset(dataset=_Numbers(), num_outputs=1, name="reader"))
    options = dict.fromkeys(["auto_reset", "prepare_first_batch", "fresh_epochs"], value)
    loader = DALIGenericIterator(pipe, ["x"], reader_name="reader", **options)
    assert [batch[0]["x"][:, 0].tolist() for batch in loader] == [[0, 1], [2, 3]]
