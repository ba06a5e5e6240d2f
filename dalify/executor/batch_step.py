"""The steps of operators whose kernels take batches: whole ones, or those of a chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
            return self._allocate(frame, 0, start, size, rule_specs[0], shape)

        context: dict[str, Any] = {"spec": open_spec_of(inputs), "specs": specs, "draws": draws, "count": count}
        context |= {"memory": memory, "out_specs": rule_specs, "out_spec": rule_specs[0] if rule_specs else None}
        function = self._kernel_function
        named = function.named(arguments, count)
        named |= {name: value for name, value in {**extra, **context}.items() if name in function.names}
        results = function.function(*inputs, **named)
        return self._results(results, rule_specs, frame, None if first is None else first.origins)

    def _results(self, results: Any, specs: tuple[Spec, ...], frame: Frame, origins: Any) -> list[Batch]:
        """Return what the kernel returned as batches."""
        return self._as_batches(results, specs, origins)


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

    def _results(self, results: Any, specs: tuple[Spec, ...], frame: Frame, origins: Any) -> list[Batch]:
        batches = super()._results(results, specs, frame, origins)
        for number, (spec, slot) in enumerate(zip(specs, self.outputs, strict=True)):
            # The file of a decoder determines what its rule does not.
            if self._operator.substitute_function is not None and (spec.dtype is None or spec.ndim is None):
                samples = self._agreed(batches[number].samples, slot, frame)
                batches[number] = Batch(None, samples, spec.layout or "", self.device)
            batches[number].origins = origins
        return batches

    def _agreed(self, samples: list[Array], slot: int, frame: Frame) -> list[Array]:
        """Return decoded samples with the element type and number of dimensions of the first sample of the batch."""
        substitutes = frame.substitutes.get(self.node, ())
        positions = frame.positions(self.node.branch)
        chunk = (frame.start, frame.start + frame.count)
        hint = "dtype=types.FLOAT converts, for instance. " if "dtype" in self._operator.parameters else ""
        return list(
            agreed_samples(samples, slot, chunk, frame.agreement, lambda n: int(positions[n]) in substitutes, hint)
        )
