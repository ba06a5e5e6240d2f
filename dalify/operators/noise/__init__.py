"""Disturbances of data by random noise: ``fn.noise``."""
