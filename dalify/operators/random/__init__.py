"""Random numbers: ``fn.random``."""
