"""Operators that change types, shapes and order: compared with the real DALI, on both devices."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.base.errors import DalifyError
from tests.helpers.both import assert_same_as_dali, run_here
from tests.helpers.messages import own_text

RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(0, 256, (4, 6, 3), dtype=np.uint8) for _ in range(3)]
RAGGED = [RNG.integers(0, 256, (rows, 6, 2), dtype=np.uint8) for rows in (4, 2, 5)]
FLOATS = [RNG.normal(0, 100, (4, 6)).astype(np.float32) for _ in range(3)]


def test_cast(device):
    values = [np.array([0, 0.3, 0.5, -0.5, 1.5, 2.5, 300, -300, 3e9, np.nan], np.float32)]
    names = ["UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "INT64", "FLOAT64", "FLOAT16", "BOOL"]
    names = [name for name in names if device == "cpu" or name not in ("UINT16", "UINT32")]

    def graph(dali, x):
        casts = [dali.fn.cast(x[:-1], dtype=getattr(dali.types, name)) for name in names]
        return [*casts, dali.fn.cast_like(x, casts[0]), dali.fn.copy(x), dali.fn.cast(x[:6], dtype=dali.types.UINT8)]

    assert_same_as_dali(graph, values, device=device)


def test_reshape(device):
    def graph(dali, x):
        fn = dali.fn
        return [
            fn.reshape(x, shape=[-1]),
            fn.reshape(x, shape=[6, -1]),
            fn.reshape(x, shape=[6, 4, 3]),
            fn.reshape(x, shape=[6, 12], layout="AB"),
            fn.reshape(x, layout=""),
            fn.reshape(x, layout="XYZ"),
            fn.reshape(x, rel_shape=[0.5, -1]),
            fn.reshape(x, rel_shape=[0.5, 2, 1]),
            fn.reshape(x, src_dims=[1, 0, 2]),
            fn.reshape(x, src_dims=[2, -1, 0, 1], layout="CAHW"),
            fn.reshape(x, src_dims=[1, 0, 2], rel_shape=[0.5, 2, 1]),
            fn.reinterpret(x, shape=[2, -1], dtype=dali.types.INT32),
            fn.reinterpret(fn.reshape(x, shape=[4, -1, 2]), dtype=dali.types.INT16),
            fn.reinterpret(x, layout="XYZ"),
        ]

    assert_same_as_dali(graph, IMAGES, layouts="HWC", device=device)


def test_reshape_by_shapes_of_each_sample():
    def graph(dali, x):
        fn = dali.fn
        return [
            fn.reshape(x, shape=x.shape()[::-1]),
            fn.reshape(x, x.shape()[::-1]),
            fn.reshape(x, shape=[6, -1]),
            fn.reshape(x, rel_shape=[-1, 0.5]),
            fn.reshape(x, rel_shape=[-1]),
            fn.reshape(x, rel_shape=[1, 1, 1, -1]),
            fn.reshape(x, src_dims=[1, 0, 2]),
            fn.reshape(x, src_dims=[2, -1, 1, 0], rel_shape=[1, 2, 0.5, 1]),
            fn.reinterpret(x, rel_shape=[1, -1]),
        ]

    assert_same_as_dali(graph, RAGGED)


def test_axes(device):
    def graph(dali, x):
        fn = dali.fn
        wide = fn.expand_dims(x, axes=[0, 3], new_axis_names="FX")
        return [
            wide,
            fn.expand_dims(x, axes=[4, 0], new_axis_names="XF"),
            fn.expand_dims(x, axes=[0]),
            fn.squeeze(wide, axes=[0]),
            fn.squeeze(wide, axes=[0, 3]),
            fn.squeeze(wide, axis_names="FX"),
            fn.transpose(x),
            fn.transpose(x, perm=[2, 0, 1]),
            fn.transpose(x, perm=[1, 0, 2], transpose_layout=False),
            fn.transpose(x, perm=[1, 0, 2], output_layout="ABC"),
            fn.shapes(x),
            fn.shapes(x, dtype=dali.types.INT32),
        ]

    assert_same_as_dali(graph, IMAGES, layouts="HWC", device=device)
    assert_same_as_dali(lambda dali, x: [dali.fn.transpose(x, perm=[2, 0, 1])], RAGGED, layouts="HWC", device=device)


def test_joining(device):
    def graph(dali, x, y):
        fn = dali.fn
        return [
            fn.cat(x, y, x),
            fn.cat(x, y, axis_name="H"),
            fn.cat(x, x, axis=-1),
            fn.cat(x, x, axis=1),
            fn.stack(x, x),
            fn.stack(x, x, axis=3, axis_name="X"),
            fn.stack(x, x, axis=-1),
            fn.stack(x, x, axis=1, axis_name="F"),
            fn.stack(x),
        ]

    assert_same_as_dali(graph, RAGGED, RAGGED[::-1], layouts="HWC", device=device)


def test_joined_layouts():
    """The first layout counts; DALI looks at the first input only."""

    def graph():
        x = fn.external_source(source=lambda: list(RAGGED), layout="HWC")
        plain = fn.external_source(source=lambda: list(RAGGED))
        return (
            fn.cat(plain, x),
            fn.cat(plain, x, axis_name="H"),
            fn.stack(plain, x, axis_name="F"),
            fn.cat(plain, plain),
        )

    pipeline = pipeline_def(graph)(batch_size=len(RAGGED), num_threads=1, device_id=None)
    assert [output.layout() for output in pipeline.run()] == ["HWC", "HWC", "FHWC", ""]


@pytest.mark.parametrize("rows", [(4, 2, 5, 3), (4, 2, 2, 5), (4, 0, 5, 3), (0, 5, 0, 2), (4, 3000, 5, 3)])
def test_joined_samples_of_different_shapes(rows):
    images = [RNG.integers(0, 200, (count, 6, 4), dtype=np.uint8) for count in rows]

    @pipeline_def(batch_size=len(images), num_threads=1, device_id=None)
    def graph():
        x = fn.external_source(source=lambda: images, layout="HWC")
        joined = fn.cat(x, x, axis=1)
        return joined, fn.cast(joined, dtype=types.INT32) + 1, fn.transpose(fn.stack(x, x), perm=[3, 0, 1, 2])

    pipeline = graph()
    for _ in range(2):
        for image, *found in zip(images, *(list(output) for output in pipeline.run()), strict=True):
            wide = np.concatenate([image, image], 1)
            expected = wide, wide.astype(np.int32) + 1, np.stack([image, image]).transpose(3, 0, 1, 2)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(np.asarray(one), other, strict=True)


def test_joining_samples_without_elements(device):
    """They have extents all the same, as long as any sample of the input has elements."""
    one = [np.zeros(shape, np.uint8) for shape in ((0, 2), (2, 2), (1, 0))]
    other = [np.zeros(shape, np.uint8) for shape in ((0, 3), (2, 1), (1, 4))]

    def graph(dali, x, y):
        return [dali.fn.cat(x, y, axis=1), dali.fn.cat(y, x, y, axis=1)]

    assert_same_as_dali(graph, one, other, device=device)


def test_samples_without_elements_have_any_extents(device):
    one, other = ([np.zeros(shape, np.uint8)] for shape in ((3, 0), (0, 2)))

    def graph(dali, x, y):
        return [dali.fn.cat(x, y, axis=1), dali.fn.cat(y, x, axis=1)]

    found = run_here(graph, one, other, device=device)
    assert [samples[0].shape for _, samples in found] == [(3, 0), (0, 2)]


def test_stacking_scalars(device):
    def graph(dali, x):
        return [dali.fn.stack(x, x, axis_name="N"), dali.fn.stack(x, x, x)]

    assert_same_as_dali(graph, [np.float32(value) for value in range(3)], device=device)


def test_one_hot(device):
    labels = [np.array([0, 1, 5, -1], np.int32), np.array([2, 2, 2, 0], np.int32)]

    def graph(dali, x):
        fn = dali.fn
        return [
            fn.one_hot(x, num_classes=3),
            fn.one_hot(x, num_classes=3, axis=0, axis_name="C"),
            fn.one_hot(x, num_classes=4, axis=1, dtype=dali.types.UINT8, on_value=30, off_value=2),
            fn.one_hot(x[0], num_classes=3, axis_name="C"),
            fn.one_hot(fn.cast(x, dtype=dali.types.FLOAT) + 0.75, num_classes=4),
        ]

    assert_same_as_dali(graph, labels, layouts="N", device=device)


def test_constants_and_random_data():
    def graph(dali, x):
        fn, types = dali.fn, dali.types
        return [
            fn.zeros(),
            fn.ones(shape=[2, 3], dtype=types.FLOAT, layout="HW"),
            fn.zeros(shape=fn.shapes(x, dtype=types.INT32)),
            fn.full(fn.cast(x[0, 0], dtype=types.FLOAT), shape=[2, 2]),
            fn.full(x[0], shape=[3, 2, 6], layout="ABC"),
            fn.zeros_like(x),
            fn.ones_like(x, dtype=types.INT16),
            fn.full_like(x, x[0, 0]),
            fn.constant(idata=[1, 2, 3]),
            fn.constant(fdata=[1, 2, 3, 4], shape=[2, 2], layout="AB"),
            fn.constant(fdata=[1.5, 2.5, 300], dtype=types.UINT8),
            fn.constant(idata=[7], shape=[2, 2], dtype=types.INT64),
        ]

    assert_same_as_dali(graph, [sample[:, :, 0] for sample in RAGGED], layouts="HW")


def test_constants_and_random_data_on_the_gpu(device):
    def graph(dali, x):
        fn, types = dali.fn, dali.types
        placed = {"device": device}
        return [
            fn.ones(shape=[2, 3], dtype=types.FLOAT, layout="HW", **placed),
            fn.zeros(**placed),
            fn.full(x[0], shape=[3, 2, 6], layout="ABC"),
            fn.full_like(x, x[0, 0]),
            fn.zeros_like(x),
            fn.ones_like(x, dtype=types.INT16),
            fn.constant(fdata=[1.5, 2.5, 300], dtype=types.UINT8, **placed),
            fn.constant(idata=[7], shape=[2, 2], dtype=types.INT64, **placed),
        ]

    here = run_here(graph, [sample[:, :, 0] for sample in RAGGED], layouts="HW", device=device)
    ones, zero, full, like, zeros, made_ones, values, sevens = (samples for _, samples in here)
    assert ones[0].tolist() == [[1, 1, 1], [1, 1, 1]]
    assert zero[2].tolist() == 0
    np.testing.assert_array_equal(full[1], np.broadcast_to(RAGGED[1][0, :, 0], (3, 2, 6)))
    np.testing.assert_array_equal(like[2], np.full((5, 6), RAGGED[2][0, 0, 0]))
    assert zeros[1].sum() == 0
    assert made_ones[1].dtype == np.int16
    assert made_ones[1].sum() == 12
    assert values[0].tolist() == [2, 3, 255]
    assert sevens[0].dtype == np.int64


def test_sequences(device):
    def graph(dali, x):
        fn = dali.fn
        return [
            *fn.element_extract(x, element_map=[1, 0, 1]),
            fn.sequence_rearrange(x, new_order=[1, 1, 0]),
        ]

    assert_same_as_dali(graph, RAGGED, layouts="FXY", device=device)


def test_orders_per_sample():
    def graph(dali, x, order):
        return [dali.fn.sequence_rearrange(x, new_order=order)]

    orders = [np.array(order, np.int32) for order in ([1, 0], [1, 1, 1], [4, 2, 0])]
    assert_same_as_dali(graph, RAGGED, orders, layouts=["FXY", ""])


def test_properties(device):
    def graph(dali, x):
        return [dali.fn.get_property(x, key="layout"), dali.fn.get_property(x, key="source_info")]

    assert_same_as_dali(graph, RAGGED, layouts="HWC", device=device)


MISTAKES = [
    (lambda fn, x: fn.reshape(x), "specify a new shape or layout"),
    (lambda fn, x: fn.reshape(x, shape=[-1, -1]), "has 2 negative extents"),
    (lambda fn, x: fn.reshape(x, shape=[5]), r"72 elements cannot become \(5,\)"),
    (lambda fn, x: fn.reshape(x, shape=[7, -1]), "cannot become"),
    (lambda fn, x: fn.reshape(x, layout="AB"), "the layout 'AB' does not match 3-D samples"),
    (lambda fn, x: fn.reshape(x, shape=[72], rel_shape=[1.0]), "specify only one of"),
    (lambda fn, x: fn.reshape(x, rel_shape=[1, 1, 1, 1]), "rel_shape has 4 entries"),
    (lambda fn, x: fn.reshape(x, src_dims=[3]), "src_dims has the entry 3"),
    (lambda fn, x: fn.squeeze(x), "specify the axes to remove"),
    (lambda fn, x: fn.squeeze(x, axes=[0]), "axis 0 .* extent is not 1"),
    (lambda fn, x: fn.expand_dims(x, axes=[0, 0]), "must not contain a position twice"),
    (lambda fn, x: fn.expand_dims(x, axes=[5]), "axes contains 5"),
    (lambda fn, x: fn.expand_dims(x, axes=[0], new_axis_names="AB"), "must have 1 letter"),
    (lambda fn, x: fn.transpose(x, perm=[0, 2]), "must be a permutation of the axes 0 to 2"),
    (lambda fn, x: fn.transpose(x, output_layout="A"), "does not match"),
    (lambda fn, x: fn.cat(x, fn.cast(x, dtype=5)), "input 0 is uint8, input 1 is int16"),
    (lambda fn, x: fn.cat(x, x, axis=3), "axis 3 is out of range"),
    (lambda fn, x: fn.cat(x, x[:2], axis=1), "axis 0 differs"),
    (lambda fn, x: fn.cat(x, x[0]), r"the same number of dimensions: input 0 has \d, input 1 has \d\."),
    (lambda fn, x: fn.stack(x, x, axis_name="AB"), "one letter"),
    (lambda fn, x: fn.stack(fn.reshape(x, layout=""), axis_name="A"), "requires inputs with a layout"),
    (lambda fn, x: fn.one_hot(x, axis=5), "axis 5 is out of range"),
    (lambda fn, x: fn.one_hot(x, num_classes=-1), "must not be negative"),
    (lambda fn, x: fn.constant(), "either fdata or idata"),
    (lambda fn, x: fn.constant(idata=[1, 2], shape=[3]), "2 values do not match"),
    (lambda fn, x: fn.full(x, shape=[3]), "does not broadcast"),
    (lambda fn, x: fn.full_like(x[0], x), "does not broadcast"),
    (lambda fn, x: fn.element_extract(fn.reshape(x, layout="FHW"), element_map=[4]), "element 4 does not exist"),
    (lambda fn, x: fn.element_extract(x, element_map=[]), "element_map must not be empty"),
    (
        lambda fn, x: fn.transpose(x, perm={2, 0, 1}),
        "perm must be an integer or a list of these; got {0, 1, 2} of type set",
    ),
    (lambda fn, x: fn.sequence_rearrange(fn.reshape(x, layout="FHW"), new_order=[4]), "new_order contains 4"),
    (lambda fn, x: fn.get_property(x, key="name"), "key must be one of source_info, layout"),
    (lambda fn, x: fn.reinterpret(x, dtype=7), "not a multiple of 8"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES)
def test_mistakes_are_named(mistake, message):
    with pytest.raises(DalifyError) as caught:
        run_here(lambda dali, x: [mistake(dali.fn, x)], IMAGES, layouts="HWC")
    assert re.search(message, own_text(caught.value))
    assert isinstance(caught.value, (RuntimeError, ValueError, IndexError))
