"""The outcome of an input, and the outcomes that are findings."""

from __future__ import annotations

import re
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dalify
from dalify.base.errors import DalifyError

KINDS = ("ok", "clean", "unnamed", "raw", "memory", "wrong", "crash", "hang")
"""``clean``: a DalifyError that says which sample, file or operator. ``unnamed``: one that does not. ``raw``: another
exception. ``memory``: more than the limits allow. ``wrong``: after an error, good data give another result, or the
error was to be skipped or replaced and was not. ``crash``: the process died. ``hang``: no answer in time."""
FINDINGS = frozenset(KINDS) - {"ok", "clean"}

_PACKAGE = str(Path(dalify.__file__).parent)
_NUMBERS = re.compile(r"-?\d[\d,.]*|0x[0-9a-f]+|'[^']*'|b'[^']*'|\"[^\"]*\"|/\S+")


@dataclass(frozen=True)
class Outcome:
    """What became of one input.

    Attributes:
        kind: one of ``KINDS``.
        error: class of the exception; signal of a crash.
        message: the whole error.
        place: innermost line of dalify, ``file.py:function``.
        traceback: for findings.
        went_past_tracing: of graphs: the pipeline was built.
    """

    kind: str
    error: str = ""
    message: str = ""
    place: str = ""
    traceback: str = ""
    went_past_tracing: bool = True

    @property
    def is_finding(self) -> bool:
        """Whether the outcome must be examined."""
        return self.kind in FINDINGS

    @property
    def key(self) -> str:
        """Key that is equal for inputs with the same mistake."""
        return f"{self.kind} {self.error} {self.place}".strip()

    @property
    def message_class(self) -> str:
        """The message without what differs between inputs: numbers, names and paths."""
        return f"{self.key} {_NUMBERS.sub('#', self.message)[:160]}"

    def data(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


OK = Outcome("ok")


def of_error(error: BaseException, is_named: bool, *, past_tracing: bool = True) -> Outcome:
    """Return the outcome for an exception.

    Args:
        error: what was raised.
        is_named: whether the message names the file or argument.
        past_tracing: see ``Outcome``.
    """
    chain = _chain(error)
    kind = "clean" if is_named else "unnamed"
    if not isinstance(error, DalifyError):
        kind = "raw"
    # Limits are compared before such an allocation is requested.
    if any(isinstance(item, MemoryError) or "Insufficient memory" in str(item) for item in chain):
        kind = "memory"
    named = error if kind in ("clean", "unnamed", "memory") else chain[-1] if kind == "raw" else error
    text = "".join(traceback.format_exception(error)[-60:]) if kind != "clean" else ""
    return Outcome(kind, type(named).__name__, str(error)[:2000], _place(chain), text[-6000:], past_tracing)


def _chain(error: BaseException) -> list[BaseException]:
    found = [error]
    while found[-1].__cause__ is not None and len(found) < 10:
        found.append(found[-1].__cause__)
    return found


def _place(chain: list[BaseException]) -> str:
    """Return the innermost line of dalify of the first cause."""
    for error in reversed(chain):
        place, step = "", error.__traceback__
        while step is not None:
            code = step.tb_frame.f_code
            if code.co_filename.startswith(_PACKAGE):
                place = f"{code.co_filename[len(_PACKAGE) + 1 :]}:{code.co_name}"
            step = step.tb_next
        if place:
            return place
    return ""


def place_in_crash(text: str) -> str:
    """Return the innermost line of dalify at which a thread did not just wait, from what ``faulthandler`` wrote."""
    found = re.findall(rf'File "{re.escape(_PACKAGE)}/([^"]+)", line \d+ in (\S+)', text)
    for file, function in found:
        if not file.startswith("executor/"):
            return f"{file}:{function}"
    return ":".join(found[0]) if found else ""
