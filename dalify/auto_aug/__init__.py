"""Automatic augmentation: AutoAugment, RandAugment, TrivialAugment, and their parts for one's own schemes.

The import paths are DALI's: ``from dalify.auto_aug import auto_augment, rand_augment, trivial_augment, augmentations,
core``.
"""
