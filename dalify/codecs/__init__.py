"""Decodes bytes to arrays: images, audio, video, npy. Codecs do not depend on operators, batches or devices."""
