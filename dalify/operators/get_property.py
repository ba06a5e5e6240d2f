"""Notes that travel with samples: where they came from, and their layout."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ArgumentValueError, option_error_text
from dalify.base.optional import torch
from dalify.data.dtypes import DALIDataType
from dalify.data.origin import source_info
from dalify.registry import Spec, operator

_KEYS = ("source_info", "layout")


@operator(batchwise=True)
def get_property(x: Spec, /, *, key: str) -> Spec:
    """Return a note on each sample as a text, in bytes.

    Args:
        x: any data.
        key: ``source_info``: where the sample came from, e.g. the file's path below ``file_root`` (empty where nobody
            noted it); ``layout``: letters of its dimensions.

    Returns:
        UINT8, one dimension: the text in UTF-8.

    Raises:
        ArgumentValueError: no such key.

    Example:
        >>> names = fn.get_property(jpegs, key="source_info")  # doctest: +SKIP
    """
    if key not in _KEYS:
        raise ArgumentValueError(option_error_text("key", key, _KEYS))
    return Spec(DALIDataType.UINT8, 1, "")


def _texts(x, key):
    if key == "layout":
        texts = [x.layout] * len(x)
    else:
        texts = [source_info(origin) or "" for origin in x.origins] if x.origins is not None else [""] * len(x)
    return [np.frombuffer(text.encode(errors="surrogateescape"), np.uint8).copy() for text in texts]


@get_property.cpu
def _(x, *, key):
    return _texts(x, key)


@get_property.gpu
def _(x, *, key):
    device = (x.dense if x.dense is not None else x.samples[0]).device
    return [torch.tensor(text, device=device) for text in _texts(x, key)]
