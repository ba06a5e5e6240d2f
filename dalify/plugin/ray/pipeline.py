"""``RayPipeline``: a pipeline whose batches are computed by Ray actors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, PipelineStateError
from dalify.executor.remote import BatchService
from dalify.pipeline import Pipeline
from dalify.pipeline.pipeline import parts_of
from dalify.plugin.ray.pool import RayPool
from dalify.plugin.ray.stages import RayStages


class RayPipeline(Pipeline):
    """A pipeline whose batches are computed by Ray actors, on any nodes.

    Batches, states, errors and epochs are those of the original pipeline, see ``docs/ray.md``.

    Args:
        pipe: a pipeline that has not run yet. Do not use it afterwards; use the new one instead.
        workers: number of actors; 1 by default.
        cpus_per_worker: CPUs that Ray reserves for each actor, and its number of threads.
        min_workers: minimum number of actors, if the number may change.
        max_workers: maximum number of actors, if the number may change; see ``RayPool``.
        resources: further resources that Ray reserves for each actor.
        start_timeout_s: maximum time in seconds to wait for the first worker; after it, batches raise an error.
        pool: workers that several trainers share, instead of the arguments above.

    Raises:
        ArgumentValueError: an argument is out of range, or a pool and other arguments are specified.
        PipelineStateError: the pipeline was built before.

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
            raise ArgumentTypeError.here(
                f"RayPipeline takes a Pipeline; got a {type(pipe).__name__}.",
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
            raise ArgumentValueError.here(f"pool cannot be used together with {', '.join(given)}.")
        parts = parts_of(pipe)
        if parts.builder.built is not None:
            raise PipelineStateError.here(
                "the pipeline was built already, in this process.",
                hint="Create the RayPipeline before build(), run() and iterators.",
            )
        if parts.context.options.processes:
            raise ArgumentValueError(
                "processes= cannot be used together with Ray.",
                line=parts.context.line,
                hint="Omit processes= in the pipeline.",
            )
        parts.builder.graph()
        self.__dict__.update(pipe.__dict__)  # including the attributes of a user's subclass, which its iter_setup reads
        self._iter_setup = type(pipe).iter_setup
        parts.context.point_to(self)
        pool = pool or RayPool(**given, is_shared=False)
        parts.builder.service = BatchService(pool.maximum, pool.threads, partial(RayStages, pool=pool))

    def iter_setup(self) -> None:
        """Feed data for the next iteration, by ``iter_setup`` of the original pipeline."""
        self._iter_setup(self)

    @property
    def nodes(self) -> list[str]:
        """Ids of the Ray nodes of the workers that are ready, one per worker."""
        built = parts_of(self).builder.built
        return built.engine.remote.nodes if built is not None and isinstance(built.engine.remote, RayStages) else []
