"""The steps of operators with a GPU kernel for all samples of a chunk, also of different shapes.

On an accelerator the argument of a kernel is `DeviceSamples`, one buffer with offsets and shapes on the host, so the
number of launches does not depend on the number of samples. If torch's CPU device emulates the accelerator, compiled
CPU kernels are called with the memory of its tensors, because torch's general functions take many times as long there.
`executor.step_class` selects the class.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from dalify.base.narrow import is_tuple
from dalify.base.optional import torch
from dalify.data import Batch, BufferPool, Spec, torch_dtype
from dalify.data.batch import array_of, tensor_of, tensor_of_bytes
from dalify.data.decoded_counts import DecodedCounts
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.executor.batch_step import BatchStep
from dalify.executor.elementwise_step import ElementwiseStep
from dalify.executor.frame import Frame
from dalify.executor.kernel_step import KernelStep
from dalify.executor.ragged_step import RaggedStep
from dalify.executor.samples_step import SamplesStep
from dalify.executor.selection_step import SelectionStep
from dalify.executor.step_call import StepCall
from dalify.executor.steps import Step
from dalify.graph import Node
from dalify.registry import Kernel, KernelOperator


class DeviceSamplesStep(SamplesStep):
    """Calls a GPU kernel once for all samples of a chunk, with `DeviceSamples` instead of tensors."""

    _samples = staticmethod(DeviceSamples.of_batch)

    def _memory_of(self, call: StepCall, output: int, spec: Spec, shapes: Any, like: Any = None) -> Batch:
        if is_tuple(shapes) or spec.dtype is None:
            return super()._memory_of(call, output, spec, shapes, like)
        shapes = shapes.shapes
        # Equal shapes have the same positions as in the input, so the kernel can process each buffer as one row.
        if like is not None and like.dense is None and np.array_equal(like.shapes, shapes):
            offsets, size = like.offsets, like.block.numel()
        else:
            sizes = shapes.prod(1, dtype=np.int64)
            ends = np.cumsum(sizes)
            offsets, size = ends - sizes, int(ends[-1])
        item_bytes = spec.dtype.numpy.itemsize
        block = torch.empty(size, dtype=torch_dtype(spec.dtype), device=call.frame.torch_device).view(torch.uint8)
        ragged = block, offsets * item_bytes, shapes
        return Batch(None, None, spec.layout or "", "gpu", call.origins, spec.dtype, ragged)


class MixedStep(DeviceSamplesStep):
    """Calls a kernel with samples on the host and device memory for the results.

    Attributes:
        counts: numbers of images that the host and the device decoded.
    """

    def __init__(self, node: Node, inputs: Any, outputs: Any, slots: Any, device: str, *others: Any) -> None:
        super().__init__(node, inputs, outputs, slots, "gpu", *others)
        self.counts = DecodedCounts()

    def _extra(self, call: StepCall, prepared: dict[str, Any], specs: tuple[Spec, ...]) -> dict[str, Any]:
        return {**super()._extra(call, prepared, specs), "counts": self.counts}

    def _kernel_of(self, operator: KernelOperator) -> Kernel:
        return operator.kernels["mixed"]

    @staticmethod
    def _samples(batch: Batch) -> Any:
        return Samples.of_batch(batch) if batch.device == "cpu" else DeviceSamples.of_batch(batch)


class ParseStep(Step):
    """Parses the samples of a `MixedStep` in advance, because that step computes one batch after the other."""

    def __init__(self, decoder: MixedStep) -> None:
        super().__init__(decoder.node, decoder.inputs[:1], ())
        operator = decoder.node.operator
        assert isinstance(operator, KernelOperator), f"dalify bug: {operator.name} has no kernels"
        assert operator.mixed is not None, f"dalify bug: {operator.name} has no kernel for mixed"
        self._parse = operator.mixed.parse

    def run(self, frame: Frame) -> None:
        """Parse the samples of the batch."""
        batch = frame.values[self.inputs[0] or 0]
        if batch is not None:
            with suppress(Exception):  # the decoder's step raises the error again, with the sample
                Samples.of_batch(batch).parsed = self._parse(batch, frame.torch_device)


class _Compiled(KernelStep):
    """Calls CPU kernels with the memory of tensors of torch's CPU device."""

    def __init__(self, node: Node, inputs: Any, outputs: Any, slots: Any, device: str, *others: Any) -> None:
        super().__init__(node, inputs, outputs, slots, "cpu", *others)
        self._pool = BufferPool()

    def _compute(self, call: StepCall) -> list[Batch]:
        arrays = [None if batch is None else _with_arrays(batch) for batch in call.inputs]
        return [_with_tensors(batch) for batch in super()._compute(replace(call, inputs=arrays))]

    def _allocate(
        self, frame: Frame, output: int, start: int, count: int, spec: Spec, shape: tuple[int, ...] | None
    ) -> Any:
        assert shape is not None, f"dalify bug: {self._operator.name} gave no shape"
        assert spec.dtype is not None, f"dalify bug: {self._operator.name} gave no type"
        return self._pool.empty((count, *shape), spec.dtype.numpy)

    def _block(self, frame: Frame, output: int, size_bytes: int) -> tuple[np.ndarray[Any, Any], bool]:
        return self._pool.empty((size_bytes,), np.dtype(np.uint8)), True


class CompiledStep(_Compiled, SamplesStep):
    """Calls the compiled CPU kernel for all samples of a chunk."""


class CompiledBatchStep(_Compiled, BatchStep):
    """Calls the CPU kernel for the whole batch."""


class CompiledElementwiseStep(_Compiled, ElementwiseStep):
    """Calls the CPU kernel for all samples of a chunk as one row of elements."""


class CompiledSelectionStep(_Compiled, SelectionStep):
    """Copies the elements that an operator selects from the samples of a chunk, as on the CPU."""


class CompiledRaggedStep(_Compiled, RaggedStep):
    """Calls the CPU kernel for the rows of all samples."""


def _with_arrays(batch: Batch) -> Batch:
    """Return a batch of NumPy arrays that share the memory of a batch on torch's CPU device."""
    if batch.device == "cpu":
        return batch
    if batch.ragged is not None:
        block, offsets, shapes = batch.ragged
        ragged = block.numpy(), offsets, shapes
        return Batch(None, None, batch.layout, "cpu", batch.origins, batch.dtype, ragged)
    return batch.map(lambda tensor: array_of(tensor, batch.dtype), device="cpu")


def _with_tensors(batch: Batch) -> Batch:
    """Return a batch on torch's CPU device that shares the memory of a batch of arrays."""
    if batch.ragged is not None:
        block, offsets, shapes = batch.ragged
        ragged = tensor_of_bytes(block), offsets, shapes
        return Batch(None, None, batch.layout, "gpu", batch.origins, batch.dtype, ragged)
    return batch.map(_tensor, device="gpu")


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    # torch does not support negative strides, and warns about read-only memory.
    is_plain = array.flags.writeable and all(stride >= 0 for stride in array.strides)
    return tensor_of(array if is_plain else array.copy())
