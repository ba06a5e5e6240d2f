"""Small programs for the command line: ``python -m dalify.tools.NAME``."""
