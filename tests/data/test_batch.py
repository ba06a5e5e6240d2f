"""Batches, specs and element types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dalify.base.errors import DTypeError, LayoutError
from dalify.data import Batch, DALIDataType, Spec
from dalify.data.batch import array_dtype, stack_samples
from dalify.data.dtypes import from_numpy, to_numpy

DENSE = np.arange(24, dtype=np.int16).reshape(4, 3, 2)
RAGGED = [np.full((index, 2), index, np.uint8) for index in range(1, 5)]
ARRAY_TYPES = [dtype for dtype in DALIDataType if DALIDataType.UINT8 <= dtype <= DALIDataType.BOOL]


def test_a_dense_batch() -> None:
    batch = Batch(DENSE, None, "HW", origins=list("abcd"))
    assert (len(batch), batch.ndim, batch.dtype) == (4, 2, DALIDataType.INT16)
    assert batch.shapes() == [(3, 2)] * 4
    assert all(np.shares_memory(sample, DENSE) for sample in batch.samples)
    part = batch.slice(1, 3)
    assert part.dense is not None
    assert np.shares_memory(part.dense, DENSE)
    assert (part.origins, part.layout) == (["b", "c"], "HW")
    taken = batch.take(np.array([3, 0, 3]))
    assert taken.dense is not None
    assert (taken.dense == DENSE[[3, 0, 3]]).all()
    assert taken.origins == ["d", "a", "d"]
    assert batch.with_layout("AB").layout == "AB"
    assert batch.spec_of(2) == Spec(DALIDataType.INT16, None, "HW", (3, 2))
    assert repr(batch) == "Batch(cpu int16 'HW' dense (4, 3, 2))"


def test_a_listed_batch() -> None:
    batch = Batch(None, RAGGED, "AB")
    assert (len(batch), batch.ndim, batch.dtype) == (4, 2, DALIDataType.UINT8)
    assert batch.shapes() == [(1, 2), (2, 2), (3, 2), (4, 2)]
    assert batch.slice(1, 3).samples == RAGGED[1:3]
    assert [sample.shape for sample in batch.take(np.array([3, 0])).samples] == [(4, 2), (1, 2)]
    assert batch.take(np.array([2])).samples[0] is RAGGED[2]
    assert batch.spec_of(2).shape == (3, 2)
    assert repr(batch) == "Batch(cpu uint8 'AB' 4 samples)"


def test_numbers_are_arrays_without_dimensions() -> None:
    batch = Batch(np.arange(3))
    assert batch.ndim == 0
    assert [(type(sample), sample.shape) for sample in batch.samples] == [(np.ndarray, ())] * 3


def test_an_empty_batch() -> None:
    batch = Batch(None, [])
    assert (len(batch), batch.ndim, batch.dtype) == (0, None, DALIDataType.NO_TYPE)
    assert Batch(None, [], dtype=DALIDataType.FLOAT).slice(0, 0).dtype == DALIDataType.FLOAT


def test_stacking() -> None:
    out = np.empty((4, 3, 2), np.int16)
    assert stack_samples(list(DENSE), out) is out
    assert (out == DENSE).all()
    assert (stack_samples(list(DENSE)) == DENSE).all()
    tensors = [torch.full((2,), index) for index in range(3)]
    assert stack_samples(tensors).tolist() == [[0, 0], [1, 1], [2, 2]]


def test_on_the_device() -> None:
    batch = Batch(torch.arange(8).reshape(4, 2), None, "X", "gpu")
    assert batch.dtype == DALIDataType.INT64
    assert batch.take(np.array([1, 1])).dense.tolist() == [[2, 3], [2, 3]]
    assert [sample.tolist() for sample in Batch(torch.arange(2), None, "", "gpu").samples] == [0, 1]


@pytest.mark.parametrize("dtype", ARRAY_TYPES)
def test_element_types_are_converted_in_both_directions(dtype: DALIDataType) -> None:
    assert from_numpy(dtype.numpy) is dtype
    assert from_numpy(dtype.numpy.type) is dtype
    assert from_numpy(dtype.numpy.name) is dtype
    assert from_numpy(dtype.numpy.newbyteorder(">")) is dtype
    assert array_dtype(np.zeros(1, dtype.numpy)) is dtype
    assert array_dtype(torch.zeros(1, dtype=getattr(torch, dtype.numpy.name))) is dtype


@pytest.mark.parametrize("dtype", ARRAY_TYPES)
def test_element_types_are_numbered_and_named_as_in_dali(dtype: DALIDataType, oracle: Any) -> None:
    theirs = getattr(oracle.types, dtype.name)
    assert int(theirs) == int(dtype)
    assert str(theirs) == str(dtype)
    assert oracle.types.to_numpy_type(theirs) == dtype.numpy


def test_properties_of_element_types() -> None:
    for dtype in ARRAY_TYPES:
        kind = dtype.numpy.kind
        assert dtype.is_float == (kind == "f")
        assert dtype.is_integer == (kind in "iu")
        assert dtype.is_signed == (kind in "if")


def test_types_that_arrays_do_not_have() -> None:
    with pytest.raises(DTypeError, match="is not an element type of arrays"):
        to_numpy(DALIDataType.STRING)
    for unusable in (np.complex64, object, "U3", "M8[s]", np.longdouble):
        with pytest.raises(DTypeError, match=r"are not supported\.\n  Convert to one of: uint8"):
            from_numpy(unusable)


def test_specs() -> None:
    spec = Spec(DALIDataType.UINT8, None, "HWC", (4, 5, 3))
    assert (spec.ndim, spec.axis("W"), spec.extent("C"), spec.is_known) == (3, 1, 3, True)
    assert spec.with_extents({"H": 8, "W": 9}).shape == (8, 9, 3)
    assert spec.replace(ndim=2).shape is None
    assert spec.replace(dtype=DALIDataType.FLOAT).shape == (4, 5, 3)
    assert spec == Spec(DALIDataType.UINT8, 3, "HWC", (4, 5, 3))
    assert len({spec, spec.replace(), spec.replace(device="gpu")}) == 2
    assert repr(spec) == "cpu uint8 HWC (4, 5, 3)"
    assert repr(Spec()) == "cpu ? ?-D"
    assert repr(Spec(None, 2, "")) == "cpu ? 2-D"
    assert not Spec(DALIDataType.UINT8, 3).is_known
    assert Spec(DALIDataType.UINT8, 3, "HWC").with_extents({"H": 8}).shape is None
    with pytest.raises(LayoutError, match="the data must have an axis D; the layout is 'HWC'"):
        spec.axis("D")


@pytest.mark.parametrize("form", ["dense", "ragged", "list"])
def test_a_function_of_every_array(form: str) -> None:
    if form == "dense":
        batch = Batch(DENSE, None, "HW", origins=list("abcd"))
    elif form == "list":
        batch = Batch(None, RAGGED, "AB")
    else:
        block = np.arange(64, dtype=np.uint8)
        shapes = np.array([[2, 3], [1, 2]])
        batch = Batch(None, None, "AB", dtype=DALIDataType.UINT8, ragged=(block, np.array([0, 32]), shapes))
    doubled = batch.map(lambda array: array * 2)
    assert [sample.tolist() for sample in doubled.samples] == [(sample * 2).tolist() for sample in batch.samples]
    assert (doubled.layout, doubled.dtype, doubled.device) == (batch.layout, batch.dtype, "cpu")
    assert doubled.origins == batch.origins
    assert (doubled.dense is None) == (form != "dense")
    wider = batch.map(lambda array: array.astype(np.float64), dtype=DALIDataType.FLOAT64)
    assert (wider.dtype, wider.samples[0].dtype) == (DALIDataType.FLOAT64, np.float64)
    assert len(batch.arrays) == (1 if form == "dense" else len(batch))
    if form == "dense":
        assert batch.stacked() is DENSE


def test_an_empty_batch_keeps_its_element_type() -> None:
    empty = Batch(None, [], "AB", dtype=DALIDataType.INT16)
    assert empty.map(np.copy).dtype == DALIDataType.INT16


def test_samples_as_one_array() -> None:
    assert (Batch(None, [DENSE[0], DENSE[2]]).stacked() == DENSE[[0, 2]]).all()


@pytest.mark.parametrize("shapes", [[(2, 3)], [(2, 3), (2, 3)], [(2, 3), (3, 2)], [(0,), (1,), (0,)], [(), ()]])
def test_whether_shapes_are_equal_in_every_form(shapes: list[tuple[int, ...]]) -> None:
    samples = [np.zeros(shape, np.uint8) for shape in shapes]
    is_uniform = len(set(shapes)) == 1
    assert Batch(samples=samples).is_uniform == is_uniform
    places = np.array(shapes, np.int64).reshape(len(shapes), -1)
    offsets = np.zeros(len(shapes), np.int64)
    ragged = Batch(dtype=DALIDataType.UINT8, ragged=(np.zeros(6, np.uint8), offsets, places))
    assert ragged.is_uniform == is_uniform
    assert not is_uniform or Batch(np.stack(samples)).is_uniform
