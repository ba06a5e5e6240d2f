"""Automatic augmentation: AutoAugment, RandAugment, TrivialAugment, and the building blocks for custom schemes.

The import paths are DALI's: ``from dalify.auto_aug import auto_augment, rand_augment, trivial_augment, augmentations,
core``.
"""
