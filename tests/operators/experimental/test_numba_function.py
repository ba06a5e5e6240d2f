"""Functions compiled by numba as operators, against the real DALI's."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import types
from dalify.base.errors import ArgumentValueError, DTypeError, ShapeError, UnknownArgumentError
from dalify.plugin.numba import NumbaFunction
from dalify.plugin.numba.fn.experimental import numba_function

SAMPLES = [np.arange(6, dtype=np.uint8).reshape(2, 3), np.arange(4, dtype=np.uint8).reshape(1, 4)]


def doubled(out: Any, x: Any) -> None:
    out[:] = x * 2


def transposed(out: Any, x: Any) -> None:
    out[:] = x.T


def transposed_shapes(outs: Any, ins: Any) -> None:
    for sample in range(len(outs[0])):
        outs[0][sample][0] = ins[0][sample][1]
        outs[0][sample][1] = ins[0][sample][0]


def flat(out: Any, total: Any, x: Any, y: Any) -> None:
    out[:] = x.flatten()
    total[0] = y.sum()


def flat_shapes(outs: Any, ins: Any) -> None:
    for sample in range(len(outs[0])):
        outs[0][sample][0] = ins[0][sample][0] * ins[0][sample][1]
        outs[1][sample][0] = 1


def batch_plus_one(outs: Any, xs: Any) -> None:
    for out, x in zip(outs, xs):  # noqa: B905 -- numba's zip has no strict
        out[:] = x + 1


BYTES = {"out_types": [0], "in_types": [0], "outs_ndim": [2], "ins_ndim": [2]}
CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "doubled": (1, {"run_fn": doubled, **BYTES}),
    "transposed": (1, {"run_fn": transposed, "setup_fn": transposed_shapes, **BYTES}),
    "batch": (1, {"run_fn": batch_plus_one, "batch_processing": True, **BYTES}),
    "two": (
        2,
        {
            "run_fn": flat,
            "setup_fn": flat_shapes,
            "out_types": [0, int(types.INT32)],
            "in_types": [0, 0],
            "outs_ndim": [1, 1],
            "ins_ndim": [2, 2],
        },
    ),
}


def run(dali: ModuleType, function: Any, inputs: int, arguments: dict[str, Any], dtype_of: Any) -> list[Any]:
    given = {
        name: [dtype_of(kind) for kind in value] if name.endswith("_types") else value
        for name, value in arguments.items()
    }

    @dali.pipeline_def(batch_size=2, num_threads=2, device_id=None)
    def pipe() -> Any:
        x = dali.fn.external_source(lambda: SAMPLES)
        result = function(*[x] * inputs, **given)
        return tuple(result) if isinstance(result, (list, tuple)) else result

    built = pipe()
    built.build()
    return [(int(out.dtype), [np.array(out.at(index)).tolist() for index in range(2)]) for out in built.run()]


@pytest.mark.slow  # the real one compiles for several seconds
@pytest.mark.parametrize("case", ["batch", "two"])  # without and with `setup_fn`
def test_results_equal_dali(oracle: ModuleType, case: str) -> None:
    rival = pytest.importorskip("nvidia.dali.plugin.numba.fn.experimental")
    inputs, arguments = CASES[case]
    ours = run(dalify, numba_function, inputs, arguments, types.DALIDataType)
    assert ours == run(oracle, rival.numba_function, inputs, arguments, oracle.types.DALIDataType)


EXPECTED: dict[str, list[Any]] = {
    "doubled": [(types.UINT8, [(sample * 2).tolist() for sample in SAMPLES])],
    "transposed": [(types.UINT8, [sample.T.tolist() for sample in SAMPLES])],
    "batch": [(types.UINT8, [(sample + 1).tolist() for sample in SAMPLES])],
    "two": [
        (types.UINT8, [sample.ravel().tolist() for sample in SAMPLES]),
        (types.INT32, [[int(sample.sum())] for sample in SAMPLES]),
    ],
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow) if case == "batch" else case for case in CASES]
)
def test_results(case: str) -> None:
    assert run(dalify, numba_function, *CASES[case], types.DALIDataType) == EXPECTED[case]


def test_it_is_found_among_the_functions() -> None:
    function = dalify.fn.experimental.numba_function
    assert run(dalify, function, *CASES["doubled"], types.DALIDataType) == EXPECTED["doubled"]


@pytest.mark.parametrize("case", ["doubled", "transposed", "two"])
def test_the_class_gives_the_same(case: str) -> None:
    def function(*inputs: Any, **given: Any) -> Any:
        made = NumbaFunction(**given, preserve=True)
        assert (made.device, made.preserve, made.num_outputs) == ("cpu", True, len(given["out_types"]))
        assert (made.schema.Name(), made.spec.name) == ("experimental__NumbaFunction", "NumbaFunction")
        with pytest.raises(ArgumentValueError, match="preserve was specified already"):
            made(*inputs, preserve=False)
        return made(*inputs)

    assert run(dalify, function, *CASES[case], types.DALIDataType) == EXPECTED[case]
    with pytest.raises(UnknownArgumentError, match=r"(?s)'preserves'.*'preserve'.*test_numba_function\.py:\d+"):
        NumbaFunction(**CASES[case][1], preserves=True)


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"in_types": [types.FLOAT]}, DTypeError, "in_types specifies"),
        ({"ins_ndim": [3]}, ShapeError, "ins_ndim specifies 3"),
        ({"outs_ndim": [2, 2]}, ArgumentValueError, "out_types and outs_ndim must have equal lengths; got 1 and 2"),
        ({"out_types": [0, 0], "outs_ndim": [2, 2]}, ArgumentValueError, "setup_fn"),
        ({"setup_fn": lambda outs, ins: outs[0][0].fill(-1)}, ShapeError, "shape"),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        run(dalify, numba_function, 1, {"run_fn": doubled, **BYTES, **changes}, types.DALIDataType)
