"""What automatic augmentation needs and users have no operator for: each augmentation is one pass over the image.

Written by ``dalify.auto_aug``, not by users; the same results could be had from several operators in a row.
"""
