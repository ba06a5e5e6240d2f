"""The report of the passes, which ``Pipeline.explain`` prints."""

from __future__ import annotations

from dataclasses import dataclass, field

from dalify.base.wording import counted


@dataclass(slots=True)
class Report:
    """Notes of the passes, in order.

    Attributes:
        notes: pairs of the name of a pass and a note.
        counts: number of nodes after each pass, by its name.
    """

    notes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def note(self, verb: str, text: str) -> None:
        """Add a note, unless it exists."""
        if (verb, text) not in self.notes:
            self.notes.append((verb, text))

    def __str__(self) -> str:
        """Return the passes in order, with the number of nodes after each and its notes."""
        lines: list[str] = []
        for verb, count in self.counts.items():
            lines.append(f"{verb}: {counted(count, 'node')}")
            lines += [f"  - {text}" for by, text in self.notes if by == verb]
        return "\n".join(lines)
