"""Producers, without brokers."""
