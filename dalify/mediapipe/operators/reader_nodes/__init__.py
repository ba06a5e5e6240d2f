"""Base classes of user readers."""
