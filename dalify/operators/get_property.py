"""Metadata of samples: their source and their layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import check_option
from dalify.data import Batch, DALIDataType
from dalify.data.origin import source_info
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.registry import Spec, operator

_KEYS = ("source_info", "layout")


@operator
def get_property(x: Spec, /, *, key: str) -> Spec:
    """Return metadata of each sample as an encoded string.

    Args:
        x: any data.
        key: ``source_info``: the source of the sample, e.g. the path of the file relative to ``file_root`` (empty if
            unknown); ``layout``: the layout of the data.

    Returns:
        UINT8, one dimension: the string in UTF-8.

    Raises:
        ArgumentValueError: an unknown key.

    Example:
        >>> names = fn.get_property(jpegs, key="source_info")  # doctest: +SKIP
    """
    check_option("key", key, _KEYS)
    return Spec(DALIDataType.UINT8, 1, "")


def _encoded_sources(x: Batch) -> list[np.ndarray]:
    values = [source_info(origin) or "" for origin in x.origins] if x.origins is not None else [""] * len(x)
    return [np.frombuffer(value.encode(errors="surrogateescape"), np.uint8).copy() for value in values]


def _encoded_layouts(x: Batch) -> np.ndarray:
    layout = np.frombuffer(x.layout.encode(), np.uint8)
    layouts = np.empty((len(x), len(layout)), np.uint8)
    layouts[:] = layout
    return layouts


@get_property.cpu_batch
def _(x: Batch, *, key: str) -> Any:
    return _encoded_layouts(x) if key == "layout" else _encoded_sources(x)


@get_property.gpu_batch
def _(x: Batch, *, key: str) -> Any:
    device = x.torch_device
    if key == "layout":
        return uploaded(_encoded_layouts(x), device)
    values = _encoded_sources(x)
    shapes = np.array([[len(value)] for value in values], np.int64)
    ragged = uploaded(np.concatenate(values), device), np.cumsum(shapes) - shapes[:, 0], shapes
    return Batch(None, None, "", "gpu", x.origins, DALIDataType.UINT8, ragged)
