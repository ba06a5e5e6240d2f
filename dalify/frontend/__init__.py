"""From a Python function to a traced graph: conditions work on values that differ from sample to sample."""

from dalify.frontend.rewrite import do_not_convert, is_rewritable, rewrite

__all__ = ["do_not_convert", "is_rewritable", "rewrite"]
