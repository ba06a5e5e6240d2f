"""Converts outputs of a pipeline to MXNet arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.plugin.frameworks import by_dlpack, framework, of_equal_shape

mxnet = framework("mxnet", install="mxnet")


def as_mxnet(array: Any) -> Any:
    """Return an MXNet array that shares the memory if possible."""
    if isinstance(array, np.ndarray):
        return mxnet.nd.from_numpy(by_dlpack(array), zero_copy=True)
    return mxnet.nd.from_dlpack(array.__dlpack__())


def feed_ndarray(dali_tensor: Any, arr: Any, cuda_stream: Any = None) -> Any:
    """Copy a tensor of a pipeline, or a list of samples of equal shapes, into an MXNet array.

    Args:
        dali_tensor: the source.
        arr: the destination, of the same shape.
        cuda_stream: accepted but ignored.

    Returns:
        ``arr``.

    Raises:
        TargetShapeError: the shapes differ.
    """
    arr[:] = np.asarray(of_equal_shape(dali_tensor, arr).as_cpu())
    return arr
