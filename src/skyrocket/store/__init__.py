"""The log-structured store: synchronous, one writer, no asyncio and no sockets."""
