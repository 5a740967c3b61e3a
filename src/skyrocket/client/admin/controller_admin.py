"""Controllers: who is master of a replica set, who is in sync, and choosing another master.

A controller is asked at its address; name servers do not know it. All but its metadata is answered by the leader.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from skyrocket.client.admin.broker_admin import BrokerAdmin
from skyrocket.client.admin.places import BrokerPlace
from skyrocket.client.core.errors import BrokerRefused, ClientError, NotFound, WrongUse
from skyrocket.config.sources import parse_properties, properties_text
from skyrocket.model.words import said
from skyrocket.protocol.bodies.controller import (
    BROKER_NAMES,
    BrokerReplicasInfo,
    ElectedMaster,
    EpochCache,
    ReplicasInfo,
)
from skyrocket.protocol.errors import RequestNotSupported
from skyrocket.protocol.requests.admin_broker import GetBrokerEpochCache
from skyrocket.protocol.requests.controller import (
    CleanBrokerData,
    ElectMaster,
    ElectMasterAnswer,
    GetControllerConfig,
    GetControllerMetadata,
    GetControllerMetadataAnswer,
    GetSyncStateData,
    ListReplicaSets,
    UpdateControllerConfig,
)
from skyrocket.remoting.errors import CallTimeout

_WHERE: Final = said("Controllers came with RocketMQ 5.0; the setting controllerAddr of a broker under one names it")


class ControllerAdmin(BrokerAdmin):
    """Operations on controllers and the replica sets under them."""

    async def controller_addresses(self, *, cluster: str | None = None) -> list[str]:
        """The controllers that brokers name in their settings; none where no broker is under one."""
        settings = await self.broker_settings(cluster=cluster)
        under_one = [each for each in settings.values() if each.get("enableControllerMode") == "true"]
        named = [each.get("controllerAddr", "") for each in under_one]
        return sorted({address.strip() for text in named for address in text.split(";") if address.strip()})

    async def controller_metadata(self, address: str) -> GetControllerMetadataAnswer:
        """Who leads the controllers, and who they are; raises ClientError when it is another kind of server."""
        try:
            return (await self._ask(address, GetControllerMetadata(), doing="asking who leads the controllers")).header
        except BrokerRefused as error:
            if not isinstance(error.__cause__, RequestNotSupported):
                raise
            raise ClientError(
                "{address} is not a controller: it does not know the request. {where}", address=address, where=_WHERE
            ) from error
        except CallTimeout as error:  # RocketMQ 4.9's name servers do not answer what they do not know
            raise ClientError(
                "{error}: it hangs, or is not a controller. {where}", error=error, where=_WHERE
            ) from error

    async def _leader(self, address: str) -> str:
        """The controller that leads, as this one knows it."""
        metadata = await self.controller_metadata(address)
        if not metadata.controller_leader_address:
            raise NotFound(
                "controller {address} knows no leader: a majority of the controllers must run", address=address
            )
        return metadata.controller_leader_address

    async def replica_sets(self, address: str, broker_names: Sequence[str]) -> dict[str, ReplicasInfo]:
        """Master, in-sync and other replicas of these brokers; raises NotFound when none of them is known."""
        leader = await self._leader(address)
        body = BROKER_NAMES.encode(tuple(broker_names))
        reply = await self._ask(leader, GetSyncStateData(), body, doing="asking for replica sets")
        found = dict(BrokerReplicasInfo.decode(reply.body).replicas)
        if not found:
            raise NotFound(
                "controller {leader} knows no replica set named {names}", leader=leader, names=", ".join(broker_names)
            )
        return found

    async def replica_set_names(self, address: str) -> list[str]:
        """Of all sets; raises NotOffered at Apache's controllers, which tell of a set by its name alone."""
        reply = await self._ours(
            await self._leader(address), ListReplicaSets(), "listing replica sets", "name the sets: broker-a …"
        )
        return sorted(BROKER_NAMES.decode(reply.body))

    async def elect_master(
        self, address: str, cluster: str, broker_name: str, broker_id: int
    ) -> tuple[ElectMasterAnswer, ElectedMaster]:
        """Make the replica of this id the master of its set."""
        request = ElectMaster(
            cluster_name=cluster, broker_name=broker_name, broker_id=broker_id, designate_elect=True, invoke_time=0
        )
        reply = await self._ask(await self._leader(address), request, doing=f"electing {broker_id} of {broker_name}")
        return reply.header, ElectedMaster.decode(reply.body)

    async def forget_replicas(
        self,
        address: str,
        broker_name: str,
        *,
        cluster: str | None = None,
        broker_ids: Sequence[int] = (),
        even_if_alive: bool = False,
    ) -> None:
        """Forget a replica set, or some of its replicas; those that live only when it is said.

        Controllers tell the living by their cluster, and take all for dead in one that they do not know: without a
        name given it is the one that name servers know the set in.
        """
        if cluster is None and not even_if_alive:
            cluster = await self._cluster_of(broker_name)
        request = CleanBrokerData(
            cluster_name=cluster,
            broker_name=broker_name,
            broker_controller_ids_to_clean=";".join(map(str, broker_ids)) or None,
            is_clean_living_broker=even_if_alive,
            invoke_time=0,
        )
        await self._ask(await self._leader(address), request, doing=f"forgetting replicas of {broker_name}")

    async def _cluster_of(self, broker_name: str) -> str:
        clusters = (await self.cluster()).clusters
        found = [name for name, brokers in sorted(clusters.items()) if broker_name in brokers]
        if not found:
            raise WrongUse(
                "name servers know no broker {broker}: say which cluster the set is of (-c, cluster=)",
                broker=broker_name,
            )
        return found[0]

    async def controller_settings(self, addresses: Sequence[str]) -> dict[str, dict[str, str]]:
        """All settings by key, controller by controller."""

        async def settings(place: BrokerPlace) -> dict[str, str]:
            reply = await self._ask(place.address, GetControllerConfig(), doing="asking for settings")
            return parse_properties(bytes(reply.body).decode("utf-8", "replace"))

        answers = await self._each([BrokerPlace("", "", 0, each) for each in addresses], settings)
        return {place.address: answer for place, answer in answers.items()}

    async def change_controller_settings(self, addresses: Sequence[str], wanted: Mapping[str, str]) -> list[str]:
        """Change them while controllers run. Where it was done."""
        text = properties_text(wanted).encode()

        async def change(place: BrokerPlace) -> None:
            await self._ask(place.address, UpdateControllerConfig(), text, doing=f"changing {', '.join(wanted)}")

        places = [BrokerPlace("", "", 0, each) for each in addresses]
        return [place.address for place in await self._each(places, change)]

    async def epochs(self, *, cluster: str | None = None, broker: str | None = None) -> dict[BrokerPlace, EpochCache]:
        """From where on which master wrote the logs of brokers under a controller."""

        async def cache(place: BrokerPlace) -> EpochCache:
            request = GetBrokerEpochCache(broker_name=place.broker_name or None)
            return EpochCache.decode((await self._since_5(place, request, "asking for epochs")).body)

        return await self._each(await self._places(cluster, broker, with_slaves=True), cache)
