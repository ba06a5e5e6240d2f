"""The public part of DALI's backend: tensors, operator schemas, and functions for memory and devices.

Each pipeline has memory pools that grow on demand, so settings for memory have no effect; they are only stored.
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
_DLPACK_DEVICE_OFFSET = 8  # offset of the device in DLTensor, after the data pointer
_CUDA = 2

# All functions have DALI's names, and devices those of DLPack.
# ruff: noqa: N802, N815


class DLDeviceType(IntEnum):
    """DLPack device types."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


# -- operators ---------------------------------------------------------------------------------------------------------


def GetSchema(name: str, follow_aliases: bool = False) -> OpSchema:
    """Return the schema of an operator.

    Args:
        name: class name with its modules: ``Resize``, ``readers__File``; deprecated names are supported.
        follow_aliases: accepted but ignored.

    Raises:
        UnknownOperatorError: there is no such operator; a subclass of KeyError.
    """
    return get_schema(name)


def TryGetSchema(name: str, follow_aliases: bool = False) -> OpSchema | None:
    """Return the schema of an operator, or None if there is no such operator; see ``GetSchema``."""
    try:
        return get_schema(name)
    except UnknownOperatorError:
        return None


def RegisteredCPUOps(internal_ops: bool = False) -> list[str]:
    """Return the schema names of all operators that run on the CPU.

    Args:
        internal_ops: include operators for internal use.
    """
    return registered("cpu", internal_ops)


def RegisteredGPUOps(internal_ops: bool = False) -> list[str]:
    """Return the schema names of all operators that run on the GPU; see ``RegisteredCPUOps``."""
    return registered("gpu", internal_ops)


def RegisteredMixedOps(internal_ops: bool = False) -> list[str]:
    """Return the schema names of all operators with inputs on the CPU and outputs on the GPU."""
    return registered("mixed", internal_ops)


def LoadLibrary(lib_path: str, global_symbols: bool = False, allow_fail: bool = False) -> None:
    """Raise: compiled plugins are not supported, see ``plugin_manager.load_library``.

    Args:
        lib_path: path of the plugin.
        global_symbols: as in DALI.
        allow_fail: do nothing instead of raising.
    """
    if not allow_fail:
        load_library(lib_path, global_symbols)


def LoadDirectory(dir_path: str, global_symbols: bool = False, allow_fail: bool = False) -> None:
    """Raise: compiled plugins are not supported, see ``LoadLibrary``."""
    if not allow_fail:
        load_directory(dir_path, global_symbols)


# -- memory ------------------------------------------------------------------------------------------------------------


def ReleaseUnusedMemory() -> None:
    """Release unused memory: of deleted pipelines, and the device memory cached by torch."""
    gc.collect()
    if "torch" in sys.modules and torch.cuda.is_available():
        torch.cuda.empty_cache()


def PreallocateDeviceMemory(bytes: int, device_id: int) -> None:
    """Do nothing: torch allocates device memory on demand.

    Args:
        bytes: as in DALI.
        device_id: as in DALI.
    """


def PreallocatePinnedMemory(bytes: int) -> None:
    """Do nothing: pinned memory is allocated on demand and reused.

    Args:
        bytes: as in DALI.
    """


def RestrictPinnedMemUsage() -> bool:
    """Return False: the use of pinned memory is not restricted."""
    return False


def GetHostBufferShrinkThreshold() -> float:
    """Return the value of ``SetHostBufferShrinkThreshold``."""
    return _growth["shrink"]


def SetHostBufferShrinkThreshold(threshold: float, /) -> None:
    """Store the value. It has no effect, since buffers have the size of a batch and do not shrink.

    Args:
        threshold: 0 to 1.

    Raises:
        ArgumentValueError: the value is out of range.
    """
    _set(threshold, 0, 1, "shrink")


def GetHostBufferGrowthFactor() -> float:
    """Return the value of ``SetHostBufferGrowthFactor``."""
    return _growth["host"]


def SetHostBufferGrowthFactor(factor: float, /) -> None:
    """Store the value. It has no effect, since buffers have the size of a batch.

    Args:
        factor: 1 to 4.

    Raises:
        ArgumentValueError: the value is out of range.
    """
    _set(factor, 1, 4, "host")


def GetDeviceBufferGrowthFactor() -> float:
    """Return the value of ``SetDeviceBufferGrowthFactor``."""
    return _growth["device"]


def SetDeviceBufferGrowthFactor(factor: float, /) -> None:
    """Store the value. It has no effect, since torch allocates device memory. See ``SetHostBufferGrowthFactor``."""
    _set(factor, 1, 4, "device")


def SetBufferGrowthFactor(factor: float, /) -> None:
    """Store the value for host and device buffers."""
    _set(factor, 1, 4, "host", "device")


def _set(value: float, low: float, high: float, *names: str) -> None:
    if not low <= value <= high:
        raise ArgumentValueError.here(f"the value must be between {low} and {high}; got {value}.")
    _growth.update(dict.fromkeys(names, float(value)))


# -- devices -----------------------------------------------------------------------------------------------------------


def GetCUDADeviceCount() -> int:
    """Return the number of CUDA devices that torch finds."""
    return torch.cuda.device_count()


def GetCUDACurrentDevice() -> int:
    """Return the index of torch's current CUDA device."""
    return torch.cuda.current_device()


def SetCUDACurrentDevice(device_id: int, /) -> None:
    """Set torch's current CUDA device."""
    torch.cuda.set_device(device_id)


def CUDAStreamSynchronize(stream: Any, /) -> None:
    """Wait until all work of a CUDA stream is done.

    Args:
        stream: address of the stream, or an object with ``ptr``.
    """
    torch.cuda.ExternalStream(int(getattr(stream, "ptr", stream))).synchronize()


def GetCUDAStreamDevice(stream: Any, /) -> int:
    """Return the index of the device of a CUDA stream; see ``CUDAStreamSynchronize``."""
    return torch.cuda.ExternalStream(int(getattr(stream, "ptr", stream))).device_index


def IsDriverInitialized() -> bool:
    """Return whether torch has initialized CUDA."""
    return "torch" in sys.modules and torch.cuda.is_initialized()


def GetCudaVersion() -> int:
    """Return torch's CUDA version as a number, 12090 for 12.9; 0 if torch finds no CUDA device."""
    return _cuda_number("0") if torch.cuda.is_available() else 0


def GetOpenCVVersion() -> str:
    """Return the version of OpenCV."""
    return _cv2.__version__


def check_cuda_runtime() -> None:
    """Do nothing: functions that require a device raise an error if it is missing."""


def CheckDLPackCapsule(ptr: object) -> tuple[bool, bool]:
    """Return whether an object is an unconsumed DLPack capsule, and whether its data is on a CUDA device.

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
    """Emit a deprecation warning at the line of the user.

    Args:
        what: the message.
    """
    warn_deprecated(what)


def _cuda_number(digits: str = "") -> int:
    """Return 129, followed by `digits`, if torch was built for CUDA 12.9; 0 without CUDA."""
    return int(str(torch.version.cuda).replace(".", "") + digits) if torch.version.cuda else 0


def __getattr__(name: str) -> Any:
    if name == "__cuda_version__":  # lazy, since importing torch is slow
        return _cuda_number()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
