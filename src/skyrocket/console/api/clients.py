"""Everybody who is connected: producers and consumers, their languages and versions."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from skyrocket.client.admin.side_by_side import each
from skyrocket.client.doctor.group_checks import OLDEST_VERSION
from skyrocket.console.api.endpoint import Call, Family
from skyrocket.model.system_groups import is_system_group
from skyrocket.protocol.codes import version_name

family = Family("Clients")

_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """One client in one group."""

    client_id: str
    address: str
    role: str  # producer or consumer
    group: str
    language: str
    version: str
    last_seen_ms: int | None  # producers alone tell
    connected_ms: int | None  # since when; None: Apache's brokers do not tell
    is_outdated: bool  # older than what the doctor advises


@dataclass(frozen=True, slots=True)
class LanguageRow:
    """How many clients have a language and version."""

    language: str
    version: str
    clients: int
    is_outdated: bool


@dataclass(frozen=True, slots=True)
class Clients:
    """All of them."""

    rows: list[ConnectedClient]
    languages: list[LanguageRow]


@family.get("/api/clients")
async def clients(call: Call) -> Clients:
    """All connected producers and consumers."""
    producers, consumers = await asyncio.gather(_producers(call), _consumers(call))
    rows = sorted([*producers, *consumers], key=lambda row: (row.role, row.group, row.client_id))
    return Clients(rows, _languages(rows))


async def _producers(call: Call) -> Iterable[ConnectedClient]:
    found: dict[tuple[str, str], ConnectedClient] = {}
    for table in (await call.admin.producers()).values():
        for group, producers in table.groups.items():
            for one in producers:
                found[group, one.client_id] = ConnectedClient(
                    one.client_id,
                    one.remote_address.removeprefix("/"),
                    "producer",
                    group,
                    one.language or "",
                    version_name(one.version),
                    one.last_update_timestamp or None,
                    one.connected_timestamp,
                    one.version < OLDEST_VERSION,
                )
    return found.values()


async def _consumers(call: Call) -> Iterable[ConnectedClient]:
    """No broker tells of all groups at once: each group is a question, and many are asked together."""
    view = call.parts.view
    names = [name for name in await view.groups.get() if not is_system_group(name)]
    return [
        ConnectedClient(
            connection.client_id,
            connection.client_address,
            "consumer",
            group,
            connection.language or "",
            version_name(connection.version),
            None,
            connection.connected_timestamp,
            connection.version < OLDEST_VERSION,
        )
        for group, members in (await each(names, view.members.get, at_once=_AT_ONCE)).items()
        for connection in (members.connections if members is not None else ())
    ]


def _languages(rows: list[ConnectedClient]) -> list[LanguageRow]:
    counts: dict[tuple[str, str, bool], set[str]] = {}
    for row in rows:
        counts.setdefault((row.language, row.version, row.is_outdated), set()).add(row.client_id)
    return [LanguageRow(language, version, len(ids), old) for (language, version, old), ids in sorted(counts.items())]
