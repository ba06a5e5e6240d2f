"""Gaudi's MediaPipe: programs written for it run here, on any machine, with only the root of their imports changed.

Its operators are composed of operators of ``dalify.fn``, and a pipe runs as a ``dalify.Pipeline``.
"""

from dalify.mediapipe import fn, media_types
from dalify.mediapipe.mediapipe import MediaPipe

__all__ = ["MediaPipe", "fn", "media_types"]
