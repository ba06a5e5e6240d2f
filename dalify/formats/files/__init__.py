"""Reads bytes: local files, object stores, archives' members, caches on the disk, lists of files."""
