"""Metrics and health over HTTP, for a port of their own."""
