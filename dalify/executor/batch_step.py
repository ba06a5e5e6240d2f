"""The step of operators whose kernel takes a whole batch, because its samples depend on each other or on user code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalify.base.narrow import is_tuple
from dalify.data import Array, Batch, Spec
from dalify.executor.frame import Frame
from dalify.executor.kernel_step import KernelStep, open_spec_of

__all__ = ["BatchStep"]

if TYPE_CHECKING:
    from dalify.kernels.random.philox import SampleDraws


class BatchStep(KernelStep):
    """Calls the kernel of a batchwise operator."""

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
        results: Any = function.function(*inputs, **named)
        if len(self.outputs) == 1 and not is_tuple(results):
            results = (results,)
        origins = None if first is None else first.origins
        return [self._as_batch(result, rule, origins) for result, rule in zip(results or (), rule_specs, strict=True)]
