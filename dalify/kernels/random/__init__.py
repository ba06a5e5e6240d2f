"""Random number generators, and the distributions and shapes of random numbers."""
