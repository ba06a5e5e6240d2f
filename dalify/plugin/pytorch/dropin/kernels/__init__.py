"""Compiled functions that only the replacement for torch's DataLoader needs: Pillow's arithmetic, random numbers."""
