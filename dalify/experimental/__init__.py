"""DALI's experimental package: ``dalify.experimental.dynamic`` has operators without a pipeline, under DALI's names."""
