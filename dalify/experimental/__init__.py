"""DALI's experimental package: operators without a pipeline (``dynamic``) and torchvision's transforms."""
