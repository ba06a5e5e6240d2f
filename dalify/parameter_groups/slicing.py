"""The coordinates of a slice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.registry import Parameters, PerSample

__all__ = ["SliceCoordinates"]


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

    def check(self, *, has_inputs: bool, what: str, hint: str) -> None:
        """Check that start and end are specified in one way each.

        Args:
            has_inputs: whether the inputs anchor and shape are specified.
            what: the slice, in messages.
            hint: an example, if nothing is specified.

        Raises:
            ArgumentValueError: contradictory arguments, or none.
        """
        starts, ends = (
            [name for name in names if getattr(self, name) is not None]
            for names in (("start", "rel_start"), ("end", "rel_end", "shape", "rel_shape"))
        )
        if has_inputs and starts + ends:
            raise ArgumentValueError(f"{', '.join(starts + ends)} cannot be combined with the inputs anchor and shape.")
        if not has_inputs and not starts + ends:
            raise ArgumentValueError(f"{what} is not specified.", hint=hint)
        for names in (starts, ends):
            if len(names) > 1:
                raise ArgumentValueError(f"{' and '.join(names)} are mutually exclusive.")

    @property
    def values(self) -> dict[str, Any]:
        """The coordinates by name; in kernels these are arrays, or None."""
        return {
            "start": self.start,
            "rel_start": self.rel_start,
            "end": self.end,
            "rel_end": self.rel_end,
            "shape": self.shape,
            "rel_shape": self.rel_shape,
        }
