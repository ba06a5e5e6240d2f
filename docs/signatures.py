"""Names and default values of operators, as users write them; the pages and the stubs share them."""

from __future__ import annotations

import json
from enum import IntEnum
from typing import Any

from dalify.registry import catalog


def public_names() -> list[str]:
    """Return the names of the public operators."""
    return [name for name in catalog.names() if not any(part.startswith("_") for part in name.split("."))]


def default_text(value: Any) -> str:
    """Return a default value as users write it: ``types.INTERP_LINEAR``, ``[0.0]``."""
    if isinstance(value, IntEnum):
        return f"types.{value.name}"
    if isinstance(value, tuple):
        return f"[{', '.join(default_text(item) for item in value)}]"
    return json.dumps(value) if isinstance(value, str) else repr(value)
