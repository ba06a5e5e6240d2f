"""The step of operators that process samples separately: decoders, and operators that read files.

Results of different shapes are stored in one block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.narrow import is_tuple
from dalify.data import Array, Batch, Spec
from dalify.executor.agreement import agreed_samples
from dalify.executor.frame import Frame
from dalify.executor.kernel_step import KernelStep
from dalify.executor.origins import origins_of
from dalify.executor.shape_table import ShapeTable

__all__ = ["ListedStep"]

if TYPE_CHECKING:
    from dalify.kernels.random.philox import SampleDraws


class ListedStep(KernelStep):
    """Calls the kernel of a listed operator: once for all samples of a chunk.

    A kernel that allocates its results may return a `Batch` in memory that is not used again.
    """

    def _compute(
        self, frame: Frame, inputs: list[Batch | None], arguments: dict[str, Any], draws: SampleDraws | None, count: int
    ) -> list[Batch]:
        extra = self._prepare(inputs, arguments, draws, count)
        wanted, layout = extra.pop("out_shapes", None), extra.pop("out_layout", None)
        arrays = {name: value for name, value in {**arguments, **extra}.items() if name in self._kernel.names}
        xs = [None if batch is None else _arrays(batch) for batch in inputs]
        named = {**self._constants, **arrays}
        origins = origins_of(inputs)
        if self._operator.is_allocating:
            specs = self._specs_of_sample(inputs, 0, layout=layout)
            results = self._call_kernel([], xs, named, 0, count)
            if isinstance(results, Batch):
                samples = results.samples if results.ragged is None else None
                ragged = results.ragged
                batch = Batch(None, samples, specs[0].layout or "", self.device, origins, results.dtype, ragged)
                batch.is_lasting = not batch.is_uniform  # a uniform one becomes an array
                return [batch]
            if self._operator.substitute_function is not None:
                results = tuple(
                    self._agreed(part, slot, frame) if spec.dtype is None or spec.ndim is None else part
                    for part, slot, spec in zip(
                        results if is_tuple(results) else (results,), self.outputs, specs, strict=True
                    )
                )
            return self._as_batches(results, specs, origins)
        spec, shapes = self._out_shapes(inputs, arguments, wanted, layout, count)
        batch = self._memory_of(frame, 0, spec, shapes, origins, count, None)
        if not is_tuple(shapes) or 0 not in shapes:
            self._call_kernel([batch.samples if batch.dense is None else batch.dense], xs, named, 0, count)
        return [batch]

    def _agreed(self, samples: list[Array], slot: int, frame: Frame) -> list[Array]:
        """Return decoded samples with the element type and number of dimensions of the first sample of the batch."""
        substitutes = frame.substitutes.get(self.node, ())
        positions = frame.positions(self.node.branch)
        chunk = (frame.start, frame.start + frame.count)
        hint = "dtype=types.FLOAT converts, for instance. " if "dtype" in self._operator.parameters else ""
        return list(
            agreed_samples(samples, slot, chunk, frame.agreement, lambda n: int(positions[n]) in substitutes, hint)
        )

    def _spec_of(self, batch: Batch, sample: int) -> Spec:
        return batch.open_spec()

    def _out_shapes(
        self, inputs: list[Batch | None], arguments: dict[str, Any], wanted: Any, layout: str | None, count: int
    ) -> tuple[Spec, tuple[int, ...] | ShapeTable]:
        """Return the spec of the first sample's result, and the shapes: a tuple if they are equal."""
        varying = {name: arguments[name] for name in self._varying}
        if varying:
            specs = [self._specs_of_sample(inputs, n, varying, None, layout)[0] for n in range(count)]
            spec, shapes = specs[0], np.array([spec.shape or () for spec in specs], np.int64).reshape(count, -1)
        else:
            spec = self._specs_of_sample(inputs, 0, layout=layout)[0]
            if wanted is None:
                return spec, spec.shape or ()
            shapes = np.array([wanted] if is_tuple(wanted) else wanted, np.int64)
        table = ShapeTable(shapes, 1 if spec.dtype is None else spec.dtype.numpy.itemsize)
        self._check_sizes(table, spec)
        shape = table.shape(0)
        return spec.replace(shape=shape), shape if table.is_uniform else table


def _arrays(batch: Batch) -> list[Array]:
    """Return samples one by one, contiguous."""
    return [
        sample if batch.device == "gpu" or sample.flags.c_contiguous else np.ascontiguousarray(sample)
        for sample in batch.samples
    ]
