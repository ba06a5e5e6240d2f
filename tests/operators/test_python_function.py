"""Operators that call the user's functions, compared with the real DALI's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.dlpack import from_dlpack, to_dlpack

import dalify
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DTypeError, LayoutError, ShapeError, SourceError
from dalify.plugin.pytorch import fn as torch_fn

SAMPLES = [np.arange(6, dtype=np.uint8).reshape(2, 3), np.ones((1, 4), np.uint8)]

Make = Callable[[ModuleType, Any], Any]


def run(dali: ModuleType, make: Make, **options: Any) -> list[Any]:
    """Outputs of two runs: element type, layout and samples."""

    @dali.pipeline_def(batch_size=2, num_threads=2, device_id=None, **options)
    def pipe() -> Any:
        result = make(dali, dali.fn.external_source(lambda: SAMPLES))
        return tuple(result) if isinstance(result, (list, tuple)) else result

    built = pipe()
    built.build()
    outputs = [built.run() for _ in range(2)][-1]
    return [(int(out.dtype), out.layout(), [np.array(out.at(i)).tolist() for i in range(len(out))]) for out in outputs]


def call(function: Callable[..., Any], **arguments: Any) -> Make:
    return lambda dali, x: dali.fn.python_function(x, function=function, **arguments)


CASES: dict[str, Make] = {
    "same": call(lambda x: x),
    "double": call(lambda x: x.astype(np.float64) * 2),
    "mask": call(lambda x: x > 1),
    "transposed": call(lambda x: x.T, output_layouts="AB"),
    "turned": call(lambda x: x[::-1, ::-1]),
    "shrunk": call(lambda x: x.sum(axis=0, dtype=np.int64)),
    "one tuple": call(lambda x: (x,)),
    "two": call(lambda x: (x, x.astype(np.float32) / 2), num_outputs=2, output_layouts=["AB", "CD"]),
    "one layout": call(lambda x: (x, x), num_outputs=2, output_layouts="AB"),
    "batch": call(lambda xs: [x + 1 for x in xs], batch_processing=True),
    "batch of two": call(lambda xs: (xs[::-1], [x * 3 for x in xs]), num_outputs=2, batch_processing=True),
    "two inputs": lambda dali, x: dali.fn.python_function(x, x, function=lambda a, b: a + b),
    "capsules": lambda dali, x: dali.fn.dl_tensor_python_function(
        x, function=lambda capsules: [to_dlpack(from_dlpack(capsule) * 2) for capsule in capsules]
    ),
    "capsules one by one": lambda dali, x: dali.fn.dl_tensor_python_function(
        x, function=lambda capsule: to_dlpack(from_dlpack(capsule) * 2), batch_processing=False
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_results_equal_dali(oracle: ModuleType, case: str) -> None:
    assert run(dalify, CASES[case]) == run(oracle, CASES[case])


def test_without_outputs_it_is_called_for_what_it_does() -> None:
    seen: list[list[int]] = []

    def make(dali: ModuleType, x: Any) -> Any:
        assert (
            dali.fn.python_function(x, function=lambda sample: seen.append(list(sample.shape)), num_outputs=0) is None
        )
        return x

    run(dalify, make)
    assert seen[:2] == [[2, 3], [1, 4]]


def test_batches_are_received_in_order() -> None:
    seen: list[int] = []

    @dalify.pipeline_def(batch_size=2, num_threads=4, prefetch_queue_depth=4)
    def pipe() -> Any:
        data = dalify.fn.external_source(lambda i: np.full((2, 1), i, np.int32))
        return dalify.fn.python_function(data + 1, function=lambda x: seen.append(int(x[0])) or x)

    built = pipe()
    for _ in range(30):
        built.run()
    assert seen[:60] == [number for number in range(1, 31) for _ in range(2)]


def test_torch_python_function() -> None:
    def on_torch(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        assert isinstance(x, torch.Tensor)
        return x.float().requires_grad_() * 2, x.t()

    def make(dali: ModuleType, x: Any) -> Any:
        return torch_fn.torch_python_function(x, function=on_torch, num_outputs=2, output_layouts=["AB", "BA"])

    (kind, layout, samples), (_, other, turned) = run(dalify, make)
    assert (kind, layout, other) == (dalify.types.FLOAT, "AB", "BA")
    assert samples == [(sample * 2.0).tolist() for sample in SAMPLES]
    assert turned == [sample.T.tolist() for sample in SAMPLES]


def test_torch_batches() -> None:
    def make(dali: ModuleType, x: Any) -> Any:
        return torch_fn.torch_python_function(x, function=lambda xs: [x + 1 for x in xs], batch_processing=True)

    assert run(dalify, make)[0][2] == [(sample + 1).tolist() for sample in SAMPLES]


def test_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    if not torch.cuda.is_available():
        monkeypatch.setenv("DALIFY_DEVICE", "cpu")

    def doubled(x: Any) -> Any:
        assert isinstance(x, torch.Tensor)
        return x * 2

    def make(dali: ModuleType, x: Any) -> Any:
        return [
            dali.fn.python_function(x.gpu(), function=doubled).cpu(),
            dali.fn.dl_tensor_python_function(
                x.gpu(), function=lambda xs: [to_dlpack(from_dlpack(c) * 2) for c in xs]
            ).cpu(),
            torch_fn.torch_python_function(x.gpu(), function=doubled).cpu(),
        ]

    assert [samples for _, _, samples in run(dalify, make)] == [[(sample * 2).tolist() for sample in SAMPLES]] * 3


def test_constants_may_be_changed_by_the_function() -> None:
    def make(dali: ModuleType, x: Any) -> Any:
        def spoil(constant: Any, _: Any) -> Any:
            constant += 1
            return constant

        return dali.fn.python_function(dali.types.Constant(np.zeros(3, np.int32)), x, function=spoil)

    assert run(dalify, make)[0][2] == [[1, 1, 1]] * 2


def test_conditions_in_a_function_are_plain_python() -> None:
    def plain(x: Any) -> Any:
        return x if x.shape[0] > 1 and not x.shape[1] > 3 else x[:, :1]

    assert run(dalify, call(plain))[0][2] == [SAMPLES[0].tolist(), [[1]]]


def raises(x: Any) -> Any:
    if len(x) == 1:
        raise KeyError("oops")
    return x


def test_an_error_names_operator_line_and_sample_and_keeps_its_traceback() -> None:
    with pytest.raises(KeyError, match="oops") as caught:
        run(dalify, call(raises))
    notes = "\n".join(caught.value.__notes__)
    assert "fn.python_function" in notes
    assert "sample 1 of the batch" in notes
    assert caught.traceback[-1].name == "raises"
    assert Path(str(caught.traceback[-1].path)).name == Path(__file__).name


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (call(lambda x: None), SourceError, "returned None"),
        (call(lambda x: (x, x, x), num_outputs=2), SourceError, "a tuple of 3, but a tuple of 2"),
        (call(lambda x: [x, x], num_outputs=2), SourceError, "(?s)a single list, but a tuple of 2.*set num_outputs=1"),
        (call(lambda xs: xs[:1], batch_processing=True), SourceError, "1 sample for a batch of 2"),
        (call(lambda x: "text"), DTypeError, "a str, which is not an array"),
        (call(lambda x: x.astype(np.complex64)), DTypeError, "complex64"),
        (
            call(lambda x: x.astype(np.float32) if len(x) == 1 else x),
            DTypeError,
            "uint8 for sample 0, float32 for sample 1",
        ),
        (call(lambda x: x[0] if len(x) == 1 else x), ShapeError, "2 for sample 0, 1 for sample 1"),
        (call(lambda x: x, output_layouts="HWC"), LayoutError, "'HWC'"),
        (call(lambda x: x, output_layouts=5), ArgumentTypeError, "must be a string or a list of strings; got 5"),
        (call(lambda x: x, output_layouts=[5]), ArgumentTypeError, r"must be a string or a list of strings; got \[5\]"),
        (call(5), ArgumentTypeError, "must be callable"),
        (call(lambda x: x, num_outputs=-1), ArgumentValueError, "negative"),
    ],
)
def test_mistakes_are_named(make: Make, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        run(dalify, make)
    assert "test_python_function.py" in str(caught.value)
