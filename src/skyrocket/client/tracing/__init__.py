"""Message traces in RocketMQ's form, and OpenTelemetry."""
