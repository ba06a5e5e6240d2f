"""Operators for automatic augmentation that have no public counterpart.

``dalify.auto_aug`` inserts them; users can obtain the same results from several public operators in a row.
"""
