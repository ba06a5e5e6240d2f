"""Operators under ``fn.reductions``: reductions along axes."""
