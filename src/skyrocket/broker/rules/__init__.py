"""Rules that several features share, as functions and small objects over the broker's state."""
