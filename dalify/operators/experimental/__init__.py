"""Operators under ``fn.experimental``."""
