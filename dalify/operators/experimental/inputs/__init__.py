"""Operators under ``fn.experimental.inputs``."""
