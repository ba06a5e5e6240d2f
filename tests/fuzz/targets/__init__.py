"""All targets of the harness."""

from __future__ import annotations

from tests.fuzz.targets import decoders, documents, graphs, mistakes, readers
from tests.fuzz.targets.base import Target

TARGETS: dict[str, Target] = {
    target.name: target for module in (decoders, readers, documents, graphs, mistakes) for target in module.TARGETS
}
"""By name."""


def target_of(name: str) -> Target:
    """Return a target."""
    return TARGETS[name]
