"""Tables of a run: live, at the end, and of all runs together."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from tests.fuzz.campaign import Campaign, Finding, Result
from tests.fuzz.outcomes import KINDS


def table(counts: Mapping[str, Mapping[str, int]], seconds: Mapping[str, float] | None = None) -> Table:
    """Return a table with a line for each target."""
    made = Table(box=None, pad_edge=False)
    columns = ["target", "inputs", *KINDS, "warned", "printed", "past tracing", "peak MiB", "slowest s"]
    for name in [*columns, *(["per s"] if seconds else [])]:
        made.add_column(name, justify="left" if name == "target" else "right", no_wrap=True)
    total: dict[str, int] = {}
    for name in sorted(counts):
        made.add_row(*_cells(name, counts[name], seconds))
        for key, value in counts[name].items():
            maximum = key in ("peak_kib", "slowest_us")
            total[key] = max(total.get(key, 0), value) if maximum else total.get(key, 0) + value
    if counts:
        made.add_row(*_cells("all", total, None), *([""] if seconds else []))
    return made


def _cells(name: str, counts: Mapping[str, int], seconds: Mapping[str, float] | None) -> list[str]:
    inputs = max(1, counts["inputs"])
    cells = [name, f"{counts['inputs']:,}", *(f"{counts[kind]:,}" for kind in KINDS)]
    cells += [str(counts["warned"]), str(counts["printed"]), f"{counts['past_tracing'] / inputs:.0%}"]
    cells += [f"{max(0, counts['peak_kib']) >> 10}", f"{counts['slowest_us'] / 1e6:.2f}"]
    return cells + ([f"{counts['inputs'] / max(seconds.get(name, 1), 0.01):.0f}"] if seconds else [])


class Progress:
    """Displays the progress of a run: a live table in a terminal, otherwise a line every ten seconds."""

    def __init__(self) -> None:
        self._console = Console()
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None
        self._started = self._shown = time.monotonic()

    def __enter__(self) -> Progress:
        """Begin."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        """End."""
        if self._live is not None:
            self._live.stop()

    def show(self, campaign: Campaign) -> None:
        """Show the counts of now."""
        now = time.monotonic()
        if self._live is not None:
            self._live.update(table(campaign.live), refresh=True)
        elif now - self._shown > 10:
            self._shown = now
            counts = campaign.live.values()
            inputs = sum(item["inputs"] for item in counts)
            found = len(campaign.result.findings)
            print(f"{now - self._started:.0f} s: {inputs:,} inputs, {found} findings", flush=True)


def findings_text(result: Result) -> str:
    """Return the findings, the targets that did not run, and what libraries printed, for people."""
    lines = [f"skipped: {name}: {reason}" for name, reason in result.skipped.items()]
    lines += [f"BROKEN: {name}: {reason}" for name, reason in result.broken.items()]
    for name, notes in sorted(result.notes.items()):
        lines += [f"note: {name}: {note}" for note in sorted(notes)]
    for finding in sorted(result.findings.values(), key=lambda item: item.key):
        lines += _finding_lines(finding)
    return "\n".join(lines)


def _finding_lines(finding: Finding) -> list[str]:
    mark = "FINDING" if finding.is_confirmed else "not confirmed"
    first = finding.outcome.message.strip().splitlines()[:1]
    lines = [f"{mark}: {finding.key}: {first[0][:300] if first else ''}"]
    if finding.folder is not None:
        lines.append(f"    {sys.executable} -m tests.fuzz reproduce {finding.folder}")
    return lines


def totals_text(totals: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table of all runs as text."""
    console = Console(width=220)
    with console.capture() as caught:
        console.print(table(totals))
    return caught.get()
