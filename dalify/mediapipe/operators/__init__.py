"""Where programs import the base classes of their own operators from."""
