"""Call a Numba-compiled function once per batch: ``numba_function`` with ``batch_processing=True``.

A separate operator, because an operator processes either chunks of samples or whole batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import typed

from dalify.data import Batch
from dalify.operators.experimental.numba_function import CompiledFunction, count_outputs
from dalify.registry import Spec, operator


@operator(outputs=count_outputs, user_code=True)
def _numba_batch_function(*xs: Spec, function: CompiledFunction) -> tuple[Spec, ...]:
    """Call ``run_fn(outs0, ..., ins0, ...)`` with lists of the arrays of all samples; see ``numba_function``."""
    return function.specs(xs)


@_numba_batch_function.cpu_batch
def _(*xs: Batch, function: CompiledFunction) -> Any:
    outs = function.new_outputs([x.shapes() for x in xs])
    ins = [[np.require(sample, requirements=["C", "W"]) for sample in x.samples] for x in xs]
    as_list: Any = typed.List  # Numba assigns the class dynamically, which type checkers do not see
    function.compiled()(*(as_list(samples) for samples in [*outs, *ins]))
    return tuple(Batch(None, samples, "") for samples in outs)
