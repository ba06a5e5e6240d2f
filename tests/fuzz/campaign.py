"""A run over many inputs: the schedule of targets, their supervision, and the findings."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.inputs import Input, save, size_of, unpacked
from tests.fuzz.minimize import minimized
from tests.fuzz.outcomes import KINDS, Outcome
from tests.fuzz.processes import PREPARE_SECONDS, Child, Server, Warm, counts_of
from tests.fuzz.targets import TARGETS, target_of

# Maximum number of inputs of a child, so that leaks of libraries do not add up.
_LIFETIME = 20_000
_SHORTEST_SLICE_SECONDS, _LONGEST_SLICE_SECONDS = 5.0, 30.0
# After this number of consecutive deaths at the start, the target is considered broken.
_MAX_DEATHS = 400


@dataclass
class Finding:
    """A mistake, as its first input shows it.

    Attributes:
        target: name of the target.
        outcome: what became of the input.
        given: the input; None where only the state of the process was wrong.
        number: of the input.
        count: inputs that showed it in the parent's sight; those of one child count once.
        is_confirmed: it was shown again by a new process.
        folder: where it was saved.
    """

    target: str
    outcome: Outcome
    given: Input | None
    number: int
    count: int = 1
    is_confirmed: bool = False
    folder: Path | None = None

    @property
    def key(self) -> str:
        """Key that is equal for inputs with the same mistake."""
        return f"{self.target}: {self.outcome.key}"


@dataclass
class Result:
    """Counts and findings of a campaign.

    Attributes:
        counts: by target, as ``Slot.counts``.
        seconds: that each target ran.
        findings: by key.
        notes: warnings and output of libraries, by target.
        skipped: targets that cannot run here, with the reason.
        broken: targets that could not be prepared, with the reason.
    """

    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    notes: dict[str, set[str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def confirmed(self) -> list[Finding]:
        """Findings that a new process showed again."""
        return [finding for finding in self.findings.values() if finding.is_confirmed]


class Campaign:
    """Run targets in children, several at a time.

    Args:
        names: of the targets; all that can run where empty.
        seed: decides all inputs.
        jobs: children at a time.
        inputs: number for each target, by name; None: as many as there is time for.
        minutes: for all; None: no end but that of the inputs.
        out: folder for findings; None: they are not saved.
        show: is called every now and then.
    """

    def __init__(
        self,
        names: Sequence[str] = (),
        *,
        seed: int = 0,
        jobs: int = 1,
        inputs: Callable[[str], int] | None = None,
        minutes: float | None = None,
        out: Path | None = None,
        show: Callable[[Campaign], None] | None = None,
    ) -> None:
        self.result = Result()
        every = [name for name in TARGETS if not name.startswith("_")]
        chosen = [name for name in TARGETS if any(name.startswith(given) for given in names)] if names else every
        if not chosen:
            raise ValueError(f"there is no target {', '.join(names)}; there are: {', '.join(every)}.")
        for name in chosen:
            if target_of(name).why_not:
                self.result.skipped[name] = target_of(name).why_not
        self._names = [name for name in chosen if name not in self.result.skipped]
        self._seed = seed
        self._jobs = jobs
        self._inputs = inputs
        self._end = None if minutes is None else time.monotonic() + 60 * minutes
        # So long that each target has several turns, and that to begin with a child is little of it.
        seconds = 60 * (minutes or 0) * jobs / max(1, len(self._names)) / 2
        self._slice_seconds = min(max(seconds, _SHORTEST_SLICE_SECONDS), _LONGEST_SLICE_SECONDS)
        self._out = out
        self._show = show
        self._next = dict.fromkeys(self._names, 0)
        self._deaths = dict.fromkeys(self._names, 0)
        self._places: Iterator[int] = iter(range(1 << 62))
        self._running: list[Child] = []
        self._live: dict[str, dict[str, int]] = {}

    @property
    def live(self) -> dict[str, dict[str, int]]:
        """Return the counts including those of running children."""
        found = {name: dict(counts) for name, counts in self.result.counts.items()}
        for child in self._running:
            found[child.target] = counts_of(found.get(child.target, {}), child.slot.counts())
        return found

    def run(self) -> Result:
        """Run everything, then confirm, minimize and save the findings."""
        folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        warm = Warm()
        try:
            while not warm.is_ready:
                warm.poll(1.0)
            try:
                self._fuzz(warm, folder)
                for finding in self.result.findings.values():
                    self._confirm(warm, folder, finding)
            except KeyboardInterrupt:  # the findings until now are reported, and are in the folder
                for child in self._running:
                    self._take(child)
        finally:
            warm.close()
            shutil.rmtree(folder, ignore_errors=True)
        return self.result

    def _fuzz(self, warm: Warm, folder: Path) -> None:
        queue = list(self._names)
        random.Random(self._seed).shuffle(queue)
        shown = 0.0
        while queue or self._running:
            is_over = self._end is not None and time.monotonic() > self._end
            while queue and len(self._running) < self._jobs and not is_over:
                name = queue.pop(0)
                self._running.append(self._begin(warm, folder, name))
            if is_over:
                queue.clear()
            warm.poll(0.05)
            for child in list(self._running):
                if self._has_ended(child, is_over):
                    self._running.remove(child)
                    self._take(child)
                    shutil.rmtree(child.slot.folder, ignore_errors=True)
                    if self._wants_more(child.target) and not is_over:
                        queue.append(child.target)
            if self._show is not None and time.monotonic() - shown > 2.0:
                shown = time.monotonic()
                self._show(self)

    def _wants_more(self, name: str) -> bool:
        if name in self.result.broken or self._deaths[name] > _MAX_DEATHS:
            return False
        return self._inputs is None or self._next[name] < self._inputs(name)

    def _begin(self, warm: Warm, folder: Path, name: str) -> Child:
        count = _LIFETIME if self._inputs is None else min(_LIFETIME, self._inputs(name) - self._next[name])
        known = [finding.outcome.key for finding in self.result.findings.values() if finding.target == name]
        return Child(
            warm,
            folder / f"slot{next(self._places)}",
            name,
            mode="fuzz",
            seed=self._seed,
            first=self._next[name],
            count=count,
            known=known,
        )

    def _has_ended(self, child: Child, is_over: bool) -> bool:
        """Watch a child; whether it has ended or was ended."""
        if child.exit_code is not None:
            return True
        now = time.monotonic()
        if not child.slot.get("is_ready"):
            if now - child.asked > PREPARE_SECONDS:
                child.kill(with_stacks=True)
                return True
            return False
        if child.seconds_on_input > target_of(child.target).seconds:
            started, number = child.slot.get("started_ns"), child.slot.get("number")
            child.kill(with_stacks=True)
            if child.slot.get("started_ns") == started:  # it is still running
                self._add(child, child.outcome_of_death("hang"), child.slot.data(), number, "hang")
            return True
        child.ready = child.ready or now
        if is_over or (self._inputs is None and now - child.ready > self._slice_seconds):
            child.slot.set("request", -1)
        return False

    def _take(self, child: Child) -> None:
        """Add the counts and findings of a child that has ended."""
        name, slot = child.target, child.slot
        for entry in slot.reports():
            if entry["kind"] == "finding":
                data = bytes.fromhex(entry["input"])
                self._add(child, Outcome(**entry["outcome"]), data, entry["number"])
            elif entry["kind"] in ("warning", "printed"):
                self.result.notes.setdefault(name, set()).add(f"{entry['kind']}: {entry['key']}: {entry['text'][:160]}")
            elif entry["kind"] == "broken":
                self.result.broken[name] = f"{entry['text']}\n{slot.text('printed')[-1500:]}"
        if not slot.get("is_ready"):
            self.result.broken.setdefault(
                name, f"not prepared: {slot.text('printed')[-800:]}{slot.text('crash')[-800:]}"
            )
        elif not slot.get("is_done") and slot.get("started_ns"):
            self._deaths[name] += 1
            if not child.was_killed:
                self._add(child, child.outcome_of_death("crash"), slot.data(), slot.get("number"), "crash")
        self.result.counts[name] = counts_of(self.result.counts.get(name, {}), slot.counts())
        self.result.seconds[name] = self.result.seconds.get(name, 0.0) + time.monotonic() - (child.ready or child.asked)
        self._next[name] = max(self._next[name], slot.get("number") + 1)

    def _add(self, child: Child, outcome: Outcome, data: bytes, number: int, counter: str = "") -> None:
        if counter:
            child.slot.add(counter)
            child.slot.add("inputs")
        given = unpacked(data) if data else None
        found = Finding(child.target, outcome, given, number)
        known = self.result.findings.setdefault(found.key, found)
        if known is found:
            self._save(found)
        else:
            known.count += 1
            if given is not None and known.given is not None and size_of(given) < size_of(known.given):
                known.given, known.outcome = given, outcome

    def _confirm(self, warm: Warm, folder: Path, finding: Finding) -> None:
        """Show a finding again in a new process, make its input smaller, and save it."""
        if finding.given is None:
            finding.is_confirmed = True  # nothing to run again: all inputs of the child together made it
        else:
            with Server(warm, folder / f"confirm{next(self._places)}", finding.target) as server:
                self._confirm_with(server, finding)
        self._save(finding)

    def _save(self, finding: Finding) -> None:
        if self._out is not None:
            digest = f"{zlib.crc32(finding.key.encode()):08x}"
            finding.folder = finding.folder or self._out / f"{finding.target}-{finding.outcome.kind}-{digest}"
            save(finding.folder, finding.given or {}, _description(finding, self._seed))

    def _confirm_with(self, server: Server, finding: Finding) -> None:
        assert finding.given is not None
        wanted = finding.outcome
        again = server.outcome(finding.given)
        finding.is_confirmed = again.kind == wanted.kind
        if not finding.is_confirmed:
            return
        # The place of a crash or hang is where a thread happened to be.
        is_death = wanted.kind in ("hang", "crash")

        def shows(given: Input) -> bool:
            found = server.outcome(given)
            return found.kind == again.kind and (is_death or found.key == again.key)

        finding.outcome = again
        if self._out is not None:
            seconds, tries = (40.0, 3) if wanted.kind == "hang" else (25.0, 100) if is_death else (8.0, 1500)
            finding.given = minimized(finding.given, shows, seconds, tries)


def _description(finding: Finding, seed: int) -> dict[str, Any]:
    return {
        "target": finding.target,
        "seed": seed,
        "number": finding.number,
        "is_confirmed": finding.is_confirmed,
        "outcome": finding.outcome.data(),
    }


def add_to_totals(path: Path, result: Result) -> dict[str, dict[str, Any]]:
    """Add the counts of a run to those of all runs before; return them."""
    totals: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    for name, counts in result.counts.items():
        kept = {
            key: counts[key]
            for key in ("inputs", "past_tracing", "warned", "printed", "peak_kib", "slowest_us", *KINDS)
        }
        totals[name] = counts_of(totals.get(name, {}), kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(totals, indent=1) + "\n")
    return totals
