"""The step of operators that have a Triton kernel: it takes a chunk in one call, or hands it to the torch kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.optional import torch
from dalify.data import Batch, Spec
from dalify.data.batch import places_in_block
from dalify.data.samples import NoDeviceKernelError
from dalify.executor.device_samples_step import step_class
from dalify.executor.device_steps import emulated
from dalify.executor.frame import Frame
from dalify.executor.kernel_step import KernelStep
from dalify.executor.samples_step import SamplesStep
from dalify.graph import Node
from dalify.kernels.dispatch import reason_against, supports
from dalify.registry import Kernel, Operator

__all__ = ["TritonStep"]

if TYPE_CHECKING:
    from dalify.kernels.random.philox import SampleDraws


class TritonStep(SamplesStep):
    """Calls a Triton kernel once for all samples of a chunk.

    Chunks that it does not support are computed by the torch kernel: by device, element types, or because the kernel
    raises `NoDeviceKernelError`, which it does before it launches anything.
    """

    def __init__(self, node: Node, *others: Any) -> None:
        super().__init__(node, *others)
        other = step_class(self._operator, "gpu", emulated()) or KernelStep
        self._torch_step = other(node, *others)

    def _kernel_of(self, operator: Operator) -> Kernel:
        assert operator.triton_kernel is not None, f"dalify bug: {operator.name} has no Triton kernel"
        return operator.triton_kernel

    def _groupwise(
        self,
        frame: Frame,
        inputs: list[Batch | None],
        arguments: dict[str, Any],
        draws: SampleDraws | None,
        count: int,
    ) -> list[Batch]:
        dtypes = [batch.dtype.numpy for batch in inputs if batch is not None]
        if reason_against(frame.torch_device) is None and supports(dtypes):
            try:
                return super()._groupwise(frame, inputs, arguments, draws, count)
            except NoDeviceKernelError:
                # Tried again for the next chunk: results must not depend on the chunks before.
                pass
        return self._torch_step._groupwise(frame, inputs, arguments, draws, count)

    def _ragged(self, frame: Frame, output: int, spec: Spec, shapes: np.ndarray[Any, Any], origins: Any) -> Batch:
        """Return samples of several shapes in one block of the device's memory, to be filled."""
        assert spec.dtype is not None, f"dalify bug: {self._operator.name} gave no element type"
        offsets, size_bytes = places_in_block(shapes, spec.dtype.numpy.itemsize)
        block = torch.empty(size_bytes, dtype=torch.uint8, device=frame.torch_device)
        return Batch(None, None, spec.layout or "", self.device, origins, spec.dtype, (block, offsets, shapes))
