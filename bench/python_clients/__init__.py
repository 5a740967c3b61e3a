"""Message systems as a Python program sees them: each with its own asyncio client, one after the other."""
