"""Operators under ``fn.transforms``: affine transforms as matrices, for fn.warp_affine and fn.coord_transform."""
