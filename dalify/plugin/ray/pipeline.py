"""Pipelines whose batches actors of Ray compute."""

from __future__ import annotations

from collections.abc import Mapping

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, PipelineStateError
from dalify.base.source_line import SourceLine
from dalify.executor.remote import RemoteParts
from dalify.pipeline.pipeline import Pipeline, parts_of
from dalify.plugin.ray.pool import RayPool
from dalify.plugin.ray.stages import RayStages

__all__ = ["RayPipeline"]


class RayPipeline(Pipeline):
    """A pipeline whose batches actors of Ray compute, on any nodes.

    It has the batches, states, errors and epochs of the pipeline that it is made of, see ``docs/ray.md``.

    Args:
        pipe: a pipeline that has not run yet. It is taken over: use the new one in its place.
        workers: number of actors; 1 by default.
        cpus_per_worker: CPUs that Ray reserves for each, and its threads.
        min_workers: minimum number of actors, if the number may change.
        max_workers: most actors, where it may change. See ``RayPool`` for when it does.
        resources: further resources that Ray reserves for each.
        start_timeout_s: how long to wait for a first worker before a batch is an error.
        pool: workers that several trainers share, in the place of all these numbers.

    Raises:
        ArgumentValueError: numbers out of range, or both numbers and a pool.
        PipelineStateError: the pipeline was built already.

    Example:
        >>> pipe = RayPipeline(training("photos", batch_size=64), workers=8, cpus_per_worker=4)
        >>> for batch in DALIGenericIterator(pipe, ["images", "labels"], reader_name="Reader"): ...
    """

    def __init__(
        self,
        pipe: Pipeline,
        *,
        workers: int | None = None,
        cpus_per_worker: float | None = None,
        min_workers: int | None = None,
        max_workers: int | None = None,
        resources: Mapping[str, float] | None = None,
        start_timeout_s: float | None = None,
        pool: RayPool | None = None,
    ) -> None:
        if not isinstance(pipe, Pipeline) or type(pipe).run is not Pipeline.run:
            raise ArgumentTypeError(
                f"RayPipeline takes a Pipeline; got a {type(pipe).__name__}.",
                line=SourceLine.capture(),
                hint="Pass what a function decorated with @pipeline_def returns, without debug=True.",
            )
        given = {
            "workers": workers,
            "cpus_per_worker": cpus_per_worker,
            "min_workers": min_workers,
            "max_workers": max_workers,
            "resources": resources,
            "start_timeout_s": start_timeout_s,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if pool is not None and given:
            raise ArgumentValueError(f"pool and {', '.join(given)} exclude each other.", line=SourceLine.capture())
        parts = parts_of(pipe)
        if parts.builder.built is not None:
            raise PipelineStateError(
                "the pipeline was built already, in this process.",
                line=SourceLine.capture(),
                hint="Make a RayPipeline of it before build(), run() and iterators.",
            )
        if parts.options.processes:
            raise ArgumentValueError(
                "processes= and Ray exclude each other.", line=parts.line, hint="Leave processes= out of the pipeline."
            )
        parts.builder.graph()
        self.__dict__.update(pipe.__dict__)  # also what iter_setup of a user's subclass reads
        self._iter_setup = type(pipe).iter_setup
        self._place = _Place(pool or RayPool(**given, is_shared=False))
        parts.pipeline.point_to(self)
        parts.builder.elsewhere = self._place

    def iter_setup(self) -> None:
        """Feed data for the next iteration, as the pipeline does of which this one was made."""
        self._iter_setup(self)

    @property
    def nodes(self) -> list[str]:
        """Ids of the nodes of Ray whose workers are ready, one for each worker."""
        return [] if self._place.current is None else self._place.current.nodes


class _Place:
    """The pool of a pipeline; see ``Elsewhere``."""

    def __init__(self, pool: RayPool) -> None:
        self._pool = pool
        self.current: RayStages | None = None

    @property
    def count(self) -> int:
        """Most workers."""
        return self._pool.maximum

    @property
    def threads(self) -> int:
        """Threads of each."""
        return self._pool.threads

    @property
    def under_way(self) -> int:
        """How many batches workers should have at the same time: each has one in the making and one at hand."""
        return 1 if self.current is None else self.current.under_way

    def stages(self, parts: RemoteParts) -> RayStages:
        """Return what brings batches to the workers."""
        self.current = RayStages(parts, self._pool)
        return self.current
