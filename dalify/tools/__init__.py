"""Command-line tools: ``python -m dalify.tools.NAME``."""
