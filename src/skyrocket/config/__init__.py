"""Settings: one declaration each, with RocketMQ's key, bounds and help."""
