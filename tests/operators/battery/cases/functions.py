"""Cases of operators: functions of users, and of the batch."""

from __future__ import annotations

import numpy as np

from dalify import types
from tests.operators.battery.case import BATCH, CODE, DRAWN, OUTSIDE, Case, each, exact_case
from tests.operators.battery.data import FLOATS, PHOTOS, invert

CASES: dict[str, Case] = {
    "arithmetic": exact_case(PHOTOS, PHOTOS, function="add", not_compared_with_dali=OUTSIDE),
    "tensor_subscript": exact_case(PHOTOS, items=(("slice", 2, None, 3), ("at", 1)), not_compared_with_dali=OUTSIDE),
    "batch_permutation": exact_case(not_compared_with_dali=DRAWN, not_sample_by_sample=BATCH),
    "permute_batch": exact_case(PHOTOS, indices=each([4, 3, 1, 0, 2, 2], np.int32), not_sample_by_sample=BATCH),
    "python_function": exact_case(
        FLOATS,
        function=lambda x: x * 2,
        not_serialized=CODE,
        own_arguments={
            "deterministic": "allows fn.cache after a Python function",
            "parallel": "allows a Python function to run in worker processes",
        },
    ),
    "dl_tensor_python_function": exact_case(
        FLOATS,
        function=lambda xs: xs,
        not_serialized=CODE,
        other_defaults={"batch_processing": "True is what DALI's ops.DLTensorPythonFunction does"},
    ),
    "experimental.numba_function": exact_case(
        PHOTOS,
        run_fn=invert,
        out_types=[types.UINT8],
        in_types=[types.UINT8],
        outs_ndim=[3],
        ins_ndim=[3],
        not_serialized=CODE,
        not_compared_with_dali="its experimental plugin is optional",
    ),
}
