"""Random number generators and what is drawn from them."""
