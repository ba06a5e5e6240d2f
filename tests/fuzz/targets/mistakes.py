"""A target with every kind of mistake, which the harness has to find."""

from __future__ import annotations

import os
import random
import signal
import time
import warnings
from pathlib import Path

from dalify.base.errors import DecodeError
from tests.fuzz.inputs import Input
from tests.fuzz.outcomes import KINDS, OK, Outcome, of_error
from tests.fuzz.targets.base import Target

_WAYS = (*KINDS, "printed", "warned", "no memory")


class Mistakes(Target):
    """Makes the mistake that its input names."""

    name = "_mistakes"  # campaigns run it only if it is named
    seconds = 2.0  # of processor time: allocating the memory below must not be a hang

    def prepare(self, folder: Path) -> list[Input]:
        """Return an input without a mistake."""
        return [{"way": b"ok" + bytes(30)}]

    def mutated(self, given: Input, other: Input, rng: random.Random) -> Input:
        """Name one of the mistakes."""
        return {"way": rng.choice(_WAYS).encode() + bytes(rng.randrange(1, 4))}

    def run(self, given: Input) -> Outcome:
        """Make the mistake."""
        way = given["way"].strip(b"\0").decode()
        if way == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif way == "hang":
            time.sleep(3600)
        elif way == "memory":
            len(b"x" * (1400 << 20))
        elif way == "wrong":
            return Outcome("wrong", "Different", "made up")
        elif way == "printed":
            os.write(2, b"a library says so\n")
        elif way == "warned":
            warnings.warn("a library warns", UserWarning, stacklevel=1)
        elif way != "ok":
            try:
                _raise(way)
            except Exception as error:
                return of_error(error, way == "clean")
        return OK


def _raise(way: str) -> None:
    if way == "no memory":
        bytearray(8 << 30)
    if way == "raw":
        raise KeyError("raw")
    raise DecodeError("it cannot be decoded.")


TARGETS: list[Target] = [Mistakes()]
