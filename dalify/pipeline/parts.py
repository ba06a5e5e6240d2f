"""The parts of a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from dalify.base.errors import PipelineStateError
from dalify.pipeline.checkpoints import Checkpoints
from dalify.pipeline.context import PipelineContext
from dalify.pipeline.engine_builder import EngineBuilder
from dalify.pipeline.graph_definition import GraphDefinition
from dalify.pipeline.inspection import Inspection
from dalify.pipeline.run import Run
from dalify.pipeline.taps import Taps


class MissingParts:
    """Replaces the parts of a pipeline if the user's class did not call ``Pipeline.__init__``."""

    def __get__(self, pipe: Any, owner: type[Any]) -> Any:
        """Raise an error.

        Raises:
            PipelineStateError: the attribute of a pipeline is read.
        """
        if pipe is None:
            return self
        raise PipelineStateError.here(
            f"the method {owner.__name__}.__init__ did not call Pipeline.__init__.",
            hint="Call super().__init__(batch_size, num_threads) in its first line.",
        )


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a pipeline. A part refers to previous parts, and only weakly to the pipeline.

    Attributes:
        context: options of the pipeline and other shared state.
        definition: the graph that the user defines.
        taps: values that are kept although they are not outputs.
        builder: builds the engine and owns it.
        run: schedules, returns and checks batches.
        checkpoints: saves and restores states.
        inspection: explains, draws and serializes the graph.
    """

    context: PipelineContext
    definition: GraphDefinition
    taps: Taps
    builder: EngineBuilder
    run: Run
    checkpoints: Checkpoints
    inspection: Inspection

    @classmethod
    def of(
        cls,
        context: PipelineContext,
        make_builder: Callable[[PipelineContext, GraphDefinition, Taps], EngineBuilder] = EngineBuilder,
    ) -> Self:
        """Return the parts of a new pipeline."""
        definition = GraphDefinition(context)
        taps = Taps(context)
        builder = make_builder(context, definition, taps)
        run = Run(context, taps, builder)
        return cls(
            context=context,
            definition=definition,
            taps=taps,
            builder=builder,
            run=run,
            checkpoints=Checkpoints(context, builder, run),
            inspection=Inspection(context, definition, builder),
        )
