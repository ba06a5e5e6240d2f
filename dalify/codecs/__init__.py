"""Bytes to arrays: pictures, sound, film, npy. Each codec knows nothing of operators, batches or devices."""
