"""Computes several random operators that draw one number for each sample in one call."""

from __future__ import annotations

from collections.abc import Sequence

from dalify.data import Batch, DALIDataType
from dalify.executor.frame import Frame
from dalify.executor.samples_step import SamplesStep
from dalify.executor.steps import Step, run_steps
from dalify.kernels.random.scalar_draws import ScalarDraw, ScalarDraws


class ScalarDrawsStep(Step):
    """Draws the numbers of several steps in one call, which takes less time than a call for each.

    Args:
        steps: the steps.
        draws: the draw of each step.
    """

    def __init__(self, steps: Sequence[SamplesStep], draws: Sequence[ScalarDraw]) -> None:
        super().__init__(steps[0].node, (), tuple(step.outputs[0] for step in steps), steps)
        self.is_awaited = True  # none of the steps runs user code
        self._dtypes = [DALIDataType.INT32 if draw.is_flip else DALIDataType.FLOAT for draw in draws]
        self._draws = ScalarDraws(draws, [step.random_stream for step in steps])

    def run(self, frame: Frame) -> None:
        """Draw the numbers of all steps."""
        # In lazy mode and with Ray Data the numbers have other streams or positions; an observer measures each step.
        if frame.drawing or frame.rows is not None or self.steps[0].observer is not None:
            run_steps(self.steps, frame)
            return
        rows = self._draws.numbers(frame.positions(None), frame.step)
        values = frame.values
        for slot, row, dtype in zip(self.outputs, rows, self._dtypes, strict=True):
            values[slot] = Batch(row, dtype=dtype)


def with_joined_draws(steps: Sequence[Step]) -> list[Step]:
    """Return steps without inputs, with all steps that draw one number for each sample joined to one step."""
    found = {step: draw for step in steps if isinstance(step, SamplesStep) and (draw := step.scalar_draw()) is not None}
    if len(found) < 2:
        return list(steps)
    return [ScalarDrawsStep(list(found), list(found.values())), *(step for step in steps if step not in found)]
