"""Functions for several tests, except pytest fixtures."""
