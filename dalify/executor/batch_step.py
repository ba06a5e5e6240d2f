"""The steps of operators whose kernels take batches: whole ones, or those of a chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dalify.base.errors import MixedBatchError
from dalify.base.failure_context import failure_context
from dalify.base.narrow import is_tuple
from dalify.data import Array, Batch, Spec
from dalify.executor.agreement import agreed_samples
from dalify.executor.frame import Frame
from dalify.executor.kernel_step import KernelStep, open_spec_of
from dalify.executor.steps import note_sample

__all__ = ["BatchStep", "ChunkStep"]

if TYPE_CHECKING:
    from dalify.kernels.random.philox import SampleDraws


class BatchStep(KernelStep):
    """Calls a kernel that takes a whole batch, because its samples depend on each other or on user code."""

    def _compute(
        self, frame: Frame, inputs: list[Batch | None], arguments: dict[str, Any], draws: SampleDraws | None, count: int
    ) -> list[Batch]:
        first = next((batch for batch in inputs if batch is not None), None)
        specs = tuple(None if batch is None else Spec(batch.dtype, batch.ndim, batch.layout) for batch in inputs)
        rule_specs = self._operator.apply_rule(specs, self._rule_arguments)
        extra = self._prepare(inputs, arguments, draws, count)

        def memory(start: int, size: int, shape: tuple[int, ...]) -> Array:
            self._check_size(shape, rule_specs[0], start)
            return self._allocate(frame, 0, start, size, rule_specs[0].replace(shape=shape))

        context: dict[str, Any] = {"spec": open_spec_of(inputs), "specs": specs, "draws": draws, "count": count}
        context |= {"memory": memory, "out_specs": rule_specs, "out_spec": rule_specs[0] if rule_specs else None}
        function = self._kernel_function
        named = function.named(arguments, count)
        named |= {name: value for name, value in {**extra, **context}.items() if name in function.names}
        results: Any = function.function(*inputs, **named)
        if len(self.outputs) == 1 and not is_tuple(results):
            results = (results,)
        return self._batches(results or (), rule_specs, frame, None if first is None else first.origins)

    def _batches(self, results: Sequence[Any], specs: Sequence[Spec], frame: Frame, origins: Any) -> list[Batch]:
        """Return the results of the kernel as batches."""
        return [self._as_batch(result, spec, origins) for result, spec in zip(results, specs, strict=True)]


class ChunkStep(BatchStep):
    """Calls a kernel that takes the batches of a chunk, and processes samples one by one."""

    def _compute(
        self, frame: Frame, inputs: list[Batch | None], arguments: dict[str, Any], draws: SampleDraws | None, count: int
    ) -> list[Batch]:
        try:
            return super()._compute(frame, inputs, arguments, draws, count)
        except Exception as error:
            note_sample(error, 0, 0 if count == 1 else None)
            raise

    def _batches(self, results: Sequence[Any], specs: Sequence[Spec], frame: Frame, origins: Any) -> list[Batch]:
        if self._operator.substitute_function is not None:
            results = [
                self._agreed(result, slot, frame) if spec.dtype is None or spec.ndim is None else result
                for result, slot, spec in zip(results, self.outputs, specs, strict=True)
            ]
        batches = super()._batches(results, specs, frame, origins)
        for batch in batches:
            batch.origins = origins
        return batches

    def _agreed(self, samples: list[Array], slot: int, frame: Frame) -> list[Array]:
        """Return decoded samples with the element type and number of dimensions of the first sample of the batch."""
        positions = frame.positions(self.node.branch)
        substitutes = frame.substitutes.get(self.node, ())

        def refuse(error: MixedBatchError, index: int) -> Exception:
            failure_context(error).sample = index
            return error

        chunk = (frame.start, frame.start + frame.count)
        conversion_hint = "dtype=types.FLOAT converts, for instance. " if "dtype" in self._operator.parameters else ""

        def is_blank(index: int) -> bool:
            return int(positions[index]) in substitutes

        return list(agreed_samples(samples, slot, chunk, frame.agreement, is_blank, refuse, conversion_hint))
