"""Who is connected: heartbeats, locks, connections, requests passed on to consumers."""
