"""How the parts of a pipeline reach it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dalify.pipeline.pipeline import Pipeline

__all__ = ["PipelineReference"]


class PipelineReference:
    """A weak reference to the pipeline that owns some parts.

    The parts need it to call methods that a subclass of the user may override, such as ``define_graph``. A strong
    reference would be a cycle: a pipeline is freed, and its threads end, as soon as the user drops it.

    Args:
        pipeline: the owner of the parts.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.point_to(pipeline)

    def __call__(self) -> Pipeline:
        """Return the pipeline."""
        pipeline = self._pipeline()
        assert pipeline is not None, "dalify bug: the pipeline of this part was freed"
        return pipeline

    def point_to(self, pipeline: Pipeline) -> None:
        """Refer to another pipeline, which takes over the parts."""
        self._pipeline = weakref.ref(pipeline)
