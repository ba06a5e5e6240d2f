"""Programs for DALI give the same in dalify, and their mistakes can be caught as they are for DALI."""

from __future__ import annotations

import builtins
import importlib
import json
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dalify
from tests.compatibility.edge_programs import EDGES
from tests.compatibility.kinds import ALL_MISTAKES
from tests.compatibility.mistakes import MISTAKES
from tests.compatibility.programs import PROGRAMS
from tests.compatibility.published_programs import PUBLISHED
from tests.compatibility.published_scripts import SCRIPTS
from tests.compatibility.usual_programs import USUAL

# Interpolated integers: a value at half way between two may be rounded to the other one.
_ROUNDED = 0.02
_AUGMENTATIONS = ("auto_aug.auto_augment", "auto_aug.rand_augment", "auto_aug.trivial_augment")


@pytest.fixture(scope="module")
def dali(oracle) -> ModuleType:
    for name in ("nvidia.dali", "dalify"):
        importlib.import_module(f"{name}.experimental.dynamic")
    return oracle


def plain(value: Any) -> Any:
    """Return what two libraries can be compared by."""
    if hasattr(value, "is_dense_tensor"):
        samples = [np.array(value[index]) for index in range(len(value))]
        return (str(value.dtype), value.layout(), samples)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def assert_same(ours: Any, theirs: Any, rounded: float = 0.0) -> None:
    """Compare results.

    Args:
        ours: of dalify.
        theirs: of DALI.
        rounded: fraction of the integers of an array that may differ by one.
    """
    if isinstance(theirs, np.ndarray):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        if rounded and theirs.dtype.kind in "iu":
            apart = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
            assert apart.max(initial=0) <= 1
            assert np.count_nonzero(apart) <= rounded * apart.size
            return
        np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=1e-5, atol=1e-4)
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other, rounded)
    else:
        assert ours == theirs


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize("name", [*PROGRAMS, *USUAL, *EDGES])
def test_programs(name, dali):
    program = {**PROGRAMS, **USUAL, **EDGES}[name]
    assert_same(plain(program(dalify)), plain(program(dali)))


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize("name", [*PUBLISHED, *SCRIPTS])
def test_published_programs(name, dali):
    for module in ("plugin.pytorch", "plugin.base_iterator", *_AUGMENTATIONS):
        importlib.import_module(f"{dali.__name__}.{module}")
        importlib.import_module(f"dalify.{module}")
    program = PUBLISHED.get(name) or SCRIPTS[name]
    assert_same(plain(program(dalify)), plain(program(dali)), _ROUNDED)


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name, dali):
    """What DALI raises is what dalify's error can be caught as."""
    with pytest.raises(Exception) as theirs:  # noqa: PT011 -- the class is what is compared
        MISTAKES[name](dali)
    kind = next(item for item in type(theirs.value).__mro__ if item.__module__ == "builtins")
    with pytest.raises(kind):
        MISTAKES[name](dalify)


@pytest.fixture(scope="module")
def kinds(oracle) -> dict[str, str | None]:
    """What DALI raises, by the names of `ALL_MISTAKES`."""
    command = [sys.executable, "-m", "tests.compatibility.kinds"]
    folder = Path(__file__).parents[2]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, timeout=600)
    return json.loads(found.stdout.splitlines()[-1])


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize("name", ALL_MISTAKES)
def test_mistakes_with_pipelines_and_iterators(name, kinds):
    kind = getattr(builtins, kinds[name] or "Exception")
    importlib.import_module("dalify.plugin.pytorch")
    with pytest.raises(kind):
        ALL_MISTAKES[name](dalify)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda fn, types, x: fn.crop(x, crop=[2, 2], output_dtype=types.FLOAT), "now called 'dtype'"),
        (lambda fn, types, x: fn.resize(x, size=[2, 2], image_type=types.RGB), "no longer has an effect"),
        (lambda fn, types, x: fn.shapes(x, type=types.INT32), "now called 'dtype'"),
        (lambda fn, types, x: fn.flip(x, seed=3), "is not random"),
        (lambda fn, types, x: fn.optical_flow(x, output_format=4), "now called 'output_grid'"),
    ],
)
def test_old_arguments_warn(make, text):
    with dalify.Pipeline(2, 1):
        x = dalify.fn.external_source(source=lambda: np.zeros((2, 2, 4, 4, 3), np.uint8), layout="FHWC")
        with pytest.warns(DeprecationWarning, match=text) as caught:
            make(dalify.fn, dalify.types, x)
    assert caught[0].filename == __file__


