"""Every request by its code. Importing this module imports every family."""

from importlib import import_module
from typing import Final

from skyrocket.protocol.requests.header import REQUESTS

FAMILIES: Final = (
    "acl",
    "admin_broker",
    "admin_groups",
    "admin_topics",
    "broker_registration",
    "clients",
    "consumers",
    "kv_config",
    "messaging",
    "name_server",
    "offsets",
    "pop",
    "pulling",
    "query",
    "route",
    "server_to_client",
    "transaction",
    "waiting_messages",
)

for family in FAMILIES:
    import_module(f"skyrocket.protocol.requests.{family}")

__all__ = ["FAMILIES", "REQUESTS"]
