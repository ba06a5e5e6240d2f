"""The API of Gaudi's MediaPipe: programs for MediaPipe run on any machine after a change of their imports.

Its operators are composed of operators of ``dalify.fn``, and a pipe runs as a ``dalify.Pipeline``.
"""

from dalify.mediapipe import fn, media_types
from dalify.mediapipe.mediapipe import MediaPipe

__all__ = ["MediaPipe", "fn", "media_types"]
