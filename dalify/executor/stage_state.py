"""The state of a stage while the engine runs batches."""

from __future__ import annotations

from dalify.executor.chunking import is_brief, typical_seconds
from dalify.executor.iteration import Iteration
from dalify.executor.plan import Plan, Stage
from dalify.executor.reader_step import ReaderStep
from dalify.executor.samples_step import SamplesStep
from dalify.executor.scalar_draws_step import with_joined_draws
from dalify.executor.staging import StagingStep
from dalify.executor.steps import walk

__all__ = ["StageState"]


class StageState:
    """A stage with its measured times, and the iterations that wait for the stage.

    Args:
        stage: the stage.
        plan: its plan.
        torch_device: device of the device stages; None without such stages.

    Attributes:
        stage: see above.
        operator_count: number of operators whose Python code a chunk runs.
        steps: the steps that a batch runs, see `with_joined_draws`.
        publishes_directly: whether its results are not in scratch memory, and need no buffer that collects them.
        is_uneven: whether the time per sample varies: cached samples take a hundredth of the time of others.
        seconds_per_sample: measured, without waiting for the GIL; None before the first batch. It determines the size
            of chunks.
        cpu_seconds_per_sample: CPU time of ``seconds_per_sample``, without waiting for files.
        ragged: published slots whose samples had different shapes in the last batch: they get no dense buffer.
        turn: order of the iteration that may enter it, if it is serial.
        parked: iterations that wait for their turn, by order.
    """

    __slots__ = (
        "_may_be_brief", "cpu_seconds_per_sample", "is_uneven", "operator_count", "parked", "publishes_directly",
        "ragged", "seconds_per_sample", "stage", "steps", "turn",
    )  # fmt: skip

    def __init__(self, stage: Stage, plan: Plan, torch_device: str | None) -> None:
        self.stage = stage
        self.operator_count = sum(step.node.operator.operator_count for step in stage.steps)
        # Random numbers of a batch, for example, are small. What is copied to page-locked memory stays there.
        self.publishes_directly = (
            stage.kind == "batch"
            and all(
                step.fills_memory if isinstance(step, SamplesStep) else isinstance(step, StagingStep)
                for step in stage.steps
            )
            and stage.publishes.keys().isdisjoint((*plan.outputs, *plan.pinned))
        )
        self.steps = with_joined_draws(stage.steps) if self.publishes_directly else stage.steps
        self.is_uneven = any(step in plan.caches for step in stage.steps)
        self.seconds_per_sample: float | None = None
        self.cpu_seconds_per_sample: float | None = None
        self.ragged: set[int] = set()
        # File access may block, and user functions and the device have their own threads; emulation is not a device.
        steps = list(walk(stage.steps))
        if stage.kind == "device":
            self._may_be_brief = torch_device == "cpu" and not any(step.node.operator.is_serial for step in steps)
        else:
            self._may_be_brief = not stage.is_serial and not any(isinstance(step, ReaderStep) for step in steps)
        self.begin(0)

    def begin(self, turn: int) -> None:
        """Begin without iterations; the next one has this order."""
        self.turn = turn
        self.parked: dict[int, Iteration] = {}

    def is_brief(self, size: int) -> bool:
        """Return whether a chunk may be computed in the thread that would pass it to another one."""
        return self._may_be_brief and is_brief(size, self.seconds_per_sample)

    def measure(self, iteration: Iteration) -> None:
        """Take over the time of an iteration that has finished the stage."""
        self.seconds_per_sample = typical_seconds(self.seconds_per_sample, iteration.seconds_per_sample, self.is_uneven)
        self.cpu_seconds_per_sample = typical_seconds(
            self.cpu_seconds_per_sample, iteration.cpu_seconds_per_sample, self.is_uneven
        )
