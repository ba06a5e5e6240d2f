"""Affine transforms as matrices, for fn.warp_affine and fn.coord_transform."""
