"""Operators under ``fn.experimental.readers``."""
