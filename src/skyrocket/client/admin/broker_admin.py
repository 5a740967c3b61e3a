"""Brokers themselves: settings, what they count, cleaning, replication, cold reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skyrocket.client.admin.admin_calls import AdminCalls
from skyrocket.client.admin.places import BrokerPlace
from skyrocket.client.core.errors import BrokerRefused
from skyrocket.client.core.names import unwrap
from skyrocket.config.sources import parse_properties, properties_text
from skyrocket.protocol.bodies.connections import ProducerTable
from skyrocket.protocol.bodies.replication import HaStatus
from skyrocket.protocol.bodies.statistics import BrokerConsumeStats, BrokerStatsData
from skyrocket.protocol.bodies.tables import KvTable, QueueCheck
from skyrocket.protocol.errors import RequestNotSupported
from skyrocket.protocol.requests.admin_broker import (
    AddBroker,
    CheckRocksDbCqWriteProgress,
    CleanExpiredConsumeQueue,
    DeleteExpiredCommitLog,
    ExportRocksDbConfigToJson,
    GetBrokerConfig,
    GetBrokerHaStatus,
    GetBrokerRuntimeInfo,
    GetColdDataFlowCtrInfo,
    RemoveBroker,
    RemoveColdDataFlowCtrConfig,
    ResetMasterFlushOffset,
    SetCommitLogReadMode,
    UpdateBrokerConfig,
    UpdateColdDataFlowCtrConfig,
    ViewBrokerStatsData,
)
from skyrocket.protocol.requests.admin_groups import GetAllProducerInfo, GetBrokerConsumeStats
from skyrocket.protocol.requests.pop import PopRollback


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting of one broker; `before` is None where the broker does not show it."""

    place: BrokerPlace
    key: str
    before: str | None
    after: str


