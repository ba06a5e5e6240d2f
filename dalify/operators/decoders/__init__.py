"""Operators that decode: pictures, sound, film, npy."""
