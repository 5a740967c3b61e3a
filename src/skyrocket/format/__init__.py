"""Bytes at rest: layouts and pure functions over buffers; no file is opened here."""
