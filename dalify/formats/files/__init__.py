"""Reads bytes: local files, object stores, members of archives, caches on disk, lists of files."""
