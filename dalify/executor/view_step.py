"""The step of operators that give samples another shape or layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalify.base.narrow import is_array
from dalify.data import Batch, Spec
from dalify.executor.frame import Frame
from dalify.executor.grouping import NOTHING_WANTED
from dalify.executor.kernel_step import KernelStep
from dalify.executor.shape_table import ShapeTable
from dalify.executor.shape_trace import ShapeTrace
from dalify.graph import Node

if TYPE_CHECKING:
    from dalify.kernels.random.philox import SampleDraws

__all__ = ["ViewStep"]


class ViewStep(KernelStep):
    """Gives adjacent samples of different shapes their new shapes in one call, without the rule for each of them."""

    def __init__(self, node: Node, *others: Any) -> None:
        super().__init__(node, *others)
        self._trace = ShapeTrace(lambda specs: self._operator.apply_rule(specs, self._rule_arguments))

    def _groupwise(
        self,
        frame: Frame,
        inputs: list[Batch | None],
        arguments: dict[str, Any],
        draws: SampleDraws | None,
        count: int,
    ) -> list[Batch]:
        x = inputs[0]
        if x is not None and x.ragged is not None and len(self.outputs) == 1:
            found = self._shapes(inputs, x, arguments, draws, count)
            if found is not None:
                shapes, spec = found
                block, offsets, _ = x.ragged
                ragged = block, offsets, shapes
                return [Batch(None, None, spec.layout or "", self.device, x.origins, spec.dtype, ragged)]
        return super()._groupwise(frame, inputs, arguments, draws, count)

    def _shapes(
        self,
        inputs: list[Batch | None],
        x: Batch,
        arguments: dict[str, Any],
        draws: SampleDraws | None,
        count: int,
    ) -> tuple[NDArray[np.int64], Spec] | None:
        """Return the new shapes, which differ, and the spec of the result; None if the kernel has to be called."""
        assert x.ragged is not None, "dalify bug: samples that are not in one block"
        old = x.ragged[2]
        shapes = self._prepare(inputs, arguments, draws, count).get("out_shapes")
        if is_array(shapes):
            if (shapes == shapes[0]).all():
                return None
            varying = {name: arguments[name] for name in self._varying}
            return shapes, self._run_specs(inputs, varying, NOTHING_WANTED, 0)[1][0]
        if self._varying or any(inputs[1:]):
            return None
        table = ShapeTable(old)
        traced = self._trace.of(inputs, [table, *(None for _ in inputs[1:])])
        found = None if traced is None else traced.shapes([table], count)[0]
        # Otherwise it is a part of the sample.
        if traced is not None and isinstance(found, ShapeTable) and (found.shapes.prod(1) == old.prod(1)).all():
            return found.shapes, traced.specs[0]
        return None
