"""Cases of operators: tensors."""

from __future__ import annotations

import numpy as np

from dalify import types
from tests.operators.battery import references as by
from tests.operators.battery.case import Case, Data, each, exact_case, float_case
from tests.operators.battery.changes import FILLS, ONE_MEAN, OVERFLOW, REDUCED, dtypes
from tests.operators.battery.data import FLOATS, LABELS, MASKS, NUMBERS, PHOTOS, SCALAR_LABELS, VIDEO

CASES: dict[str, Case] = {
    "cast": exact_case(
        FLOATS,
        dtype=types.INT16,
        variants={
            **dtypes(
                "UINT8",
                "INT8",
                "UINT16",
                "INT16",
                "UINT32",
                "INT32",
                "UINT64",
                "INT64",
                "FLOAT16",
                "FLOAT",
                "FLOAT64",
                "BOOL",
            ),
            **{
                f"special to {name}": {
                    "dtype": getattr(types, name),
                    "inputs": (Data([np.float32([0.5, 1.5, 2.5, -0.5, 1e10, -1e10, 255.5, 127.5, np.inf])] * 6),),
                }
                for name in ("UINT8", "INT8", "INT16", "INT32", "INT64", "FLOAT16", "BOOL")
            },
        },
        reference=by.exact(by.tensor_cast),
    ),
    "cast_like": exact_case(
        FLOATS,
        LABELS,
        reference=by.exact(lambda x, like: np.trunc(x + np.copysign(np.float32(0.5), x)).astype(like.dtype)),
    ),
    "cat": exact_case(
        PHOTOS,
        PHOTOS,
        axis_name="W",
        variants={
            "axis": {"only": True, "axis": 0},
            "axis=-1": {"only": True, "axis": -1},
            "one": {"inputs": (PHOTOS,)},
            "default": {"only": True},
            "axis and name": {"axis": 2},
            "out of range": {"only": True, "axis": 3},
            "numbers": {"only": True, "inputs": (FLOATS, FLOATS, FLOATS)},
        },
        different={"no rows": "DALI joins samples without elements only if the batch has others"},
        other_defaults={"axis": "None is 0; axis=0 and axis_name exclude each other"},
        reference=by.exact(lambda one, other, axis_name: np.concatenate([one, other], axis=1)),
    ),
    "constant": exact_case(
        fdata=[1.0, 2.0, 3.5],
        shape=[3],
        layout="C",
        variants={**FILLS, "idata": {"only": True, "idata": [1, 2, 3]}, "one": {"only": True, "idata": 7}},
        reference=by.exact(lambda fdata, shape, layout: np.array(fdata, np.float32)),
    ),
    "copy": exact_case(
        PHOTOS,
        reference=by.exact(lambda x: x),
    ),
    "element_extract": exact_case(
        VIDEO,
        element_map=[2, 0],
        variants={
            "one": {"element_map": [0]},
            "out of range": {"element_map": [4]},
            "negative": {"element_map": [-1]},
        },
        reference=by.Reference(by.BY_NUMPY, lambda x, element_map: tuple(x[index] for index in element_map)),
    ),
    "expand_dims": exact_case(
        PHOTOS,
        axes=[0],
        new_axis_names="F",
        variants={
            "no names": {"only": True, "axes": [1]},
            "several": {"axes": [0, 2], "new_axis_names": "FD"},
            "last": {"axes": [3], "new_axis_names": "D"},
            "out of range": {"axes": [5]},
            "negative": {"axes": [-1]},
        },
        reference=by.exact(lambda x, axes, new_axis_names: x[None]),
    ),
    "full": exact_case(
        NUMBERS,
        shape=[2, 3],
        variants={"default": {"only": True}, "scalars of int": {"inputs": (SCALAR_LABELS,)}},
        reference=by.exact(lambda x, shape: np.full(shape, x)),
    ),
    "full_like": exact_case(
        PHOTOS,
        NUMBERS,
        variants={"ints": {"inputs": (PHOTOS, SCALAR_LABELS)}},
        reference=by.exact(lambda x, value: np.full(x.shape, by.to_bytes(value))),
    ),
    "get_property": exact_case(
        PHOTOS,
        key="layout",
        variants={"source_info": {"key": "source_info"}},
    ),
    "normalize": float_case(
        PHOTOS,
        axis_names="HW",
        shift=2.0,
        scale=3.0,
        variants={
            "default": {"only": True},
            "axes": {"only": True, "axes": [0]},
            "axes=[0, 2]": {"only": True, "axes": [0, 2]},
            "mean": {"mean": 100.0},
            "stddev": {"stddev": 10.0},
            "both": {"mean": 100.0, "stddev": 10.0},
            "batch": {"only": True, "batch": True, "axis_names": "HW"},
            "ddof": {"ddof": 1},
            "epsilon": {"epsilon": 0.5},
            **dtypes("UINT8", "INT16", "FLOAT16"),
            "bytes": {"dtype": types.UINT8, "scale": 50.0, "shift": 128.0},
        },
        reference=by.close(by.standardised),
        waits=["copies from the device @ kernels/arrays/normalize.py:_sums_torch"],
    ),
    "one_hot": exact_case(
        LABELS,
        num_classes=4,
        on_value=2.0,
        known_late="single numbers have another result",
        variants={
            **dtypes("UINT8", "INT64"),
            "axis=0": {"axis": 0},
            "axis_name": {"axis": 0, "axis_name": "C"},
            "too few classes": {"num_classes": 2},
            "off_value": {"off_value": -1.0},
            "scalars": {"inputs": (SCALAR_LABELS,)},
        },
        reference=by.exact(
            lambda x, num_classes, on_value: np.eye(num_classes, dtype=np.float32)[x] * np.float32(on_value)
        ),
        other_defaults={"axis": "not given: -1, and [1] becomes a vector; DALI's code checks whether it was given"},
    ),
    "ones": exact_case(
        shape=[2, 3],
        layout="XY",
        variants=FILLS,
        reference=by.exact(lambda shape, layout: np.ones(shape, np.int32)),
    ),
    "ones_like": exact_case(
        PHOTOS,
        dtype=types.FLOAT,
        variants=FILLS,
        reference=by.exact(lambda x, dtype: np.ones(x.shape, dtype.numpy)),
    ),
    "per_frame": exact_case(FLOATS),
    "reductions.max": exact_case(
        PHOTOS,
        axis_names="HW",
        variants=REDUCED,
        reference=by.exact(lambda x, axis_names: x.max(axis=(0, 1))),
    ),
    "reductions.mean": float_case(
        PHOTOS,
        axis_names="HW",
        variants={**REDUCED, **dtypes("FLOAT", "INT64", "UINT64", "INT32", "UINT8")},
        different={"dtype=UINT8": "DALI scales in the type of the result, where 1 / count is 0"},
        reference=by.close(by.reduced(np.mean)),
    ),
    "reductions.mean_square": float_case(
        PHOTOS,
        axis_names="HW",
        variants=REDUCED,
        different={"of uint16": OVERFLOW},
        reference=by.close(by.reduced(lambda x, axis: np.mean(x**2, axis))),
    ),
    "reductions.min": exact_case(
        FLOATS,
        axes=[1],
        keep_dims=True,
        variants=REDUCED,
        reference=by.exact(lambda x, axes, keep_dims: x.min(axis=1, keepdims=True)),
    ),
    "reductions.rms": float_case(
        PHOTOS,
        axis_names="HW",
        variants=REDUCED,
        different={"of uint16": OVERFLOW},
        reference=by.close(by.reduced(lambda x, axis: np.sqrt(np.mean(x**2, axis)))),
    ),
    "reductions.std_dev": float_case(
        PHOTOS,
        NUMBERS,
        variants={
            "axes": {"inputs": (PHOTOS, NUMBERS), "axes": [0, 1]},
            "ddof": {"ddof": 1},
            "keep_dims": {"keep_dims": True},
            **dtypes("FLOAT"),
        },
        different={"axes": ONE_MEAN},
        reference=by.close(lambda x, mean: np.float32(np.sqrt(np.mean((x.astype(np.float64) - mean) ** 2)))),
    ),
    "reductions.sum": exact_case(
        PHOTOS,
        axis_names="HW",
        variants={**REDUCED, **dtypes("FLOAT", "INT64", "UINT64", "INT32", "UINT8")},
        reference=by.exact(by.reduced(np.sum, np.uint64)),
    ),
    "reductions.variance": float_case(
        PHOTOS,
        NUMBERS,
        ddof=1,
        variants={
            "axes": {"inputs": (PHOTOS, NUMBERS), "axes": [0, 1]},
            "ddof": {"ddof": 1},
            "keep_dims": {"keep_dims": True},
            **dtypes("FLOAT"),
        },
        different={"axes": ONE_MEAN},
        reference=by.close(
            lambda x, mean, ddof: np.float32(np.sum((x.astype(np.float64) - mean) ** 2) / (x.size - ddof))
        ),
    ),
    "reinterpret": exact_case(
        FLOATS,
        shape=[-1],
        dtype=types.INT16,
        variants={
            "as bytes": {"only": True, "dtype": types.UINT8},
            "rel_shape": {"only": True, "rel_shape": [0.5, -1.0]},
            "wider": {"only": True, "dtype": types.INT64, "inputs": (Data([np.arange(8, dtype=np.int16)] * 6),)},
            "layout": {"only": True, "layout": "AB"},
        },
        reference=by.exact(lambda x, shape, dtype: x.reshape(-1).view(dtype.numpy)),
    ),
    "reshape": exact_case(
        PHOTOS,
        src_dims=[1, 0, 2],
        layout="WHC",
        variants={
            "shape": {"only": True, "shape": [-1]},
            "rel_shape": {"only": True, "rel_shape": [0.5, 2.0, 1.0]},
            "layout": {"only": True, "layout": "XYZ"},
            "rows": {"only": True, "shape": [-1, 3]},
            "new axis": {"only": True, "src_dims": [0, -1, 1, 2], "layout": "HDWC"},
            "wrong size": {"only": True, "shape": [7, 7]},
            "two unknown": {"only": True, "shape": [-1, -1]},
        },
        reference=by.exact(lambda x, src_dims, layout: x.reshape(x.shape[1], x.shape[0], x.shape[2])),
    ),
    "sequence_rearrange": exact_case(
        VIDEO,
        new_order=[2, 0, 0, 1],
        variants={
            "out of range": {"new_order": [4]},
            "per sample": {"new_order": each([[2, 0]] * 5 + [[1, 1]], np.int32)},
            "one": {"new_order": [1]},
        },
        reference=by.exact(lambda x, new_order: x[new_order]),
    ),
    "shapes": exact_case(
        PHOTOS,
        variants=dtypes("INT32", "FLOAT", "UINT8", "INT64"),
        reference=by.exact(lambda x: np.array(x.shape, np.int64)),
    ),
    "squeeze": exact_case(
        MASKS,
        axis_names="C",
        variants={
            "axes": {"only": True, "axes": [2]},
            "not one": {"only": True, "axes": [0]},
            "negative": {"only": True, "axes": [-1]},
        },
        different={"negative": "DALI takes no notice of negative axes"},
        reference=by.exact(lambda x, axis_names: x[..., 0]),
    ),
    "stack": exact_case(
        FLOATS,
        FLOATS,
        axis=1,
        variants={
            "default": {"only": True},
            "axis=2": {"axis": 2},
            "axis=-1": {"axis": -1},
            "axis_name": {"axis": 0, "axis_name": "N", "inputs": (PHOTOS, PHOTOS)},
            "one": {"inputs": (FLOATS,)},
            "out of range": {"axis": 3},
        },
        reference=by.exact(lambda one, other, axis: np.stack([one, other], axis)),
    ),
    "transpose": exact_case(
        PHOTOS,
        perm=[2, 0, 1],
        variants={
            "reverse": {"perm": [2, 1, 0]},
            "swap": {"perm": [1, 0, 2]},
            "identity": {"perm": [0, 1, 2]},
            "transpose_layout=False": {"transpose_layout": False},
            "output_layout": {"output_layout": "XYZ"},
            "wrong": {"perm": [0, 0, 1]},
            "short": {"perm": [1, 0]},
            "default": {"only": True},
        },
        reference=by.exact(lambda x, perm: x.transpose(perm)),
    ),
    "zeros": exact_case(
        shape=[2, 3],
        dtype=types.UINT8,
        variants={**FILLS, "default": {"only": True}, "per sample": {"shape": each([[1, 2]] * 5 + [[4, 3]], np.int32)}},
        reference=by.exact(lambda shape, dtype: np.zeros(shape, dtype.numpy)),
    ),
    "zeros_like": exact_case(
        PHOTOS,
        variants=FILLS,
        reference=by.exact(lambda x: np.zeros_like(x)),
    ),
}
