"""What every other room may use: errors, the user's source line, optional packages, nested structures."""
