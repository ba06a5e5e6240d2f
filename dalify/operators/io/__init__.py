"""Operators under ``fn.io``."""
