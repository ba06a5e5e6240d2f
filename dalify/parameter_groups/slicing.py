"""The coordinates of a slice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError
from dalify.data import Batch, moved
from dalify.registry import Parameters, PerSample, Spec


@dataclass(slots=True)
class SliceCoordinates(Parameters):
    """Start and end or extents of a slice, in elements or as fractions of the extents of the data.

    Attributes:
        start: start of the slice, in elements.
        rel_start: start of the slice, as fractions of the extents.
        end: end of the slice, in elements.
        rel_end: end of the slice, as fractions of the extents.
        shape: extents of the slice, in elements.
        rel_shape: extents of the slice, as fractions of the extents.
    """

    start: PerSample[list[int]] | None = None
    rel_start: PerSample[list[float]] | None = None
    end: PerSample[list[int]] | None = None
    rel_end: PerSample[list[float]] | None = None
    shape: PerSample[list[int]] | None = None
    rel_shape: PerSample[list[float]] | None = None

    def check(self, anchor: Spec | None, shape: Spec | None, *, what: str, hint: str) -> None:
        """Check that start and end are specified in one way each.

        Args:
            anchor: the input that specifies the start; None without it.
            shape: the input that specifies the extents.
            what: the slice, in messages.
            hint: an example, if nothing is specified.

        Raises:
            ArgumentValueError: contradictory arguments, or none.
        """
        if (anchor is None) != (shape is None):
            raise ArgumentValueError("the inputs anchor and shape must be specified together.")
        starts, ends = (
            [name for name in names if getattr(self, name) is not None]
            for names in (("start", "rel_start"), ("end", "rel_end", "shape", "rel_shape"))
        )
        if anchor is not None and starts + ends:
            raise ArgumentValueError(f"{', '.join(starts + ends)} cannot be combined with the inputs anchor and shape.")
        if anchor is None and not starts + ends:
            raise ArgumentValueError(f"{what} is not specified.", hint=hint)
        for names in (starts, ends):
            if len(names) > 1:
                raise ArgumentValueError(f"{' and '.join(names)} are mutually exclusive.")

    def values(
        self, anchor: Batch | None, shape: Batch | None, *, normalized_anchor: bool, normalized_shape: bool
    ) -> dict[str, np.ndarray | None]:
        """Return the coordinates of a kernel by name, ``[N, k]``; None for those that are empty or not specified.

        Args:
            anchor: the input that specifies the start; None without it.
            shape: the input that specifies the extents.
            normalized_anchor: whether a floating-point `anchor` is in fractions of the extents, not in elements.
            normalized_shape: the same for `shape`.
        """
        names = ("start", "rel_start", "end", "rel_end", "shape", "rel_shape")
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        for name, batch, is_normalized in (("start", anchor, normalized_anchor), ("shape", shape, normalized_shape)):
            if batch is not None:
                values = np.asarray(moved(batch, "cpu").stacked())
                name = f"rel_{name}" if batch.dtype.is_float and is_normalized else name
                found[name] = values.reshape(len(values), -1)  # a scalar is valid for a single axis
        return {name: None if _is_empty(values) else values for name, values in found.items()}


def _is_empty(values: Any) -> bool:
    return isinstance(values, np.ndarray) and not values.shape[-1]
