"""Consumer groups: how far they are, who is in them, and moving them."""

from dataclasses import dataclass
from typing import Final

from skyrocket.client.admin.side_by_side import each
from skyrocket.client.core.errors import NotFound
from skyrocket.console.api.endpoint import Call, Family
from skyrocket.console.api.paging import none_last, page_of
from skyrocket.console.cluster import groups as of_groups
from skyrocket.console.cluster.groups import GroupFigures
from skyrocket.console.cluster.view import ClusterView
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.system_groups import is_system_group
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX
from skyrocket.protocol.bodies.connections import ConsumerConnections
from skyrocket.protocol.codes import version_name

family = Family("Groups")

_NOTHING: Final = GroupFigures((), 0, None, 0)


@dataclass(frozen=True, slots=True)
class GroupsWanted:
    """A page of the list."""

    search: str = ""
    system: bool = False
    sort: str = "name"
    page: int = 1
    size: int = 50


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group in the list."""

    name: str
    state: str  # online, lagging, stopped, idle, unknown
    clients: int
    mode: str  # CLUSTERING or BROADCASTING; "" while nobody is connected
    topics: list[str]
    lag: int
    late_ms: int | None
    out_per_second: float | None
    dead_letters: int
    retries: int  # that are due again, part of the lag
    lag_change: int | None  # over the last minutes; None before the second look


@dataclass(frozen=True, slots=True)
class GroupsPage:
    """Rows, and how many there are in all."""

    rows: list[GroupRow]
    total: int


@family.get("/api/groups")
async def groups(call: Call, wanted: GroupsWanted) -> GroupsPage:
    """Groups with their lag, in messages and in time."""
    view = call.parts.view
    figures = await view.group_figures()
    names = [
        name
        for name in (await view.groups.get()).keys() | figures.keys()
        if wanted.search.lower() in name.lower() and (wanted.system or not is_system_group(name))
    ]
    keys = {
        "name": lambda name: name.lower(),
        "lag": lambda name: figures.get(name, _NOTHING).lag,
        "late": lambda name: none_last(figures.get(name, _NOTHING).late_ms),
        "out": lambda name: none_last(view.out_per_second(name)),
        "retries": lambda name: figures.get(name, _NOTHING).retries,
        "topics": lambda name: len(figures.get(name, _NOTHING).topics),
    }
    chosen, total = page_of(sorted(names), wanted.sort, keys, wanted.page, wanted.size)
    members = await each(chosen, view.members.get)
    dead = await dead_letters(view, chosen)
    return GroupsPage([_row(view, name, figures, members[name], dead[name]) for name in chosen], total)


async def dead_letters(view: ClusterView, names: list[str]) -> dict[str, int]:
    """How many dead letters each group has."""
    shapes = await view.topics.get()
    with_some = [name for name in names if DLQ_PREFIX + name in shapes]
    known = await each([DLQ_PREFIX + name for name in with_some], view.topic_figures.get)
    return {name: known[DLQ_PREFIX + name].messages if name in with_some else 0 for name in names}


def _row(
    view: ClusterView, name: str, figures: dict[str, GroupFigures], members: ConsumerConnections | None, dead: int
) -> GroupRow:
    known, rate = figures.get(name, _NOTHING), view.out_per_second(name)
    clients = 0 if members is None else len(members.connections)
    subscribed = () if members is None else (t for t in members.subscriptions if not t.startswith(RETRY_PREFIX))
    return GroupRow(
        name,
        of_groups.state(clients=clients, lag=known.lag, rate=rate),
        clients,
        (members.message_model or "") if members is not None else "",
        sorted({*known.topics, *subscribed}),
        known.lag,
        known.late_ms,
        rate,
        dead,
        known.retries,
        view.lag_change(name, known.lag),
    )


# ── one group ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class LagRow:
    """One queue of a group."""

    topic: str
    broker: str
    queue: int
    broker_offset: int
    consumer_offset: int
    lag: int
    in_flight: int | None
    last_consumed_ms: int | None


@dataclass(frozen=True, slots=True)
class ClientRow:
    """One member."""

    client_id: str
    address: str
    language: str
    version: str


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    """What members say they want."""

    topic: str
    expression: str
    kind: str


@dataclass(frozen=True, slots=True)
class GroupOnBroker:
    """As one broker has it."""

    broker: str
    may_consume: bool
    may_consume_broadcast: bool
    consumes_orderly: bool
    retry_queues: int
    retry_max_times: int
    consume_timeout_minutes: int
    attributes: dict[str, str]


@dataclass(frozen=True, slots=True)
class GroupPage:
    """Everything about one group."""

    row: GroupRow
    queues: list[LagRow]
    clients: list[ClientRow]
    consume_type: str
    consume_from: str
    subscriptions: list[SubscriptionRow]
    configs: list[GroupOnBroker]


@family.get("/api/groups/{group}")
async def group(call: Call) -> GroupPage:
    """Lag per queue, members, subscriptions and configuration."""
    name, view = call.path["group"], call.parts.view
    members, figures = await view.members.get(name), await view.group_figures()
    lags = (await view.lags.get()).get(name, [])
    try:
        configs = await call.admin.group_configs(name)
    except NotFound:
        if members is None and not lags:
            raise
        configs = {}
    dead = await dead_letters(view, [name])
    return GroupPage(
        _row(view, name, figures, members, dead[name]),
        [
            LagRow(
                lag.queue.topic,
                lag.queue.broker_name,
                lag.queue.queue_id,
                lag.broker_offset,
                lag.consumer_offset,
                lag.lag,
                None if lag.pull_offset is None else lag.in_flight,
                lag.last_timestamp or None,
            )
            for lag in sorted(lags, key=lambda lag: lag.queue)
        ],
        _clients(members),
        (members.consume_type or "") if members is not None else "",
        (members.consume_from_where or "") if members is not None else "",
        _subscriptions(members),
        [_config(place.broker_name, config) for place, config in configs.items()],
    )


def _clients(members: ConsumerConnections | None) -> list[ClientRow]:
    connections = () if members is None else members.connections
    rows = [
        ClientRow(each.client_id, each.client_address, each.language or "", version_name(each.version))
        for each in connections
    ]
    return sorted(rows, key=lambda row: row.client_id)


def _subscriptions(members: ConsumerConnections | None) -> list[SubscriptionRow]:
    known = {} if members is None else members.subscriptions
    return [
        SubscriptionRow(topic, each.expression or "*", each.expression_type or "TAG")
        for topic, each in sorted(known.items())
    ]


def _config(broker: str, config: SubscriptionGroup) -> GroupOnBroker:
    return GroupOnBroker(
        broker,
        config.may_consume,
        config.may_consume_broadcast,
        config.consumes_orderly,
        config.retry_queues,
        config.retry_max_times,
        config.consume_timeout_minutes,
        dict(config.attributes),
    )


@dataclass(frozen=True, slots=True)
class MemberQueue:
    """One queue that a member has."""

    topic: str
    broker: str
    queue: int
    cached: int
    commit_offset: int
    is_locked: bool
    last_pull_ms: int | None
    last_consume_ms: int | None


@dataclass(frozen=True, slots=True)
class MemberRate:
    """How fast a member is in one topic."""

    topic: str
    consume_ok_per_second: float
    consume_failed_per_second: float
    consume_ms: float
    pull_per_second: float


@dataclass(frozen=True, slots=True)
class MemberPage:
    """What a member tells about itself."""

    client_id: str
    properties: dict[str, str]
    queues: list[MemberQueue]
    rates: list[MemberRate]
    stacks: str


@dataclass(frozen=True, slots=True)
class MemberWanted:
    """`stacks`: what its threads do."""

    stacks: bool = False


@family.get("/api/groups/{group}/clients/{client_id}")
async def member(call: Call, wanted: MemberWanted) -> MemberPage:
    """What one running member tells: its queues, rates and, if asked, stacks."""
    client_id = call.path["client_id"]
    info = await call.admin.running_info(call.path["group"], client_id, with_stacks=wanted.stacks)
    queues = [
        MemberQueue(
            queue.topic,
            queue.broker_name,
            queue.queue_id,
            each.cached_messages,
            each.commit_offset,
            each.is_locked,
            each.last_pull_timestamp or None,
            each.last_consume_timestamp or None,
        )
        for queue, each in sorted(info.queues.items())
    ]
    rates = [
        MemberRate(topic, each.consume_ok_tps, each.consume_failed_tps, each.consume_rt, each.pull_tps)
        for topic, each in sorted(info.status.items())
    ]
    return MemberPage(client_id, dict(info.properties), queues, rates, info.jstack or "")
