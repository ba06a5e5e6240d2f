"""Base classes of user functions."""
