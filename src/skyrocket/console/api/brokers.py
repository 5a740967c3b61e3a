"""Brokers and name servers: how each is, its settings, and who may be written to."""

from dataclasses import dataclass
from typing import Final

from skyrocket.client.core.errors import BrokerRefused
from skyrocket.config.sections.broker import BrokerConfig
from skyrocket.config.sections.store import StoreConfig
from skyrocket.config.sources import shown_pairs_of
from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.topics import Difference, Differences
from skyrocket.console.api.values import BadInput
from skyrocket.console.cluster.name_servers import NameServerRow
from skyrocket.console.cluster.runtime import BrokerState
from skyrocket.console.telling.secrets import STARS, is_secret
from skyrocket.model.words import said, said_of
from skyrocket.protocol.bodies.replication import HaStatus

family = Family("Cluster")

_GROUPS: Final = (
    ("Store", ("commitLog", "consumeQueue", "dispatch", "earliest", "putMessage", "pageCache", "remain", "getMessage")),
    ("Rates", ("putTps", "getFound", "getMiss", "getTotal", "getTransfer", "msgPut", "msgGet", "putLatency")),
    ("Replication", ("ha", "masterEpoch", "masterAddr", "slave", "brokerRole", "inSync")),
    ("Timer", ("timer", "schedule")),
    ("Queues of requests", ("send", "pull", "litePull", "query", "ack", "endTransaction", "EndTransaction")),
)
# Where a broker runs decides about paths and names: nobody sets them, and they differ all the same.
_OF_THE_PLACE: Final = frozenset({"brokerIP1", "brokerIP2", "brokerName", "rocketmqHome", "listenPort", "haListenPort"})
_DEFAULTS: Final = {
    key: value
    for section in (BrokerConfig(), StoreConfig())
    for key, value in shown_pairs_of(section).items()
    if key not in _OF_THE_PLACE and not key.startswith("storePath")
}


@dataclass(frozen=True, slots=True)
class SlaveRow:
    """A slave as its master sees it."""

    broker: str
    address: str
    lag_bytes: int
    in_sync: bool
    bytes_per_second: int


@dataclass(frozen=True, slots=True)
class ClusterPage:
    """Brokers, slaves and name servers."""

    brokers: list[BrokerState]
    slaves: list[SlaveRow]
    name_servers: list[NameServerRow]


@family.get("/api/cluster")
async def cluster(call: Call) -> ClusterPage:
    """All brokers with their state, how replication stands, and the name servers."""
    brokers = await call.parts.view.brokers.get()
    slaves = []
    for broker in brokers:
        if broker.role == "master" and broker.is_up and _has_slave(broker, brokers):
            status = await _ha(call, broker.address)
            slaves += [
                SlaveRow(
                    broker.broker, each.address or "", each.lag_bytes, each.in_sync, each.transferred_bytes_per_second
                )
                for each in (status.connections if status is not None else ())
            ]
    return ClusterPage(brokers, slaves, await call.parts.view.name_servers.get())


def _has_slave(master: BrokerState, brokers: list[BrokerState]) -> bool:
    return any(each.broker == master.broker and each.role == "slave" for each in brokers)


async def _ha(call: Call, address: str) -> HaStatus | None:
    try:
        return next(iter((await call.admin.ha_status(broker=address)).values()))
    except BrokerRefused:  # RocketMQ 4 does not tell
        return None


@dataclass(frozen=True, slots=True)
class RuntimeGroup:
    """Rows that belong together."""

    name: str
    rows: dict[str, str]


@dataclass(frozen=True, slots=True)
class BrokerPage:
    """One broker."""

    state: BrokerState
    runtime: list[RuntimeGroup]


@family.get("/api/brokers/{address}")
async def broker(call: Call) -> BrokerPage:
    """Everything that one broker counts, in groups."""
    state = await _known(call)
    rows = next(iter((await call.admin.runtime_info(broker=state.address)).values())) if state.is_up else {}
    return BrokerPage(state, _grouped(rows))


