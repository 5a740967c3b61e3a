"""Messages delayed by level."""
