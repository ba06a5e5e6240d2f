"""Which step calls the kernel of an operator: it follows from the form of the kernel."""

from __future__ import annotations

import os

from dalify.executor.batch_step import BatchStep, ChunkStep
from dalify.executor.device_samples_step import (
    CompiledBatchStep,
    CompiledElementwiseStep,
    CompiledRaggedStep,
    CompiledSelectionStep,
    CompiledStep,
    DeviceSamplesStep,
    MixedStep,
)
from dalify.executor.elementwise_step import ElementwiseStep
from dalify.executor.kernel_step import KernelStep
from dalify.executor.ragged_step import RaggedStep
from dalify.executor.samples_step import SamplesStep
from dalify.executor.selection_step import SelectionStep
from dalify.executor.view_step import ViewStep
from dalify.kernels.dispatch import reason_against
from dalify.registry import Form, Kernel, KernelOperator

__all__ = ["step_class"]

_VARIABLE = "DALIFY_EMULATED_KERNELS"

_ON_ANY_DEVICE: dict[Form, type[KernelStep]] = {
    Form.ROWS: RaggedStep,
    Form.NEW_ROWS: RaggedStep,
    Form.VIEW: ViewStep,
    Form.BATCH: BatchStep,
}
_ON_CPU = _ON_ANY_DEVICE | {
    Form.SAMPLES: SamplesStep,
    Form.NEW_SAMPLES: SamplesStep,
    Form.ELEMENTS: ElementwiseStep,
    Form.SELECTION: SelectionStep,
    Form.CHUNK: ChunkStep,
}
_ON_ACCELERATOR = _ON_ANY_DEVICE | {Form.SAMPLES: DeviceSamplesStep, Form.NEW_SAMPLES: DeviceSamplesStep}
# Views need no kernel of the CPU.
_EMULATED: dict[Form, type[KernelStep]] = {
    Form.SAMPLES: CompiledStep,
    Form.NEW_SAMPLES: CompiledStep,
    Form.ELEMENTS: CompiledElementwiseStep,
    Form.ROWS: CompiledRaggedStep,
    Form.NEW_ROWS: CompiledRaggedStep,
    Form.SELECTION: CompiledSelectionStep,
    Form.BATCH: CompiledBatchStep,
}


def step_class(operator: KernelOperator, device: str, is_emulated: bool) -> type[KernelStep]:
    """Return the step that calls the kernel of an operator.

    In emulation it calls the kernel of the CPU where it can. The environment variable
    ``DALIFY_EMULATED_KERNELS=torch`` selects the kernels of the accelerator, as the tests do, and so does running
    Triton kernels in Triton's interpreter.

    Args:
        operator: the operator.
        device: device of the node.
        is_emulated: whether torch's CPU device emulates an accelerator.
    """
    if device == "mixed":
        return MixedStep
    if device == "cpu":
        return _ON_CPU[operator.kernels["cpu"].form]
    kernel, compiled = operator.kernels["gpu"], operator.kernels.get("cpu")
    if is_emulated and compiled is not None and _can_replace(operator, compiled, kernel):
        return _EMULATED.get(compiled.form) or _ON_ACCELERATOR[kernel.form]
    return _ON_ACCELERATOR[kernel.form]


def _can_replace(operator: KernelOperator, compiled: Kernel, kernel: Kernel) -> bool:
    """Return whether the kernel of the CPU computes on the tensors of the emulated device."""
    if os.environ.get(_VARIABLE) == "torch" or reason_against("cpu") is None:
        return False
    # Of batches only a function for both devices, which computes with their arrays; users' functions get tensors.
    return compiled.form is not Form.BATCH or (not operator.is_serial and compiled.inner is kernel.inner)
