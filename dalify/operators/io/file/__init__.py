"""Operators under ``fn.io.file``."""
