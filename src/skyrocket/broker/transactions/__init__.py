"""Half messages, their checks and their end."""
