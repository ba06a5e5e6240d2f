"""Reads arrays: npy, FITS, HDF5, Zarr."""
