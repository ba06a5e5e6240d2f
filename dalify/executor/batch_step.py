"""The steps of operators with kernels for batches: whole batches, or the samples of a chunk as batches."""

from __future__ import annotations

from functools import partial
from typing import Any

from dalify.data import Array, Batch, Spec
from dalify.executor.agreement import agreed_samples
from dalify.executor.frame import Frame
from dalify.executor.kernel_step import KernelStep
from dalify.executor.step_call import StepCall
from dalify.executor.steps import note_sample


class BatchStep(KernelStep):
    """Calls a kernel with a whole batch, because its samples depend on each other or on user code."""

    def _compute(self, call: StepCall) -> list[Batch]:
        specs = self._open_specs(call.inputs)
        function = self._kernel_function
        named = function.named(call.arguments, call.count)
        named |= {name: value for name, value in self._prepare(call).items() if name in function.names}
        for name in self._wanted:
            named[name] = self._context(name, call, specs)
        return self._results(function.function(*call.inputs, **named), specs, call)

    def _context(self, name: str, call: StepCall, specs: tuple[Spec, ...]) -> Any:
        if name == "memory":
            return partial(self._memory, call, specs[0])
        return call.frame.is_discarded if name == "is_discarded" else super()._context(name, call, specs)

    def _memory(self, call: StepCall, spec: Spec, start: int, size: int, shape: tuple[int, ...]) -> Array:
        """Return memory for samples of the first output that have one shape, from ``start``."""
        self._check_size(shape, spec, start)
        return self._allocate(call.frame, 0, start, size, spec, shape)

    def _results(self, results: Any, specs: tuple[Spec, ...], call: StepCall) -> list[Batch]:
        """Convert the return value of a kernel to batches."""
        first = next((batch for batch in call.inputs if batch is not None), None)
        return self._as_batches(results, specs, None if first is None else first.origins)


class ChunkStep(BatchStep):
    """Calls a kernel with the batches of a chunk; it processes samples one by one."""

    def _compute(self, call: StepCall) -> list[Batch]:
        try:
            return super()._compute(call)
        except Exception as error:
            note_sample(error, 0, 0 if call.count == 1 else None)
            raise

    def _results(self, results: Any, specs: tuple[Spec, ...], call: StepCall) -> list[Batch]:
        batches = super()._results(results, specs, call)
        for number, (spec, slot) in enumerate(zip(specs, self.outputs, strict=True)):
            # The rule of a decoder leaves properties open that the file determines.
            if self._operator.substitute_function is not None and (spec.dtype is None or spec.ndim is None):
                samples = self._agreed(batches[number].samples, slot, call.frame)
                batches[number] = Batch(None, samples, spec.layout or "", self.device)
            batches[number].origins = call.origins
        return batches

    def _agreed(self, samples: list[Array], slot: int, frame: Frame) -> list[Array]:
        """Return decoded samples with the dtype and number of dimensions of the first sample of the batch."""
        substitutes = frame.substitutes.get(self.node, ())
        positions = frame.positions(self.node.branch)
        chunk = (frame.start, frame.start + frame.count)
        hint = "dtype=types.FLOAT converts, for instance. " if "dtype" in self._operator.parameters else ""
        return list(
            agreed_samples(samples, slot, chunk, frame.agreement, lambda n: int(positions[n]) in substitutes, hint)
        )
