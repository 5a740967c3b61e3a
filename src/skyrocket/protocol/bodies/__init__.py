"""The JSON that travels behind the header: a dataclass per body, whose annotations say how it is read and written.

A module per family: `Heartbeat.decode(data)`, `heartbeat.encode()`.
"""
