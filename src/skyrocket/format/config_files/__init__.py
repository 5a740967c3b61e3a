"""The JSON files under `config/`, and that of the name server: bytes ↔ dataclass.

A module has `decode(data)` and `encode(content, dialect)`; `Dialect.V4_9` and `V5_4` give the very bytes of those
RocketMQ versions, `COMPACT`, the default, the wire form, which is also that of files on one line.
Java's map order is kept as read. No I/O here: `store.config_file` loads and saves.
"""
