"""Clients that a test leaves behind: they look for routes of clusters that are gone, and say so in later tests."""

import sys
from typing import Any

# What Spark keeps in a process for the tasks that follow; a test stands for a process.
_OF_PROCESS = ("skyrocket.pipeline.topic_sink.connection", "skyrocket.pipeline.topic_source.connection")


def running_clients() -> set[Any]:
    """Those that have begun and were not stopped, on whatever loop."""
    module = sys.modules.get("skyrocket.client.core.instance")
    return set() if module is None else set(module._instances.values())


def end_those_of_the_process() -> None:
    """Those that nobody stops, because a process of Spark is ended instead."""
    for name in _OF_PROCESS:
        module = sys.modules.get(name)
        if module is not None:
            module.close_connections()


def description_of(client: Any) -> str:
    return f"client {client.client_id} of {client.settings.name_servers} with {[*map(repr, client.members())]}"
