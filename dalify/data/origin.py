"""Where a sample came from."""

from __future__ import annotations

__all__ = ["Origin", "source_info"]


class Origin(str):
    """A place that a user can go to, such as the path of a file; messages show it.

    Args:
        place: it.
        name: what DALI calls it, ``source_info``: of a file below ``file_root``, the path from there on.
    """

    __slots__ = ("name",)

    name: str

    def __new__(cls, place: str, name: str) -> Origin:
        """Make it of both."""
        origin = super().__new__(cls, place)
        origin.name = name
        return origin

    def __reduce__(self) -> tuple[type[Origin], tuple[str, str]]:
        """Return what is pickled."""
        return Origin, (str(self), self.name)


def source_info(origin: str | None) -> str | None:
    """Return DALI's name of a place; None where it is not known."""
    return origin.name if isinstance(origin, Origin) else origin
