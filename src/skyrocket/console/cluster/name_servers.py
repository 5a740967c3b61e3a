"""Name servers: which of them answer."""

import asyncio
from dataclasses import dataclass

from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.errors import BrokerRefused
from skyrocket.errors import SkyrocketError


@dataclass(frozen=True, slots=True)
class NameServerRow:
    """A name server."""

    address: str
    is_up: bool
    trouble: str


async def name_servers(admin: Admin) -> list[NameServerRow]:
    """All of them, asked side by side; one that refuses to answer is there."""

    async def row(address: str) -> NameServerRow:
        try:
            await admin.cluster_at(address)
        except BrokerRefused:
            pass
        except SkyrocketError as error:
            return NameServerRow(address, False, str(error))
        return NameServerRow(address, True, "")

    return list(await asyncio.gather(*map(row, admin.name_servers())))
