"""Functions over images: cropping, resizing, warping, color, filters."""
