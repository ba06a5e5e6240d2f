"""Selects the class of the step for an operator by the form of its kernel."""

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
# Without views, which need no CPU kernel.
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
    """Return the class of the step that calls the kernel of an operator.

    In emulation, it calls the CPU kernel if possible. The environment variable ``DALIFY_EMULATED_KERNELS=torch`` and
    Triton's interpreter select the kernels of the accelerator.

    Args:
        operator: the operator.
        device: device of the node.
        is_emulated: True if torch's CPU device emulates an accelerator.
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
    """Return whether the CPU kernel can be called with the memory of tensors of the emulated device."""
    if os.environ.get(_VARIABLE) == "torch" or reason_against("cpu") is None:
        return False
    # For batches, only a function for both devices, which uses their arrays; users' functions are called with tensors.
    return compiled.form is not Form.BATCH or (not operator.is_serial and compiled.inner is kernel.inner)
