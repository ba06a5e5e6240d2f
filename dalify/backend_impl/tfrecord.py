"""``dalify.tfrecord`` under the import path of DALI's compiled module."""

from dalify import tfrecord
from dalify.tfrecord import *  # noqa: F403 -- all of it, under another name

__all__ = []
__all__ += tfrecord.__all__
