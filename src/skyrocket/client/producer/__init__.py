"""Producers: single messages, batches, transactions."""
