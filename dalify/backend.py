"""What users take from DALI's compiled part: tensors, schemas of operators, and the functions about memory and devices.

Memory is kept in pools per pipeline and grows by what is needed, so that the functions about memory have nothing to
set; they keep and give back what programs set once at their start.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from enum import IntEnum
from typing import Any

from dalify import tfrecord, types
from dalify.base.deprecation import warn_deprecated
from dalify.base.errors import ArgumentValueError, UnknownOperatorError
from dalify.base.optional import LazyModule, torch
from dalify.base.source_line import SourceLine
from dalify.data.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU
from dalify.plugin_manager import load_directory, load_library
from dalify.registry.op_spec import OpSpec
from dalify.registry.schema import OpSchema, get_schema, registered

__all__ = [
    "CUDAStreamSynchronize",
    "CheckDLPackCapsule",
    "DLDeviceType",
    "GetCUDACurrentDevice",
    "GetCUDADeviceCount",
    "GetCUDAStreamDevice",
    "GetCudaVersion",
    "GetDeviceBufferGrowthFactor",
    "GetHostBufferGrowthFactor",
    "GetHostBufferShrinkThreshold",
    "GetOpenCVVersion",
    "GetSchema",
    "IsDriverInitialized",
    "LoadDirectory",
    "LoadLibrary",
    "OpSchema",
    "OpSpec",
    "PreallocateDeviceMemory",
    "PreallocatePinnedMemory",
    "RegisteredCPUOps",
    "RegisteredGPUOps",
    "RegisteredMixedOps",
    "ReleaseUnusedMemory",
    "RestrictPinnedMemUsage",
    "SetBufferGrowthFactor",
    "SetCUDACurrentDevice",
    "SetDeviceBufferGrowthFactor",
    "SetHostBufferGrowthFactor",
    "SetHostBufferShrinkThreshold",
    "TensorCPU",
    "TensorGPU",
    "TensorListCPU",
    "TensorListGPU",
    "TryGetSchema",
    "check_cuda_runtime",
    "deprecation_warning",
    "tfrecord",
    "types",
]

_cv2 = LazyModule("cv2", "the version of OpenCV")
_growth = {"host": 1.1, "device": 1.1, "shrink": 0.5}
_DLPACK_DEVICE_OFFSET = 8  # of DLTensor, behind the address of the data
_CUDA = 2

# All functions have DALI's names.
# ruff: noqa: N802


class DLDeviceType(IntEnum):
    """Where an array lies, in the numbers of DLPack."""

    kDLCPU = 1  # noqa: N815 -- DLPack's names
    kDLCUDA = 2  # noqa: N815
    kDLCUDAHost = 3  # noqa: N815
    kDLOpenCL = 4  # noqa: N815
    kDLVulkan = 7  # noqa: N815
    kDLMetal = 8  # noqa: N815
    kDLVPI = 9  # noqa: N815
    kDLROCM = 10  # noqa: N815
    kDLROCMHost = 11  # noqa: N815
    kDLExtDev = 12  # noqa: N815
    kDLCUDAManaged = 13  # noqa: N815
    kDLOneAPI = 14  # noqa: N815
    kDLWebGPU = 15  # noqa: N815
    kDLHexagon = 16  # noqa: N815
    kDLMAIA = 17  # noqa: N815


# -- operators ---------------------------------------------------------------------------------------------------------


def GetSchema(name: str, follow_aliases: bool = False) -> OpSchema:
    """Return what an operator takes.

    Args:
        name: of its class, with the modules before it: ``Resize``, ``readers__File``; old names are known, too.
        follow_aliases: accepted.

    Raises:
        UnknownOperatorError: there is no such operator; it is a KeyError.
    """
    return get_schema(name)


def TryGetSchema(name: str, follow_aliases: bool = False) -> OpSchema | None:
    """Return what an operator takes; None where there is no such operator. Arguments are those of ``GetSchema``."""
    try:
        return get_schema(name)
    except UnknownOperatorError:
        return None


def RegisteredCPUOps(internal_ops: bool = False) -> list[str]:
    """Return the schema names of all operators that run on the CPU.

    Args:
        internal_ops: also those that only dalify itself uses.
    """
    return registered("cpu", internal_ops)


def RegisteredGPUOps(internal_ops: bool = False) -> list[str]:
    """Return the schema names of all operators that run on the GPU; see ``RegisteredCPUOps``."""
    return registered("gpu", internal_ops)


def RegisteredMixedOps(internal_ops: bool = False) -> list[str]:
    """Return the schema names of all operators with inputs on the CPU and outputs on the GPU."""
    return registered("mixed", internal_ops)


def LoadLibrary(lib_path: str, global_symbols: bool = False, allow_fail: bool = False) -> None:
    """Refuse a compiled plugin, see ``plugin_manager.load_library``.

    Args:
        lib_path: the plugin.
        global_symbols: as in DALI.
        allow_fail: do nothing instead.
    """
    if not allow_fail:
        load_library(lib_path, global_symbols)


def LoadDirectory(dir_path: str, global_symbols: bool = False, allow_fail: bool = False) -> None:
    """Refuse a folder of compiled plugins, see ``LoadLibrary``."""
    if not allow_fail:
        load_directory(dir_path, global_symbols)


# -- memory ------------------------------------------------------------------------------------------------------------


def ReleaseUnusedMemory() -> None:
    """Give back what nobody uses: pipelines that are gone, and the device memory that torch keeps in reserve."""
    gc.collect()
    if "torch" in sys.modules and torch.cuda.is_available():
        torch.cuda.empty_cache()


def PreallocateDeviceMemory(bytes: int, device_id: int) -> None:
    """Do nothing: torch allocates device memory, once, when it is first needed.

    Args:
        bytes: as in DALI.
        device_id: as in DALI.
    """


def PreallocatePinnedMemory(bytes: int) -> None:
    """Do nothing: pinned memory is allocated when it is first needed, and kept.

    Args:
        bytes: as in DALI.
    """


def RestrictPinnedMemUsage() -> bool:
    """Return False: the use of pinned memory is not restricted."""
    return False


def GetHostBufferShrinkThreshold() -> float:
    """Return what ``SetHostBufferShrinkThreshold`` set."""
    return _growth["shrink"]


def SetHostBufferShrinkThreshold(threshold: float, /) -> None:
    """Keep the number; it has no effect: buffers have the size of a batch, and nothing shrinks.

    Args:
        threshold: 0 to 1.

    Raises:
        ArgumentValueError: out of range.
    """
    _set(threshold, 0, 1, "shrink")


def GetHostBufferGrowthFactor() -> float:
    """Return what ``SetHostBufferGrowthFactor`` set."""
    return _growth["host"]


def SetHostBufferGrowthFactor(factor: float, /) -> None:
    """Keep the number; it has no effect: buffers have the size of a batch.

    Args:
        factor: 1 to 4.

    Raises:
        ArgumentValueError: out of range.
    """
    _set(factor, 1, 4, "host")


def GetDeviceBufferGrowthFactor() -> float:
    """Return what ``SetDeviceBufferGrowthFactor`` set."""
    return _growth["device"]


def SetDeviceBufferGrowthFactor(factor: float, /) -> None:
    """Keep the number; it has no effect: torch allocates device memory. See ``SetHostBufferGrowthFactor``."""
    _set(factor, 1, 4, "device")


def SetBufferGrowthFactor(factor: float, /) -> None:
    """Keep the number for host and device, see the two above."""
    _set(factor, 1, 4, "host", "device")


def _set(value: float, low: float, high: float, *names: str) -> None:
    if not low <= value <= high:
        raise ArgumentValueError(f"the factor must be from {low} to {high}; got {value}.", line=SourceLine.capture())
    _growth.update(dict.fromkeys(names, float(value)))


# -- devices -----------------------------------------------------------------------------------------------------------


def GetCUDADeviceCount() -> int:
    """Return the number of CUDA devices that torch finds."""
    return torch.cuda.device_count()


def GetCUDACurrentDevice() -> int:
    """Return the number of torch's current CUDA device."""
    return torch.cuda.current_device()


