"""Reads containers and folders: builds an index so that a reader can fetch any sample by its number."""
