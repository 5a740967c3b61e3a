"""Messages that wait for a time of their own: how they are taken, parked, delivered, recalled and shown."""
