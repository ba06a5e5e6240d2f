"""Per-sample selection of operations, and checks that all schemes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dalify.auto_aug.core._augmentation import Augmentation
from dalify.auto_aug.core._bins import SignedBin
from dalify.base.errors import ArgumentTypeError, ArgumentValueError
from dalify.frontend import is_rewritable, rewrite
from dalify.graph import DataNode, choose


def select(
    ops: Sequence[Callable[..., DataNode]], selected_op_idx: DataNode, *op_args: Any, **op_kwargs: Any
) -> DataNode:
    """Apply the selected operation to each sample: ``ops[selected_op_idx](*op_args, **op_kwargs)``.

    Each operation processes its samples together. Graph values among the arguments are split accordingly.

    Args:
        ops: augmentations or other functions of graph values that return one graph value.
        selected_op_idx: one integer per sample: 0 to the number of operations - 1.
        op_args: positional arguments of the operations; the data comes first.
        op_kwargs: keyword arguments of the operations.

    Returns:
        the samples in their original order. All operations must return the same element type, number of dimensions and
        layout.

    Raises:
        ArgumentValueError: no operations; at run time, an index out of range.
        ArgumentTypeError: the index is not a graph value.

    Example:
        >>> which = fn.random.uniform(values=[0, 1], dtype=types.INT32)  # doctest: +SKIP
        >>> images = select([fn.flip, fn.gaussian_blur], which, images)  # doctest: +SKIP
    """
    if not ops:
        raise ArgumentValueError.here("select requires at least one operation.")
    if not isinstance(selected_op_idx, DataNode):
        raise ArgumentTypeError.here(
            f"selected_op_idx must be a graph value; got {selected_op_idx!r}.",
            hint="For example fn.random.uniform(values=[0, 1], dtype=types.INT32); or call the operation directly.",
        )
    # Signs and bins are combined once for the whole batch, not in every branch.
    op_kwargs = {
        name: replace(value, row=value.signed_magnitude_idx) if isinstance(value, SignedBin) else value
        for name, value in op_kwargs.items()
    }
    return choose(selected_op_idx, [partial(_rewritten(op), *op_args, **op_kwargs) for op in ops])


def _rewritten(op: Callable[..., DataNode]) -> Callable[..., DataNode]:
    return rewrite(op) if not isinstance(op, Augmentation) and is_rewritable(op) else op


def check_augmentations(augmentations: Sequence[Augmentation]) -> None:
    """Raise if a list of augmentations is empty or contains other objects.

    Raises:
        ArgumentValueError: the list is empty.
        ArgumentTypeError: an item is not an augmentation.
    """
    if not augmentations:
        raise ArgumentValueError.here("the list of augmentations must not be empty.")
    for item in augmentations:
        if not isinstance(item, Augmentation):
            name = getattr(item, "__name__", repr(item))
            raise ArgumentTypeError.here(
                f"the list of augmentations contains {name}, which is not an augmentation.",
                hint="Decorate a function (data, parameter) -> data with @augmentation.",
            )


def check_keywords(augmentations: Sequence[Augmentation], keywords: Mapping[str, Any], scheme: str) -> None:
    """Raise for a keyword argument that no augmentation accepts.

    Raises:
        ArgumentTypeError: there is such an argument.
    """
    for keyword in keywords:
        if not any(item.takes(keyword) for item in augmentations):
            raise ArgumentTypeError.here(f"{scheme} got the argument {keyword!r}, which no augmentation accepts.")
