"""``python -m tests.fuzz run|reproduce|totals|targets``: see ``README.md``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from tests.fuzz.campaign import Campaign, add_to_totals
from tests.fuzz.inputs import load
from tests.fuzz.processes import Server, Warm
from tests.fuzz.report import Progress, findings_text, table, totals_text
from tests.fuzz.targets import TARGETS

OUT = Path("out/fuzz")


def main() -> int:
    """Carry out a command; the exit status is 1 where there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run mutated inputs")
    run.add_argument("--minutes", type=float, default=None)
    run.add_argument("--inputs", type=int, default=None, help="for each target, instead of a time")
    run.add_argument("--target", default="", help="names or their beginnings, with commas between them; all by default")
    run.add_argument("--seed", type=int, default=0)
    run.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    run.add_argument("--out", type=Path, default=OUT)
    again = commands.add_parser("reproduce", help="run a saved finding again")
    again.add_argument("folder", type=Path)
    commands.add_parser("totals", help="the table of all runs so far").add_argument("--out", type=Path, default=OUT)
    commands.add_parser("targets", help="names of the targets")
    given = parser.parse_args()
    if given.command == "targets":
        for name, target in TARGETS.items():
            print(f"{name}  ({target.why_not})" if target.why_not else name)
        return 0
    if given.command == "totals":
        import json

        print(totals_text(json.loads((given.out / "totals.json").read_text())))
        return 0
    return reproduce(given.folder) if given.command == "reproduce" else _run(given)


def _run(given: argparse.Namespace) -> int:
    with Progress() as progress:
        campaign = Campaign(
            [name for name in given.target.split(",") if name],
            seed=given.seed,
            jobs=given.jobs,
            inputs=None if given.inputs is None else lambda name: given.inputs,
            minutes=given.minutes if given.inputs is None else None,
            out=given.out.absolute(),
            show=progress.show,
        )
        result = campaign.run()
    console = Console()
    console = console if console.is_terminal else Console(width=200)
    console.print(table(result.counts, result.seconds))
    totals = add_to_totals(given.out / "totals.json", result)
    print(findings_text(result))
    inputs = sum(counts["inputs"] for counts in totals.values())
    print(f"{inputs:,} inputs over all runs; see: python -m tests.fuzz totals")
    return 1 if result.confirmed or result.broken else 0


def reproduce(folder: Path) -> int:
    """Run a saved finding again; return 1 if it is still one."""
    description, given = load(folder)
    warm = Warm()
    try:
        with tempfile.TemporaryDirectory() as place, Server(warm, Path(place), str(description["target"])) as server:
            outcome = server.outcome(given)
    finally:
        warm.close()
    print(f"{outcome.kind} {outcome.error} at {outcome.place or 'no line of dalify'}")
    print(outcome.message, outcome.traceback, sep="\n")
    return 1 if outcome.is_finding else 0


if __name__ == "__main__":
    sys.exit(main())
