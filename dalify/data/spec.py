"""Static information on the samples of one edge of the graph.

The output rule of an operator maps specs to specs. It runs when the graph is built, without shapes, and when the
pipeline runs, with the shapes of samples.
"""

from __future__ import annotations

from typing import Any

from dalify.base.errors import DTypeError, LayoutError
from dalify.data.dtypes import DALIDataType

_UNCHANGED: Any = object()


class Spec:
    """Element type, dimensions, layout and shape of one sample. Treat as immutable.

    Attributes:
        dtype: element type; None if not known yet.
        ndim: number of dimensions of a sample; None if not known yet.
        layout: one letter for each dimension (``"HWC"``), ``""`` for none; None if not known yet.
        shape: extents of one sample; None when the graph is built, always known at run time.
        device: ``"cpu"`` or ``"gpu"``.
    """

    # Not a frozen dataclass, because creating one takes four times as long, and rules create specs for chunks.
    __slots__ = ("device", "dtype", "layout", "ndim", "shape")

    def __init__(
        self,
        dtype: DALIDataType | None = None,
        ndim: int | None = None,
        layout: str | None = None,
        shape: tuple[int, ...] | None = None,
        device: str = "cpu",
    ) -> None:
        self.dtype = dtype
        self.ndim = ndim if shape is None else len(shape)
        self.layout = layout
        self.shape = shape
        self.device = device

    def replace(
        self,
        *,
        dtype: DALIDataType | None = _UNCHANGED,
        ndim: int | None = _UNCHANGED,
        layout: str | None = _UNCHANGED,
        shape: tuple[int, ...] | None = _UNCHANGED,
        device: str = _UNCHANGED,
    ) -> Spec:
        """Return a spec with some attributes changed; a new number of dimensions clears the shape."""
        if shape is _UNCHANGED:
            shape = self.shape if ndim is _UNCHANGED or ndim == self.ndim else None
        if ndim is _UNCHANGED:
            ndim = self.ndim
        return Spec(
            self.dtype if dtype is _UNCHANGED else dtype,
            ndim,
            self.layout if layout is _UNCHANGED else layout,
            shape,
            self.device if device is _UNCHANGED else device,
        )

    @property
    def is_known(self) -> bool:
        """Whether type, dimensions and layout are all known."""
        return self.dtype is not None and self.ndim is not None and self.layout is not None

    @property
    def dtype_text(self) -> str:
        """The element type in messages; ``?`` if it is not known."""
        return "?" if self.dtype is None else self.dtype.text

    def check_dtype(self, wanted: DALIDataType) -> None:
        """Raise a DTypeError if the element type is known and not the wanted one."""
        if self.dtype not in (None, wanted):
            raise DTypeError(
                f"the input must have {wanted.text} elements; got {self.dtype_text}.",
                hint=f"Convert it: fn.cast(x, dtype=types.{wanted.name}).",
            )

    def axis(self, letter: str) -> int:
        """Return the position of a dimension by its letter.

        Raises:
            LayoutError: the layout has no such dimension.
        """
        found = (self.layout or "").find(letter)
        if found < 0:
            raise LayoutError(f"the data must have an axis {letter}; the layout is {self.layout!r}.")
        return found

    def extent(self, letter: str) -> int:
        """Return the extent of a dimension by its letter; the shape must be known."""
        assert self.shape is not None, "dalify bug: extent requested before the shape is known"
        return self.shape[self.axis(letter)]

    def with_extents(self, extents: dict[str, int]) -> Spec:
        """Return a spec with new extents for some letters; unchanged if the shape is not known."""
        if self.shape is None:
            return self
        shape = list(self.shape)
        for letter, extent in extents.items():
            shape[self.axis(letter)] = int(extent)
        return self.replace(shape=tuple(shape))

    def _key(self) -> tuple[object, ...]:
        return (self.dtype, self.ndim, self.layout, self.shape, self.device)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        """Return e.g. ``cpu uint8 HWC (480, 640, 3)``."""
        form = self.layout or ("?-D" if self.ndim is None else f"{self.ndim}-D")
        return f"{self.device} {self.dtype_text} {form}" + ("" if self.shape is None else f" {self.shape}")
