"""Answers that are pushed: server-sent events."""