def SetCUDACurrentDevice(device_id: int, /) -> None:
    """Make a CUDA device torch's current one."""
    torch.cuda.set_device(device_id)


def CUDAStreamSynchronize(stream: Any, /) -> None:
    """Wait until all work of a CUDA stream is done.

    Args:
        stream: its address, or an object with ``ptr``.
    """
    torch.cuda.ExternalStream(int(getattr(stream, "ptr", stream))).synchronize()


def GetCUDAStreamDevice(stream: Any, /) -> int:
    """Return the number of the device of a CUDA stream; see ``CUDAStreamSynchronize``."""
    return torch.cuda.ExternalStream(int(getattr(stream, "ptr", stream))).device_index


def IsDriverInitialized() -> bool:
    """Tell whether torch has initialized CUDA."""
    return "torch" in sys.modules and torch.cuda.is_initialized()


def GetCudaVersion() -> int:
    """Return torch's CUDA version as a number, 12090 for 12.9; 0 where torch finds no CUDA device."""
    return _cuda_number("0") if torch.cuda.is_available() else 0


def GetOpenCVVersion() -> str:
    """Return the version of OpenCV."""
    return _cv2.__version__


def check_cuda_runtime() -> None:
    """Do nothing: what needs a device says so when it is missing."""


def CheckDLPackCapsule(ptr: object) -> tuple[bool, bool]:
    """Tell whether an object is a DLPack capsule that nobody has used yet, and whether its data lie on a CUDA device.

    Args:
        ptr: any object.
    """
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes, is_valid.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
    if not is_valid(ptr, b"dltensor"):
        return False, False
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    kind = ctypes.c_int32.from_address(pointer(ptr, b"dltensor") + _DLPACK_DEVICE_OFFSET).value
    return True, kind == _CUDA


def deprecation_warning(what: str) -> None:
    """Warn at the user's line that something will go away.

    Args:
        what: the text.
    """
    warn_deprecated(what)


def _cuda_number(digits: str = "") -> int:
    """Return 129 for CUDA 12.9, of which torch was built, with further digits behind it; 0 without CUDA."""
    return int(str(torch.version.cuda).replace(".", "") + digits) if torch.version.cuda else 0


def __getattr__(name: str) -> Any:
    if name == "__cuda_version__":  # asked of torch, which takes long to load
        return _cuda_number()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
