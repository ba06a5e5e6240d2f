"""The parts of a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from dalify.base.fork_lock import ForkLock
from dalify.base.source_line import SourceLine
from dalify.executor.options import PipelineOptions
from dalify.pipeline.checkpoints import Checkpoints
from dalify.pipeline.engine_builder import EngineBuilder
from dalify.pipeline.graph_definition import GraphDefinition
from dalify.pipeline.inspection import Inspection
from dalify.pipeline.reference import OwningPipeline, PipelineReference
from dalify.pipeline.run import Run
from dalify.pipeline.taps import Taps

__all__ = ["Parts"]

MakeBuilder = Callable[
    [PipelineOptions, SourceLine | None, PipelineReference, GraphDefinition, Taps, ForkLock], EngineBuilder
]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a pipeline. A part refers to parts before it, and only weakly to the pipeline.

    Attributes:
        options: its options.
        line: the user's line that created it.
        lock: held while it runs.
        pipeline: the pipeline.
        definition: the graph that the user defines.
        taps: values that are kept although they are no outputs.
        builder: builds the engine and owns it.
        run: which batches are scheduled and returned.
        checkpoints: saves and restores states.
        inspection: explains, draws and serializes the graph.
    """

    options: PipelineOptions
    line: SourceLine | None
    lock: ForkLock
    pipeline: PipelineReference
    definition: GraphDefinition
    taps: Taps
    builder: EngineBuilder
    run: Run
    checkpoints: Checkpoints
    inspection: Inspection

    @classmethod
    def of(
        cls,
        pipeline: OwningPipeline,
        options: PipelineOptions,
        line: SourceLine | None,
        make_builder: MakeBuilder = EngineBuilder,
    ) -> Self:
        """Return the parts of a new pipeline."""
        lock = ForkLock()
        reference = PipelineReference(pipeline)
        definition = GraphDefinition(reference, line)
        taps = Taps(options.taps, line)
        builder = make_builder(options, line, reference, definition, taps, lock)
        run = Run(options, line, reference, taps, builder, lock)
        return cls(
            options=options,
            line=line,
            lock=lock,
            pipeline=reference,
            definition=definition,
            taps=taps,
            builder=builder,
            run=run,
            checkpoints=Checkpoints(options, line, reference, builder, run, lock),
            inspection=Inspection(options, reference, definition, builder),
        )
