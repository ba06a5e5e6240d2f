"""The catalogue: one operator per file, the path is the name. Loaded one by one when first used."""
