"""Operators under ``fn.segmentation``: masks of objects."""
