"""Multiplies one axis of samples on the device by a matrix: filter banks and cosine transforms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dalify.base.optional import torch
from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.upload_torch import uploaded


def transform_axis_torch(
    out: DeviceSamples, x: DeviceSamples, axis: int, matrix_of: Callable[[int], np.ndarray]
) -> None:
    """Multiply one axis of samples by a matrix.

    Args:
        out: float32 samples with the extent K along the axis, output.
        x: float32 samples.
        axis: axis of a sample.
        matrix_of: function of the extent k of `x` along the axis, which returns the matrix, float32 [K, k]; K may
            depend on k.
    """
    lengths = x.shapes[:, axis]
    forms = [
        np.stack([samples.shapes[:, :axis].prod(1), samples.shapes[:, axis], samples.shapes[:, axis + 1 :].prod(1)], 1)
        for samples in (out, x)
    ]
    target, source = out.reshaped(forms[0]), x.reshaped(forms[1])
    matrices = {int(length): matrix_of(int(length)) for length in np.unique(lengths)}
    if len(matrices) == 1:
        _multiply(target, source, matrix=uploaded(matrices[int(lengths[0])], x.device)[None])
        return
    # The matrices are padded with 0, so that the padding of the samples has no effect.
    largest = np.max([matrix.shape for matrix in matrices.values()], axis=0)
    stacked = np.zeros((len(x), *largest), np.float32)
    for n, length in enumerate(lengths.tolist()):
        matrix = matrices[length]
        stacked[n, : matrix.shape[0], : matrix.shape[1]] = matrix
    _multiply_each(target, source, matrices=stacked)


@on_padded
def _multiply(out: torch.Tensor, x: torch.Tensor, *, matrix: torch.Tensor) -> None:
    torch.matmul(matrix[:, None], x, out=out)


@on_padded
def _multiply_each(out: torch.Tensor, x: torch.Tensor, *, matrices: np.ndarray) -> None:
    used = uploaded(matrices[:, : out.shape[2], : x.shape[2]], x.device)
    torch.matmul(used[:, None], x, out=out)
