"""Operators under ``fn.random``: random numbers."""
