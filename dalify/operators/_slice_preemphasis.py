"""Filter a slice of audio, which is not copied.

The pass ``fuse`` inserts it; users do not call it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.audio.preemphasis import preemphasis
from dalify.operators.slice import slice_windows
from dalify.parameter_groups.slicing import SliceCoordinates
from dalify.registry import PerSample, Spec, operator


@operator
def _slice_preemphasis(
    data: Spec,
    anchor: Spec | None = None,
    shape_input: Spec | None = None,
    /,
    *,
    axes: PerSample[list[int]] | None = None,
    border: str = "clamp",
    dtype: DALIDataType = DALIDataType.FLOAT,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    preemph_coeff: PerSample[float] = 0.97,
) -> Spec:
    """Extract a slice of each sample and subtract a fraction of the previous element from each element.

    Args:
        data: one-dimensional samples.
        anchor: see ``slice``.
        shape_input: see ``slice``.
        axes: see ``slice``.
        border: see ``preemphasis_filter``.
        dtype: see ``preemphasis_filter``.
        normalized_anchor: see ``slice``.
        normalized_shape: see ``slice``.
        preemph_coeff: see ``preemphasis_filter``.

    Returns:
        dtype `dtype`, extents of the slice.
    """
    return data.replace(dtype=dtype)


@_slice_preemphasis.prepare
def _(
    data: Batch,
    anchor: Batch | None,
    shape_input: Batch | None,
    *,
    spec: Spec,
    axes: np.ndarray | None,
    normalized_anchor: bool,
    normalized_shape: bool,
    count: int,
) -> dict[str, Any]:
    return slice_windows(
        data,
        anchor,
        shape_input,
        spec=spec,
        axes=axes,
        coordinates=SliceCoordinates(),
        normalized_anchor=normalized_anchor,
        normalized_shape=normalized_shape,
        count=count,
    )


@_slice_preemphasis.cpu_samples
def _(
    out: Samples,
    data: Samples,
    anchor: Samples | None,
    shape_input: Samples | None,
    *,
    border: str,
    preemph_coeff: np.ndarray,
    starts: np.ndarray,
) -> None:
    preemphasis(out, data.window(starts, out.shapes), preemph_coeff, border)  # a slice of one dimension is contiguous