class BrokerAdmin(AdminCalls):
    """Operations on brokers; `broker` is a name or an address, without it and a cluster all are meant."""

    # ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def broker_settings(
        self, *, cluster: str | None = None, broker: str | None = None, with_slaves: bool = True
    ) -> dict[BrokerPlace, dict[str, str]]:
        """All settings by key, broker by broker."""
        places = await self._places(cluster, broker, with_slaves=with_slaves)
        return await self._each(places, self._settings)

    async def _settings(self, place: BrokerPlace) -> dict[str, str]:
        reply = await self._ask(place.address, GetBrokerConfig(), doing="asking for settings")
        return parse_properties(bytes(reply.body).decode("utf-8", "replace"))

    async def setting_changes(
        self,
        wanted: Mapping[str, str],
        *,
        cluster: str | None = None,
        broker: str | None = None,
        with_slaves: bool = False,
    ) -> list[SettingChange]:
        """What these settings would change; nothing is done: `apply_setting_changes` does it."""
        settings = await self.broker_settings(cluster=cluster, broker=broker, with_slaves=with_slaves)
        return [
            SettingChange(place, key, known.get(key), value)
            for place, known in settings.items()
            for key, value in wanted.items()
            if known.get(key) != value
        ]

    async def apply_setting_changes(self, changes: Sequence[SettingChange]) -> None:
        """Do what `setting_changes` has found."""
        wanted: dict[BrokerPlace, dict[str, str]] = {}
        for change in changes:
            wanted.setdefault(change.place, {})[change.key] = change.after
        await self._each(list(wanted), lambda place: self._change_settings(place, wanted[place]))

    async def change_broker_settings(
        self,
        wanted: Mapping[str, str],
        *,
        cluster: str | None = None,
        broker: str | None = None,
        with_slaves: bool = False,
    ) -> list[BrokerPlace]:
        """Change them while brokers run; brokers keep them. Where it was done."""
        places = await self._places(cluster, broker, with_slaves=with_slaves)
        return list(await self._each(places, lambda place: self._change_settings(place, wanted)))

    async def _change_settings(self, place: BrokerPlace, wanted: Mapping[str, str]) -> None:
        text = properties_text(wanted).encode()
        await self._ask(place.address, UpdateBrokerConfig(), text, doing=f"changing {', '.join(wanted)}")

    # ── what they count ──────────────────────────────────────────────────────────────────────────────────────────────

    async def runtime_info(
        self, *, cluster: str | None = None, broker: str | None = None, with_slaves: bool = True
    ) -> dict[BrokerPlace, dict[str, str]]:
        """Everything that is counted, broker by broker: version, rates, offsets, disks, queues of requests."""

        async def info(place: BrokerPlace) -> dict[str, str]:
            reply = await self._ask(place.address, GetBrokerRuntimeInfo(), doing="asking how it is")
            return dict(KvTable.decode(reply.body).table)

        return await self._each(await self._places(cluster, broker, with_slaves=with_slaves), info)

    async def statistics(self, name: str, key: str, *, broker: str) -> BrokerStatsData:
        """One statistic of a broker over a minute, an hour and a day, as TOPIC_PUT_NUMS of a topic; zero if unknown."""
        (place,) = await self._places(None, broker)
        try:
            request = ViewBrokerStatsData(stats_name=name, stats_key=key)
            reply = await self._ask(place.address, request, doing=f"asking for {name} of {key}")
        except BrokerRefused as error:
            if isinstance(error.__cause__, RequestNotSupported) or "not exist" not in (error.remark or ""):
                raise
            return BrokerStatsData()
        return BrokerStatsData.decode(reply.body)

    async def broker_lag(
        self, *, cluster: str | None = None, broker: str | None = None, ordered: bool = False
    ) -> dict[BrokerPlace, BrokerConsumeStats]:
        """How far all groups are in all topics of a broker, in one request for each."""

        async def lag(place: BrokerPlace) -> BrokerConsumeStats:
            request = GetBrokerConsumeStats(is_order=ordered)
            reply = await self._ask(place.address, request, doing="asking how far groups are")
            return BrokerConsumeStats.decode(reply.body)

        return await self._each(await self._places(cluster, broker), lag)

    async def producers(
        self, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[BrokerPlace, ProducerTable]:
        """All producers that are connected, broker by broker."""

        async def connected(place: BrokerPlace) -> ProducerTable:
            reply = await self._ask(place.address, GetAllProducerInfo(with_times=True), doing="asking for producers")
            table = ProducerTable.decode(reply.body)
            return ProducerTable({unwrap(self._namespace, group): all_of for group, all_of in table.groups.items()})

        return await self._each(await self._places(cluster, broker), connected)

    # ── cleaning ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def clean_expired_queues(self, *, cluster: str | None = None, broker: str | None = None) -> list[BrokerPlace]:
        """Remove queue files whose messages are gone. Where it was done."""

        async def clean(place: BrokerPlace) -> None:
            await self._ask(place.address, CleanExpiredConsumeQueue(), doing="cleaning queues")

        return list(await self._each(await self._places(cluster, broker), clean))

    async def delete_expired_logs(self, *, cluster: str | None = None, broker: str | None = None) -> list[BrokerPlace]:
        """Remove log files that are old enough, now. Where it was done."""

        async def delete(place: BrokerPlace) -> None:
            await self._ask(place.address, DeleteExpiredCommitLog(), doing="deleting expired logs")

        return list(await self._each(await self._places(cluster, broker), delete))

    async def export_pop_records(self, *, broker: str) -> None:
        """Let a broker move its records of pops from its KV store to files; raises TooOld at RocketMQ 4.x."""
        (place,) = await self._places(None, broker)
        await self._since_5(place, PopRollback(), "exporting records of pops")

    async def check_queue_stores(self, topic: str = "", *, since_ms: int | None = None, broker: str) -> QueueCheck:
        """Let a broker compare its queues in files with those in its KV store; its log has the result."""
        (place,) = await self._places(None, broker)
        request = CheckRocksDbCqWriteProgress(topic=topic or None, check_store_time=since_ms)
        return QueueCheck.decode((await self._since_5(place, request, "comparing queues")).body)

    async def export_key_value_configs(self, kinds: Sequence[str], *, broker: str) -> None:
        """Let a broker write settings of its KV store as JSON files: topics, subscriptionGroups, consumerOffsets."""
        (place,) = await self._places(None, broker)
        request = ExportRocksDbConfigToJson(config_type=";".join(kinds))
        await self._since_5(place, request, "exporting settings")

    async def add_broker_to_container(self, container: str, config_path: str) -> None:
        """Let a container run one more broker, from a .conf file on its machine."""
        (place,) = await self._places(None, container)
        await self._since_5(place, AddBroker(config_path=config_path), "adding a broker")

    async def remove_broker_from_container(
        self, container: str, cluster: str, broker_name: str, broker_id: int
    ) -> None:
        """Let a container stop one of its brokers."""
        (place,) = await self._places(None, container)
        request = RemoveBroker(broker_name=broker_name, broker_cluster_name=cluster, broker_id=broker_id)
        await self._since_5(place, request, "removing a broker")

    # ── replication ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def ha_status(
        self, *, cluster: str | None = None, broker: str | None = None, with_slaves: bool = False
    ) -> dict[BrokerPlace, HaStatus]:
        """How replication stands, at masters or also at slaves; raises NotOffered at RocketMQ 4.x."""

        async def status(place: BrokerPlace) -> HaStatus:
            return HaStatus.decode((await self._since_5(place, GetBrokerHaStatus(), "asking for replication")).body)

        return await self._each(await self._places(cluster, broker, with_slaves=with_slaves), status)

    async def reset_master_flush_offset(self, offset: int, *, broker: str) -> None:
        """Tell a slave where its master's log is on disk."""
        (place,) = await self._places(None, broker)
        await self._since_5(place, ResetMasterFlushOffset(master_flush_offset=offset), "setting a flush offset")

    # ── reads of cold data ───────────────────────────────────────────────────────────────────────────────────────────

    async def cold_data_limits(
        self, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[BrokerPlace, str]:
        """Limits for reading old data and what is read, as JSON text."""

        async def limits(place: BrokerPlace) -> str:
            reply = await self._since_5(place, GetColdDataFlowCtrInfo(), "asking for limits of cold reads")
            return bytes(reply.body).decode("utf-8", "replace")

        return await self._each(await self._places(cluster, broker, with_slaves=True), limits)

    async def set_cold_data_limit(
        self, group: str, threshold: int, *, cluster: str | None = None, broker: str | None = None
    ) -> list[BrokerPlace]:
        """How many bytes of old data a group may read in a while. Where it was done."""
        text = properties_text({self._full(group): str(threshold)}).encode()

        async def put(place: BrokerPlace) -> None:
            await self._since_5(place, UpdateColdDataFlowCtrConfig(), "limiting cold reads", text)

        return list(await self._each(await self._places(cluster, broker), put))

    async def remove_cold_data_limit(
        self, group: str, *, cluster: str | None = None, broker: str | None = None
    ) -> list[BrokerPlace]:
        """The group reads old data under the common limit again. Where it was done."""
        name = self._full(group).encode()

        async def remove(place: BrokerPlace) -> None:
            await self._since_5(place, RemoveColdDataFlowCtrConfig(), "removing a limit of cold reads", name)

        return list(await self._each(await self._places(cluster, broker), remove))

    async def set_read_ahead(
        self, mode: str, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[BrokerPlace, str]:
        """How far the system reads ahead in logs: 0 as usual, 1 not at all; what brokers say of it."""

        async def put(place: BrokerPlace) -> str:
            reply = await self._since_5(place, SetCommitLogReadMode(read_ahead_mode=mode), "setting read-ahead")
            return reply.remark or ""

        return await self._each(await self._places(cluster, broker, with_slaves=True), put)
