"""Utilities for all packages: errors, the user's source line, optional packages, forks, threads, compilation."""
