"""Reductions along axes: ``fn.reductions``."""
