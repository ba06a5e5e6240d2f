"""Operators under ``fn.readers``: read files and containers."""
