"""Operators under ``fn.decoders``: images, audio, video, NumPy files and LZ4."""
