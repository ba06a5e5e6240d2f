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


class StageState:
    """A stage with its measured times and waiting iterations.

    Args:
        stage: the stage.
        plan: its plan.
        torch_device: device of the device stages; None without such stages.

    Attributes:
        stage: the stage.
        operator_count: number of operators; it determines the time of Python code per chunk.
        steps: the steps to run; see `with_joined_draws`.
        publishes_directly: True if results are in permanent memory, so that no collector is needed.
        is_uneven: True if the time per sample varies, because cached samples take a hundredth of the time of others.
        seconds_per_sample: measured time without waiting for the GIL; None before the first batch. It determines the
            size of chunks.
        cpu_seconds_per_sample: CPU time in ``seconds_per_sample``, without waiting for files.
        ragged: published slots with samples of different shapes in the last batch; they get no dense buffer.
        turn: order of the iteration that may enter the stage, if it is serial.
        parked: iterations that wait for their turn, by order.
    """

    __slots__ = (
        "_may_be_brief", "cpu_seconds_per_sample", "is_uneven", "operator_count", "parked", "publishes_directly",
        "ragged", "seconds_per_sample", "stage", "steps", "turn",
    )  # fmt: skip

    def __init__(self, stage: Stage, plan: Plan, torch_device: str | None) -> None:
        self.stage = stage
        self.operator_count = sum(step.node.operator.operator_count for step in stage.steps)
        # For example random numbers, which are small, and data that are copied to page-locked memory.
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
        # File access may block. User functions and the device have their own threads, except in emulation.
        steps = list(walk(stage.steps))
        if stage.kind == "device":
            self._may_be_brief = torch_device == "cpu" and not any(step.node.operator.is_serial for step in steps)
        else:
            self._may_be_brief = not stage.is_serial and not any(isinstance(step, ReaderStep) for step in steps)
        self.begin(0)

    def begin(self, turn: int) -> None:
        """Reset the waiting iterations; ``turn`` is the order of the next iteration."""
        self.turn = turn
        self.parked: dict[int, Iteration] = {}

    def is_brief(self, size: int) -> bool:
        """Return whether a chunk should be computed in the thread that enters the stage."""
        return self._may_be_brief and is_brief(size, self.seconds_per_sample)

    def measure(self, iteration: Iteration) -> None:
        """Update the times by those of an iteration that has finished the stage."""
        self.seconds_per_sample = typical_seconds(self.seconds_per_sample, iteration.seconds_per_sample, self.is_uneven)
        self.cpu_seconds_per_sample = typical_seconds(
            self.cpu_seconds_per_sample, iteration.cpu_seconds_per_sample, self.is_uneven
        )
