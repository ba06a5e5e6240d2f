"""``fn.segmentation``: masks of objects."""
