"""A type per request and answer header, a file per family.

`REQUESTS` has every class by its code; importing this package fills it.
"""

from skyrocket.protocol.requests import (
    acl,
    admin_broker,
    admin_groups,
    admin_topics,
    broker_registration,
    clients,
    kv_config,
    locks,
    messaging,
    offsets,
    pop,
    pulling,
    query,
    route,
    server_to_client,
    transaction,
    waiting_messages,
)
from skyrocket.protocol.requests.header import REQUESTS, EmptyAnswer, Header, NoAnswerFields, Request

__all__ = [
    "REQUESTS",
    "EmptyAnswer",
    "Header",
    "NoAnswerFields",
    "Request",
    "acl",
    "admin_broker",
    "admin_groups",
    "admin_topics",
    "broker_registration",
    "clients",
    "kv_config",
    "locks",
    "messaging",
    "offsets",
    "pop",
    "pulling",
    "query",
    "route",
    "server_to_client",
    "transaction",
    "waiting_messages",
]
