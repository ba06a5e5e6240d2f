"""The texts of errors."""

from __future__ import annotations

from typing import Any


def own_text(error: Any) -> str:
    """Return the text of an error without the quoted source line.

    That line of the test often contains the expected text, so the test could not fail.
    """
    text = str(error)
    line = getattr(error, "line", None)
    return text if line is None else text.replace(line.quote(), f"  {line}")
