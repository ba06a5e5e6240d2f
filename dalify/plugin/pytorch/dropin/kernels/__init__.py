"""Compiled functions for the replacement of torch's DataLoader: Pillow's arithmetic and random numbers."""
