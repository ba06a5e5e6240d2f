"""String representation of tensors and tensor lists: the values, then one property per line.

Large arrays are abbreviated as in NumPy, long lists to their first and last samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_INDENT = "    "
_EDGE = 2  # items shown at each end of an abbreviated list
_MAX_ELEMENTS = 1000
_MAX_SHAPES = 16
_MAX_EXTENTS = 100
_MAX_WIDTH = 75


def format_tensor(obj: Any, show_data: bool = True, adapter: Any = None) -> str:
    """Return a tensor as a string.

    Args:
        obj: a TensorCPU or TensorGPU.
        show_data: include the values.
        adapter: accepted but ignored.
    """
    data = [np.array2string(_array(obj), prefix=_INDENT, edgeitems=_EDGE)] if show_data else []
    return _text(obj, [*data, *_properties(obj), f"shape={tuple(obj.shape())}"], _INDENT)


def format_batch(obj: Any, show_data: bool = True, indent: str = "", adapter: Any = None) -> str:
    """Return a tensor list as a string.

    Args:
        obj: a TensorListCPU or TensorListGPU.
        show_data: include the values.
        indent: prefix of all lines except the first.
        adapter: accepted but ignored.
    """
    indent += _INDENT
    shapes = [tuple(shape) for shape in obj.shape()]
    data = [_samples(obj, shapes, indent)] if show_data else []
    properties = [*_properties(obj), f"num_samples={len(obj)}", f"shape=[{_shapes(shapes, indent)}]"]
    return _text(obj, [*data, *properties], indent)


def _text(obj: Any, lines: list[str], indent: str) -> str:
    joined = f",\n{indent}".join(lines)
    return f"{type(obj).__name__}(\n{indent}{joined})"


def _properties(obj: Any) -> list[str]:
    layout = [f'layout="{obj.layout()}"'] if obj.layout() else []
    return [f"dtype={obj.dtype!s}", *layout, f'device="{obj.device}"']


def _array(tensor: Any) -> np.ndarray[Any, Any]:
    return np.asarray(tensor.as_cpu())


def _samples(obj: Any, shapes: Sequence[tuple[int, ...]], indent: str) -> str:
    if not shapes:
        return "[]"
    elements = sum(max(int(np.prod(shape)), 1) for shape in shapes)
    numbers = list(range(len(shapes)))
    is_cut = len(shapes) > 2 * _EDGE + 1 and elements > _MAX_ELEMENTS
    if is_cut:
        numbers = numbers[:_EDGE] + numbers[-_EDGE:]
    texts = [np.array2string(_array(obj[number]), prefix=indent, edgeitems=_EDGE) for number in numbers]
    if is_cut:
        texts.insert(_EDGE, "...")
    ndim = len(shapes[0])
    between = ", " if not ndim else ",\n" + "\n" * (ndim - 1) + indent
    return f"[{between.join(texts)}]"


def _shapes(shapes: Sequence[tuple[int, ...]], indent: str) -> str:
    texts = [str(shape) for shape in shapes]
    count = len(shapes)
    if count > _MAX_SHAPES or (count > 2 * _EDGE + 1 and count * len(shapes[0]) > _MAX_EXTENTS):
        texts = [*texts[:_EDGE], "...", *texts[-_EDGE:]]
    on_one_line = ", ".join(texts)
    between = ", \n" + indent + " " * len("shape=[")
    return on_one_line if len(on_one_line) <= _MAX_WIDTH else between.join(texts)