async def _known(call: Call) -> BrokerState:
    """Only brokers of the cluster: the console asks no address just because a browser names it."""
    address = call.path["address"]
    for state in await call.parts.view.brokers.get():
        if state.address == address:
            return state
    raise BadInput("there is no broker at {address}: /api/cluster lists them", address=address)


def _grouped(rows: dict[str, str]) -> list[RuntimeGroup]:
    rest = dict(sorted(rows.items()))
    found = []
    for name, beginnings in _GROUPS:
        of_group = {key: value for key, value in rest.items() if key.startswith(beginnings)}
        rest = {key: value for key, value in rest.items() if key not in of_group}
        found.append(RuntimeGroup(name, of_group))
    return [RuntimeGroup("General", rest), *found]


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """All settings by key, and their defaults where they are known; secrets are not shown."""

    settings: dict[str, str]
    defaults: dict[str, str]  # of Skyrocket, which are RocketMQ's unless its documentation says otherwise


@family.get("/api/brokers/{address}/settings")
async def settings(call: Call) -> BrokerSettings:
    """All settings of one broker."""
    known = next(iter((await call.admin.broker_settings(broker=(await _known(call)).address)).values()))
    shown = {key: STARS if is_secret(key) and value else value for key, value in sorted(known.items())}
    return BrokerSettings(shown, {key: value for key, value in _DEFAULTS.items() if key in known})


@dataclass(frozen=True, slots=True)
class SettingsWanted:
    """Settings by key, as RocketMQ names them."""

    settings: dict[str, str]


def _said(wanted: SettingsWanted) -> dict[str, str]:
    """Without secrets that come back as they were shown."""
    return {key: value for key, value in wanted.settings.items() if not (is_secret(key) and value == STARS)}


@family.post("/api/brokers/{address}/settings/preview")
async def preview_settings(call: Call, wanted: SettingsWanted) -> Differences:
    """What a change would do, without doing it."""
    changes = await call.admin.setting_changes(_said(wanted), broker=(await _known(call)).address)
    return Differences(
        [
            Difference(str(each.place), each.key, STARS if is_secret(each.key) else each.before or "", each.after)
            for each in changes
        ]
    )


@family.put("/api/brokers/{address}/settings")
async def change_settings(call: Call, wanted: SettingsWanted) -> Done:
    """Change settings while the broker runs; it keeps them."""
    state = await _known(call)
    changes = await call.admin.setting_changes(_said(wanted), broker=state.address)
    call.before = {each.key: STARS if is_secret(each.key) else each.before for each in changes}
    call.after = {each.key: STARS if is_secret(each.key) else each.after for each in changes}
    await call.admin.apply_setting_changes(changes)
    now = next(iter((await call.admin.broker_settings(broker=state.address)).values()))
    unkept = [each.key for each in changes if now.get(each.key) != each.after]
    if unkept:
        raise BadInput(
            "the broker took the request and did not change {names}: look at its log", names=", ".join(unkept)
        )
    if not changes:
        return Done(said("nothing was changed at {broker}", broker=state.broker))
    names = ", ".join(each.key for each in changes)
    return Done(said("{names} was changed at {broker}", names=names, broker=state.broker))


@dataclass(frozen=True, slots=True)
class WritingWanted:
    """Whether clients may send to a broker."""

    broker: str
    allowed: bool


@family.post("/api/writing")
async def writing(call: Call, wanted: WritingWanted) -> Done:
    """Wipe or give back the write permission of a broker at the name servers: to empty it before it is stopped."""
    change = call.admin.add_write_permission if wanted.allowed else call.admin.wipe_write_permission
    counts = await change(wanted.broker)
    topics = said_of(max(counts.values(), default=0), "{n:,} topic", "{n:,} topics")
    if wanted.allowed:
        return Done(said("{broker} may be written to: {topics}", broker=wanted.broker, topics=topics))
    return Done(said("{broker} is not written to any more: {topics}", broker=wanted.broker, topics=topics))
