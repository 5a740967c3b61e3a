"""The JSON files under `config/`, and those of name server and clients: a module per file, bytes ↔ dataclass.

Each has `decode(data)` and `encode(content, dialect)`; `Dialect.V4_9` and `V5_4` give the very bytes of those
RocketMQ versions, `COMPACT` the wire form. Files that RocketMQ writes on one line have `encode(content)` only.
Java's map order is kept as read. No I/O here: `store.config_file` loads and saves.
"""
