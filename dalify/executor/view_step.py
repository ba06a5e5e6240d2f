"""The step of operators that give samples another shape or layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalify.data import Batch
from dalify.executor.frame import Frame
from dalify.executor.kernel_step import KernelStep
from dalify.executor.shape_table import ShapeTable
from dalify.executor.shape_trace import ShapeTrace
from dalify.graph import Node

if TYPE_CHECKING:
    from dalify.kernels.random.philox import SampleDraws

__all__ = ["ViewStep"]


class ViewStep(KernelStep):
    """Gives adjacent samples of different shapes their new shapes in one call, where the rule only copies extents."""

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
        x, *others = inputs
        if x is not None and x.ragged is not None and not self._varying and not any(others) and len(self.outputs) == 1:
            block, offsets, shapes = x.ragged
            table = ShapeTable(shapes)
            traced = self._trace.of(inputs, [table, *(None for _ in others)])
            found = None if traced is None else traced.shapes([table], count)[0]
            # Otherwise it is a part of the sample.
            if traced is not None and isinstance(found, ShapeTable) and (found.shapes.prod(1) == shapes.prod(1)).all():
                ragged = block, offsets, found.shapes
                layout = traced.specs[0].layout or ""
                return [Batch(None, None, layout, self.device, x.origins, x.dtype, ragged)]
        return super()._groupwise(frame, inputs, arguments, draws, count)
