"""Containers and folders to entries: what lies where, so that a reader can fetch any sample by its number."""
