"""Functions over audio signals: resampling, spectra, mel scale, decibels."""
