"""Converts Python functions so that their conditions work on graph values, which differ per sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalify.base.optional import imported_at_first_use
from dalify.frontend.mark import do_not_convert

if TYPE_CHECKING:
    from dalify.frontend.rewriter import is_foreign_code, is_rewritable, rewrite

__all__ = ["do_not_convert", "is_foreign_code", "is_rewritable", "rewrite"]

# The rewriter takes a third of the import time, and is not needed before the first pipeline is defined.
__getattr__ = imported_at_first_use(
    __name__, dict.fromkeys(("is_foreign_code", "is_rewritable", "rewrite"), "rewriter")
)
