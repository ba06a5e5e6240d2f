"""Imports the packages of optional frameworks, and shares memory by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import TargetShapeError
from dalify.base.optional import LazyModule, require
from dalify.data import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU, is_bfloat16, pageable, shared_tensor

__all__ = ["as_one_tensor", "by_dlpack", "framework", "of_equal_shape"]


def framework(package: str, plugin: str = "", install: str = "") -> Any:
    """Import a package and return the module.

    Args:
        package: import name.
        plugin: name of the plugin, below ``dalify.plugin``; by default the import name.
        install: name to install; by default dalify's extra with the import name.

    Raises:
        MissingPackageError: the package is not installed.
    """
    return require(LazyModule(package, f"dalify.plugin.{plugin or package}", install or f"dalify[{package}]"))


def as_one_tensor(source: TensorCPU | TensorGPU | TensorListCPU | TensorListGPU) -> TensorCPU | TensorGPU:
    """Return a tensor, or the samples of a tensor list as one."""
    return source.as_tensor() if isinstance(source, (TensorListCPU, TensorListGPU)) else source


def of_equal_shape(source: Any, target: Any) -> TensorCPU | TensorGPU:
    """Return a tensor, or the samples of a tensor list as one, to be copied into an array of a framework.

    Raises:
        TargetShapeError: the shapes differ.
    """
    if isinstance(source, (TensorListCPU, TensorListGPU)) and not source.is_dense_tensor():
        shapes = ", ".join(map(str, dict.fromkeys(source.shape())))
        raise TargetShapeError(
            f"samples of different shapes, {shapes}, cannot be copied into one tensor {tuple(target.shape)}.",
            hint="Make their shapes equal in the pipeline (fn.resize, fn.crop, fn.pad), or copy single samples.",
        )
    source = as_one_tensor(source)
    if list(target.shape) != list(source.shape()):
        raise TargetShapeError(
            f"the shapes differ: {tuple(source.shape())} cannot be copied into {tuple(target.shape)}."
        )
    return source


def by_dlpack(array: Any, aligned: int = 1) -> Any:
    """Return an object with DLPack support that shares the memory if possible, otherwise a copy.

    Args:
        array: a NumPy array, or a torch tensor on a device, which is returned unchanged.
        aligned: required alignment of the address in bytes.
    """
    if not isinstance(array, np.ndarray):
        return array
    if not array.flags.writeable or not array.flags.c_contiguous or array.ctypes.data % aligned:
        copy = pageable(array.nbytes).view(array.dtype).reshape(array.shape)
        copy[...] = array
        array = copy
    return shared_tensor(array) if is_bfloat16(array.dtype) else array  # DLPack supports bfloat16, NumPy does not
