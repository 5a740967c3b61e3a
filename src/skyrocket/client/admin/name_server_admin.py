"""Name servers: their settings, small values by namespace and key, and which brokers may be written to."""

from collections.abc import Mapping
from typing import Final, TypeVar

from skyrocket.client.admin.admin_calls import AdminCalls
from skyrocket.client.admin.places import BrokerPlace
from skyrocket.client.core.errors import BrokerRefused
from skyrocket.config.sources import parse_properties, properties_text
from skyrocket.protocol.bodies.route import ClusterInfo
from skyrocket.protocol.bodies.tables import KvTable
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.kv_config import (
    DeleteKvConfig,
    GetKvConfig,
    GetKvListByNamespace,
    GetNamesrvConfig,
    PutKvConfig,
    UpdateNamesrvConfig,
)
from skyrocket.protocol.requests.name_server import AddWritePerm, GetBrokerClusterInfo, WipeWritePerm

T = TypeVar("T")

ORDER_NAMESPACE: Final = "ORDER_TOPIC_CONFIG"


class NameServerAdmin(AdminCalls):
    """Operations on name servers; each goes to all of them, because they do not tell each other."""

    def name_servers(self) -> list[str]:
        """Their addresses."""
        return list(self._instance_of().names.addresses)

    async def cluster_at(self, address: str) -> ClusterInfo:
        """All brokers, as one name server knows them."""
        return ClusterInfo.decode((await self._ask(address, GetBrokerClusterInfo(), doing="asking for brokers")).body)

    async def name_server_settings(self) -> dict[str, dict[str, str]]:
        """All settings by key, name server by name server."""

        async def settings(place: BrokerPlace) -> dict[str, str]:
            reply = await self._ask(place.address, GetNamesrvConfig(), doing="asking for settings")
            return parse_properties(bytes(reply.body).decode("utf-8", "replace"))

        return _by_address(await self._each(self._name_server_places(), settings))

    async def change_name_server_settings(self, wanted: Mapping[str, str]) -> list[str]:
        """Change them while name servers run. Where it was done."""
        text = properties_text(wanted).encode()

        async def change(place: BrokerPlace) -> None:
            await self._ask(place.address, UpdateNamesrvConfig(), text, doing=f"changing {', '.join(wanted)}")

        return list(_by_address(await self._each(self._name_server_places(), change)))

    # ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def put_value(self, namespace: str, key: str, value: str) -> None:
        """Keep a value at all name servers."""

        async def put(place: BrokerPlace) -> None:
            request = PutKvConfig(namespace=namespace, key=key, value=value)
            await self._ask(place.address, request, doing=f"setting {namespace} {key}")

        await self._each(self._name_server_places(), put)

    async def value(self, namespace: str, key: str) -> str | None:
        """What a name server keeps, None if nothing."""
        try:
            return (await self._names(GetKvConfig(namespace=namespace, key=key))).header.value
        except BrokerRefused as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise

    async def values(self, namespace: str) -> dict[str, str]:
        """All values of a namespace."""
        try:
            reply = await self._names(GetKvListByNamespace(namespace=namespace))
        except BrokerRefused as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return {}
            raise
        return dict(KvTable.decode(reply.body).table)

    async def delete_value(self, namespace: str, key: str) -> None:
        """Forget a value at all name servers."""

        async def delete(place: BrokerPlace) -> None:
            await self._ask(
                place.address, DeleteKvConfig(namespace=namespace, key=key), doing=f"deleting {namespace} {key}"
            )

        await self._each(self._name_server_places(), delete)

    # ── writing to a broker ──────────────────────────────────────────────────────────────────────────────────────────

    async def wipe_write_permission(self, broker_name: str) -> dict[str, int]:
        """Let clients send nothing more to a broker; how many topics that are, name server by name server."""

        async def wipe(place: BrokerPlace) -> int:
            request = WipeWritePerm(broker_name=broker_name)
            reply = await self._ask(place.address, request, doing=f"wiping the write permission of {broker_name}")
            return reply.header.wipe_topic_count

        return _by_address(await self._each(self._name_server_places(), wipe))

    async def add_write_permission(self, broker_name: str) -> dict[str, int]:
        """Let clients send to a broker again; how many topics that are, name server by name server."""

        async def add(place: BrokerPlace) -> int:
            request = AddWritePerm(broker_name=broker_name)
            reply = await self._ask(place.address, request, doing=f"adding the write permission of {broker_name}")
            return reply.header.add_topic_count

        return _by_address(await self._each(self._name_server_places(), add))


def _by_address(answers: Mapping[BrokerPlace, T]) -> dict[str, T]:
    return {place.address: answer for place, answer in answers.items()}
