"""How tensors and lists of tensors are printed: the values, then what is known about them, one fact per line.

Large arrays are shortened as NumPy shortens them, long lists to their first and last samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["format_batch", "format_tensor"]

_INDENT = "    "
_EDGE = 2  # items that are shown at each end of what is shortened
_MANY_ELEMENTS = 1000
_MANY_SHAPES = 16
_LONG_SHAPES = 100
_WIDE = 75


def format_tensor(obj: Any, show_data: bool = True, adapter: Any = None) -> str:
    """Return a tensor as text.

    Args:
        obj: a TensorCPU or TensorGPU.
        show_data: show the values.
        adapter: accepted.
    """
    data = [np.array2string(_array(obj), prefix=_INDENT, edgeitems=_EDGE)] if show_data else []
    return _text(obj, [*data, *_facts(obj), f"shape={tuple(obj.shape())}"], _INDENT)


def format_batch(obj: Any, show_data: bool = True, indent: str = "", adapter: Any = None) -> str:
    """Return a list of tensors as text.

    Args:
        obj: a TensorListCPU or TensorListGPU.
        show_data: show the values.
        indent: what all lines but the first begin with.
        adapter: accepted.
    """
    indent += _INDENT
    shapes = [tuple(shape) for shape in obj.shape()]
    data = [_samples(obj, shapes, indent)] if show_data else []
    facts = [*_facts(obj), f"num_samples={len(obj)}", f"shape=[{_shapes(shapes, indent)}]"]
    return _text(obj, [*data, *facts], indent)


def _text(obj: Any, lines: list[str], indent: str) -> str:
    joined = f",\n{indent}".join(lines)
    return f"{type(obj).__name__}(\n{indent}{joined})"


def _facts(obj: Any) -> list[str]:
    layout = [f'layout="{obj.layout()}"'] if obj.layout() else []
    return [f"dtype={obj.dtype!s}", *layout, f'device="{obj.device}"']


def _array(tensor: Any) -> np.ndarray[Any, Any]:
    return np.asarray(tensor.as_cpu())


def _samples(obj: Any, shapes: Sequence[tuple[int, ...]], indent: str) -> str:
    if not shapes:
        return "[]"
    elements = sum(max(int(np.prod(shape)), 1) for shape in shapes)
    numbers = list(range(len(shapes)))
    is_cut = len(shapes) > 2 * _EDGE + 1 and elements > _MANY_ELEMENTS
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
    if count > _MANY_SHAPES or (count > 2 * _EDGE + 1 and count * len(shapes[0]) > _LONG_SHAPES):
        texts = [*texts[:_EDGE], "...", *texts[-_EDGE:]]
    on_one_line = ", ".join(texts)
    between = ", \n" + indent + " " * len("shape=[")
    return on_one_line if len(on_one_line) <= _WIDE else between.join(texts)
