"""What the passes did and why: the text of ``Pipeline.explain``."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Report"]


@dataclass(slots=True)
class Report:
    """Notes in the order in which they were made.

    Attributes:
        notes: name of the pass and what it did.
        counts: nodes after each pass, by its name.
    """

    notes: list[tuple[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def note(self, verb: str, text: str) -> None:
        """Add a note, once."""
        if (verb, text) not in self.notes:
            self.notes.append((verb, text))

    def __str__(self) -> str:
        """Return the passes in order, with the nodes left after each and what it did."""
        lines: list[str] = []
        for verb, count in self.counts.items():
            lines.append(f"{verb}: {count} node{'' if count == 1 else 's'}")
            lines += [f"  - {text}" for by, text in self.notes if by == verb]
        return "\n".join(lines)
