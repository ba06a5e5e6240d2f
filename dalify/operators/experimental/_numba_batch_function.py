"""Call a Numba-compiled function once per batch: ``numba_function`` with ``batch_processing=True``.

A separate operator, because an operator processes either chunks of samples or whole batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import typed

from dalify.data import Batch, DALIDataType
from dalify.operators.experimental.numba_function import compiled, declared_specs, output_shapes
from dalify.registry import Spec, operator


def _count(arguments: Mapping[str, Any]) -> int:
    return len(arguments["out_types"])


@operator(outputs=_count, user_code=True)
def _numba_batch_function(
    *xs: Spec,
    run_fn: object,
    out_types: list[DALIDataType],
    in_types: list[DALIDataType],
    outs_ndim: list[int],
    ins_ndim: list[int],
    setup_fn: object = None,
) -> tuple[Spec, ...]:
    """Call ``run_fn(outs0, ..., ins0, ...)`` with lists of the arrays of all samples; see ``numba_function``."""
    return declared_specs(xs, run_fn, out_types, in_types, outs_ndim, ins_ndim, setup_fn)


@_numba_batch_function.cpu_batch
def _(*xs: Batch, run_fn: Any, out_types: tuple[DALIDataType, ...], outs_ndim: tuple[int, ...], setup_fn: Any) -> Any:
    shapes = output_shapes(setup_fn, outs_ndim, [x.shapes() for x in xs])
    outs = [
        [np.empty(shape, dtype.numpy) for shape in of_output]
        for dtype, of_output in zip(out_types, shapes, strict=True)
    ]
    ins = [[np.require(sample, requirements=["C", "W"]) for sample in x.samples] for x in xs]
    as_list: Any = typed.List  # Numba assigns the class dynamically, which type checkers do not see
    compiled(run_fn)(*(as_list(samples) for samples in [*outs, *ins]))
    return tuple(Batch(None, samples, "") for samples in outs)
