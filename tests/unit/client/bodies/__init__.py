"""Bodies as values."""
