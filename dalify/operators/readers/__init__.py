"""Operators that read files and containers."""
