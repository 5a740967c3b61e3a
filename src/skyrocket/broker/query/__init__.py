"""Messages by key, id and queue position."""
