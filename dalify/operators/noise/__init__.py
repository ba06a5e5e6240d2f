"""Operators under ``fn.noise``: random noise."""
