"""Functions that several tests share and that are not pytest fixtures."""
