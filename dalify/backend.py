"""What users take from DALI's compiled part: tensors, and the functions about memory.

Memory is kept in pools per pipeline and grows by what is needed, so that most of these functions have nothing to set;
they are accepted, as programs call them once at their start.
"""

from __future__ import annotations

import gc
import sys

from dalify.base.optional import torch
from dalify.data.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU

__all__ = [
    "PreallocateDeviceMemory",
    "PreallocatePinnedMemory",
    "ReleaseUnusedMemory",
    "SetBufferGrowthFactor",
    "SetDeviceBufferGrowthFactor",
    "SetHostBufferGrowthFactor",
    "SetHostBufferShrinkThreshold",
    "TensorCPU",
    "TensorGPU",
    "TensorListCPU",
    "TensorListGPU",
]


def ReleaseUnusedMemory() -> None:  # noqa: N802 -- DALI's name, here and below
    """Give back what nobody uses: pipelines that are gone, and the device memory that torch keeps in reserve."""
    gc.collect()
    if "torch" in sys.modules and torch.cuda.is_available():
        torch.cuda.empty_cache()


def PreallocateDeviceMemory(bytes: int, device_id: int) -> None:  # noqa: N802
    """Do nothing: torch allocates device memory, once, when it is first needed.

    Args:
        bytes: as in DALI.
        device_id: as in DALI.
    """


def PreallocatePinnedMemory(bytes: int) -> None:  # noqa: N802
    """Do nothing: pinned memory is allocated when it is first needed, and kept.

    Args:
        bytes: as in DALI.
    """


def SetHostBufferShrinkThreshold(threshold: float) -> None:  # noqa: N802
    """Do nothing: buffers have the size of a batch, and nothing shrinks.

    Args:
        threshold: as in DALI.
    """


def SetHostBufferGrowthFactor(factor: float) -> None:  # noqa: N802
    """Do nothing: buffers have the size of a batch.

    Args:
        factor: as in DALI.
    """


def SetDeviceBufferGrowthFactor(factor: float) -> None:  # noqa: N802
    """Do nothing: torch allocates device memory.

    Args:
        factor: as in DALI.
    """


def SetBufferGrowthFactor(factor: float) -> None:  # noqa: N802
    """Do nothing, see the two above.

    Args:
        factor: as in DALI.
    """
