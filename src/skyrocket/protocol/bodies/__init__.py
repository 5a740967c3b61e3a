"""The JSON that travels behind the header: a dataclass per body, and the table that reads and writes it.

A module per family. Constants such as `HEARTBEAT` are `JsonBody`s: `HEARTBEAT.decode(data)`, `HEARTBEAT.encode(body)`.
"""
