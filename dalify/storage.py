"""Settings for remote files: ``storage.configure(cache_folder="/data/cache", timeout_s=10)``."""

from dalify.formats.files.storage import configure

__all__ = ["configure"]
