"""Operator definitions: one per file, named after its path. A file is imported when its operator is first used."""
