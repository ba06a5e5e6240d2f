"""Every operator in guarded memory, with invalid data and arguments. `test_bounds.py` runs this file.

pytest does not collect it by its name: it needs a process with ``NUMBA_BOUNDSCHECK=1``, and its memory is never freed.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import resource
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba import njit

from dalify.base.errors import DalifyError
from dalify.registry import READER_PARAMETERS, Parameter, catalog
from tests.helpers.guarded_memory import guard_all_memory, guarded
from tests.operators.battery.case import SAMPLES, Case, Data, Each
from tests.operators.battery.cases import CASES
from tests.operators.battery.run_case import NAMES, run_case

_EXAMPLES = int(os.environ["DALIFY_BOUNDS_EXAMPLES"])
_MEMORY_BYTES = 4 << 30  # beyond what the process has when it begins: for arrays that kernels make for themselves
_RUN = [name for name in NAMES if name in CASES and not catalog.find(name).is_serial]

_ALL = tuple(range(SAMPLES))
_EXTENTS = st.sampled_from([0, 1, 2, 3, 5, 16, 17, 33])
_NUMBERS: dict[type, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.sampled_from([0, 1, -1, 2, 3, 7, 64, 255, 256, 65536, 2**31 - 1, -(2**31)]) | st.integers(-40, 40),
    float: st.sampled_from(
        [0.0, -0.0, 0.5, 1.0, -1.0, 1e-30, 1e9, -1e9, 3e38, -3e38, float("nan"), float("inf"), -float("inf")]
    )
    | st.floats(-3, 3, width=32)
    | st.floats(-400, 400, width=32),
}


@pytest.fixture(autouse=True, scope="module")
def _guarded():
    guard_all_memory()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _MEMORY_BYTES, resource.RLIM_INFINITY))


def _elements(dtype: np.dtype[Any], size: int, draw: st.DrawFn) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if dtype.kind == "f":
        values = random.normal(0, 10.0 ** random.integers(-3, 6), size).astype(dtype)
        extremes = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 0], np.float32).astype(dtype)
        some = random.random(size) < draw(st.sampled_from([0.0, 0.0, 0.1]))
        return np.where(some, random.choice(extremes, size), values)
    limits = np.iinfo(np.uint8 if dtype == np.bool_ else dtype)
    values = random.integers(limits.min, limits.max, size, dtype=limits.dtype, endpoint=True)
    return values.astype(dtype)


def _changed_data(data: Data, draw: st.DrawFn) -> Data:
    """Other extents, other values, or single bytes of a file."""
    first = data.samples[0]
    if first.dtype == np.uint8 and first.ndim == 1 and first.size > 64:  # a file: some bytes of it, or its beginning
        samples = []
        for sample in data.samples:
            random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
            broken = sample[: draw(st.sampled_from([sample.size, sample.size, sample.size // 2, 20, 3, 0]))].copy()
            if broken.size:
                broken[random.integers(0, broken.size, draw(st.integers(0, 5)))] = random.integers(0, 256)
            samples.append(guarded(broken))
        return Data(samples, data.layout)
    what = draw(st.sampled_from(["values", "extents", "one extent", "one element"]))
    shape = list(first.shape)
    if what == "extents":
        shape = [draw(_EXTENTS) for _ in shape]
    elif what == "one extent" and shape:
        shape[draw(st.integers(0, len(shape) - 1))] = draw(_EXTENTS)
    elif what == "one element":
        shape = [1 for _ in shape]
    odd = draw(st.sampled_from([shape, list(data.samples[-1].shape)]))
    shapes = [shape] * SAMPLES + [odd]
    return Data(
        [guarded(_elements(first.dtype, int(np.prod(form)), draw).reshape(form)) for form in shapes], data.layout
    )


def _changed_argument(parameter: Parameter, given_value: Any, draw: st.DrawFn) -> Any:
    if parameter.element is str or issubclass(parameter.element, str):
        return given_value
    numbers = _NUMBERS.get(parameter.element)
    if numbers is None:
        return given_value
    if not parameter.is_list:
        if parameter.accepts_node and draw(st.booleans()):
            dtype = {float: np.float32, bool: np.bool_}.get(parameter.element, np.int64)
            return Each([np.array(draw(numbers)).astype(dtype) for _ in range(SAMPLES + 1)])
        return draw(numbers)
    if isinstance(given_value, Each):
        size = max(1, int(np.size(given_value.values[0])))
    else:
        size = len(given_value) if isinstance(given_value, (list, tuple)) and given_value else draw(st.integers(0, 4))
    values = [draw(numbers) for _ in range(min(size, 12))] * -(-size // 12)
    return values[:size]


@njit
def _element(array: np.ndarray[Any, Any], index: int) -> float:
    return array[index]


@pytest.mark.filterwarnings("ignore")  # of newer Pythons, that a process with threads forks
def test_the_tests_detect_it() -> None:
    """Both kinds of check are at work: of indices, and of addresses."""
    array = guarded(np.arange(4.0))
    with pytest.raises(IndexError):
        _element(array, 4)
    process = os.fork()
    if process == 0:
        faulthandler.disable()
        for _ in range(2):  # one of two begins at a guard page, the other one ends at one
            array = guarded(np.arange(4.0))
            ctypes.string_at(array.ctypes.data - 1, 1)
            ctypes.string_at(array.ctypes.data + array.nbytes, 1)
        os._exit(0)
    assert os.waitpid(process, 0)[1] & 127 == signal.SIGSEGV


@pytest.mark.parametrize("name", _RUN)
@pytest.mark.filterwarnings("ignore")
def test_stays_within_its_arrays(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """An index that is out of bounds is an IndexError here, and no error of ours; an address is the process's end."""
    case, found = CASES[name], catalog.find(name)
    folder = tmp_path_factory.mktemp("files")
    arguments = dict(case.given(folder))
    parameters = [
        item
        for item in found.parameters.values()
        if item.element in _NUMBERS and item.name not in READER_PARAMETERS and item.name != "num_outputs"
    ]

    run_case(name, case, folder, _ALL if not case.inputs or case.not_sample_by_sample else (0, 1, SAMPLES))
    if not case.inputs and not parameters:
        return

    @settings(
        max_examples=_EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def fuzz(data: st.DataObject) -> None:
        draw = data.draw
        inputs = list(case.inputs)
        for number in range(len(inputs)):
            if draw(st.sampled_from([True, False, False])):
                inputs[number] = _changed_data(inputs[number], draw)
        changed = dict(arguments)
        for parameter in draw(st.lists(st.sampled_from(parameters), max_size=3)) if parameters else ():
            changed[parameter.name] = _changed_argument(parameter, arguments.get(parameter.name), draw)
        samples = draw(st.sampled_from([(0,), (0, 1, 2), (0, SAMPLES), _ALL])) if inputs else _ALL
        hostile = Case(inputs=tuple(inputs), arguments=changed)
        with suppress(DalifyError, MemoryError):
            run_case(name, hostile, folder, samples)

    fuzz()