def test_old_operators_keep_their_defaults():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old, modern = dalify.fn.fast_resize_crop_mirror, dalify.fn.resize_crop_mirror
        made = dalify.ops.FastResizeCropMirror(size=[4, 4])
    image = np.random.default_rng(0).integers(0, 255, (1, 40, 40, 3), np.uint8)

    def pipeline():
        x = dalify.fn.external_source(source=lambda: image, layout="HWC")
        options = {"size": [4, 4], "crop": [4, 4]}
        return old(x, **options), modern(x, **options, antialias=False), modern(x, **options), made(x, crop=[4, 4])

    pipe = dalify.pipeline_def(pipeline)(batch_size=1, num_threads=1, device_id=None)
    first, same, other, third = (output.as_array() for output in pipe.run())
    np.testing.assert_array_equal(first, same)
    np.testing.assert_array_equal(third, same)
    assert (first != other).any()


# -- debug mode: the real DALI needs a GPU for it ----------------------------------------------------------------------


def test_lists_of_samples_in_debug_mode():
    """A list of arrays is a batch, for inputs and for arguments."""
    samples = [np.zeros((2, 3, 1), np.uint8), np.ones((4, 3, 1), np.uint8)]

    @dalify.pipeline_def(batch_size=2, num_threads=1, device_id=None, debug=True)
    def pipeline():
        photos = dalify.fn.flip(samples)
        windows = dalify.fn.crop(photos, crop=[np.float32([1, 1]), np.float32([2, 2])])
        return windows, dalify.fn.cast([np.int32(3), np.int32(5)], dtype=dalify.types.FLOAT)

    windows, numbers = pipeline().run()
    assert [tuple(shape) for shape in windows.shape()] == [(1, 1, 1), (2, 2, 1)]
    assert [int(np.array(windows[index]).max()) for index in range(2)] == [0, 1]
    assert numbers.as_array().tolist() == [3.0, 5.0]


def test_lists_of_samples_that_do_not_fit():
    @dalify.pipeline_def(batch_size=2, num_threads=1, device_id=None, debug=True)
    def pipeline():
        return dalify.fn.flip([np.zeros((2, 3, 1), np.uint8)] * 3)

    with pytest.raises(RuntimeError, match="the fed batch has 3 samples"):
        pipeline().run()
    with dalify.Pipeline(2, 1), pytest.raises(TypeError, match=r"numpy\.stack"):
        dalify.fn.flip([np.zeros((2, 3, 1), np.uint8)] * 2)


def test_pickled_options():
    policies = {"stream_policy": dalify.StreamPolicy.SINGLE, "concurrency": dalify.OperatorConcurrency.FULL}
    pipe = dalify.pipeline_def(lambda: dalify.fn.random.uniform())(batch_size=2, num_threads=1, **policies)
    other = dalify.Pipeline.deserialize(pipe.serialize())
    assert (other.stream_policy, other.concurrency) == tuple(policies.values())
    with pytest.raises(TypeError, match="member of StreamPolicy"):
        dalify.Pipeline(2, 1, stream_policy=3)


def test_statistics_of_all_values():
    """Measured if it was requested, also for values that never leave a chunk."""

    def pipeline():
        x = dalify.fn.external_source(source=lambda: [np.zeros(size, np.uint8) for size in (2, 10)], name="source")
        return dalify.fn.cast(dalify.fn.cast(x, dtype=dalify.types.INT32, name="inner"), dtype=dalify.types.UINT8)

    for measures in (False, True):
        pipe = dalify.pipeline_def(pipeline)(batch_size=2, num_threads=1, enable_memory_stats=measures)
        pipe.run()
        found = pipe.executor_statistics()
        assert bool(found) is measures
    assert found["CPU_inner"] == {
        "real_memory_size": [48],
        "max_real_memory_size": [40],
        "reserved_memory_size": [48],
        "max_reserved_memory_size": [40],
    }
    assert found["CPU_source"]["real_memory_size"] == [12]
