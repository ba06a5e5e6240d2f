"""Convert Python functions so that their conditions work on graph values, which differ per sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalify.base.optional import LazyModule
from dalify.frontend.mark import do_not_convert

if TYPE_CHECKING:
    from dalify.frontend import rewriter as _rewriter
    from dalify.frontend.rewriter import is_foreign_code, is_rewritable, rewrite
else:
    # Imported at first use: a third of the import time, needed when the first pipeline is defined.
    _rewriter = LazyModule("dalify.frontend.rewriter", "rewriting functions")

__all__ = ["do_not_convert", "is_foreign_code", "is_rewritable", "rewrite"]


def __getattr__(name: str) -> Any:
    if name in ("rewrite", "is_foreign_code", "is_rewritable"):
        return getattr(_rewriter, name)
    raise AttributeError(name)
