"""Base classes of users' functions."""
