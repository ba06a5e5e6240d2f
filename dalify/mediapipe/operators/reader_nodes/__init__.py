"""Base classes of users' readers."""
