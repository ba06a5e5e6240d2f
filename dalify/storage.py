"""Settings for remote files: ``storage.configure(cache_folder="/data/cache", timeout_s=10)``."""

from dalify.formats.storage import configure

__all__ = ["configure"]
