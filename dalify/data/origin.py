"""Origins of samples."""

from __future__ import annotations

from collections.abc import Sequence


class Origin(str):
    """The location of a sample for messages, such as the path of a file.

    Args:
        location: the location.
        name: DALI's ``source_info``: of a file in ``file_root``, its relative path.
    """

    __slots__ = ("name",)

    name: str

    def __new__(cls, location: str, name: str) -> Origin:
        """Create an origin from location and name."""
        origin = super().__new__(cls, location)
        origin.name = name
        return origin

    def __reduce__(self) -> tuple[type[Origin], tuple[str, str]]:
        """Return the constructor arguments for pickling."""
        return Origin, (str(self), self.name)


def source_info(origin: str | None) -> str | None:
    """Return the ``source_info`` of an origin; None if unknown."""
    return origin.name if isinstance(origin, Origin) else origin


def joined_origin(origins: Sequence[str | None]) -> str | None:
    """Return the origin of a sample made of several, separated by semicolons; None if there are none."""
    known = [origin for origin in origins if origin is not None]
    if len(known) < 2:
        return known[0] if known else None
    return Origin(";".join(known), ";".join(source_info(origin) or "" for origin in known))
