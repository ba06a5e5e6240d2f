"""One of several operations for each sample, and the checks that all schemes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dalify.auto_aug.core._augmentation import Augmentation
from dalify.auto_aug.core._bins import SignedBin
from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.base.source_line import SourceLine
from dalify.frontend import is_rewritable, rewrite
from dalify.graph import DataNode, choose

__all__ = ["check_augmentations", "check_keywords", "select"]


def select(
    ops: Sequence[Callable[..., DataNode]], selected_op_idx: DataNode, *op_args: Any, **op_kwargs: Any
) -> DataNode:
    """Apply to each sample the operation that was chosen for it: ``ops[selected_op_idx](*op_args, **op_kwargs)``.

    Each operation works on its own samples only, all of them at once. Graph values among the arguments are split
    accordingly.

    Args:
        ops: augmentations or other functions of graph values that return one graph value.
        selected_op_idx: one integer per sample: 0 to the number of operations less one.
        op_args: positional arguments of the operations; the data come first.
        op_kwargs: named arguments of the operations.

    Returns:
        the samples in their order. All operations must give the same element type, dimensions and layout.

    Raises:
        ArgumentValueError: there is no operation; at run time, an index outside the range.
        ArgumentTypeError: the index is no graph value.

    Example:
        >>> which = fn.random.uniform(values=[0, 1], dtype=types.INT32)  # doctest: +SKIP
        >>> images = select([fn.flip, fn.gaussian_blur], which, images)  # doctest: +SKIP
    """
    if not ops:
        raise ArgumentValueError("select needs at least one operation.", line=SourceLine.capture())
    if not isinstance(selected_op_idx, DataNode):
        raise ArgumentTypeError(
            f"the index of the operation must be a graph value; got {selected_op_idx!r}.",
            line=SourceLine.capture(),
            hint="Draw it: fn.random.uniform(values=[0, 1], dtype=types.INT32); or call the operation itself.",
        )
    # Signs and bins go together once, for the whole batch, and not again in every branch.
    op_kwargs = {key: _combined(value) for key, value in op_kwargs.items()}
    return choose(selected_op_idx, [partial(_traced(op), *op_args, **op_kwargs) for op in ops])


def _combined(value: Any) -> Any:
    if not isinstance(value, SignedBin):
        return value
    return _Combined(value)


class _Combined(SignedBin):
    """A signed bin whose row in the table is computed already."""

    __slots__ = ("_row",)

    def __init__(self, parts: SignedBin) -> None:
        super().__init__(parts.bin, parts.random_sign)
        self._row = parts.signed_magnitude_idx

    @property
    def signed_magnitude_idx(self) -> DataNode:
        """Row in a table of magnitudes."""
        return self._row


def _traced(op: Callable[..., DataNode]) -> Callable[..., DataNode]:
    return rewrite(op) if not isinstance(op, Augmentation) and is_rewritable(op) else op


def check_augmentations(augmentations: Sequence[Augmentation]) -> None:
    """Raise where a list of augmentations is empty or holds something else.

    Raises:
        ArgumentValueError: it is empty.
        ArgumentTypeError: an item is no augmentation.
    """
    if not augmentations:
        raise ArgumentValueError("the list of augmentations is empty.", line=SourceLine.capture())
    for item in augmentations:
        if not isinstance(item, Augmentation):
            name = getattr(item, "__name__", repr(item))
            raise ArgumentTypeError(
                f"the list of augmentations holds {name}, which is none.",
                line=SourceLine.capture(),
                hint="Decorate a function (data, parameter) -> data with @augmentation.",
            )


def check_keywords(augmentations: Sequence[Augmentation], keywords: Mapping[str, Any], scheme: str) -> None:
    """Raise for a named argument that none of the augmentations has.

    Raises:
        ArgumentTypeError: there is one.
    """
    for keyword in keywords:
        if not any(item.takes(keyword) for item in augmentations):
            raise ArgumentTypeError(
                f"{scheme} got the argument {keyword!r}, which none of its augmentations has.",
                line=SourceLine.capture(),
            )
