"""Topics: the list, one of them, and what can be done with it."""

from dataclasses import dataclass, field
from typing import Final, Literal

from skyrocket.client.admin.side_by_side import each
from skyrocket.client.admin.topic_admin import TopicChange
from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.paging import none_last, page_of
from skyrocket.console.api.values import BadInput
from skyrocket.console.cluster.groups import figures as group_figures
from skyrocket.console.cluster.topics import TopicFigures, TopicShape, kind_of
from skyrocket.console.telling.counts import brokers
from skyrocket.model.permission import PERM_READ, PERM_WRITE
from skyrocket.model.topic_config import TopicConfig
from skyrocket.model.words import said

family = Family("Topics")

_KIND_ATTRIBUTE: Final = "message.type"


@dataclass(frozen=True, slots=True)
class TopicsWanted:
    """A page of the list; `kind` is one kind, `own` (all but those of the system), or `all`."""

    search: str = ""
    kind: str = "own"
    sort: str = "name"
    page: int = 1
    size: int = 50


@dataclass(frozen=True, slots=True)
class TopicRow:
    """One topic in the list."""

    name: str
    kind: str
    brokers: list[str]
    read_queues: int
    write_queues: int
    permission: int
    messages: int
    oldest_ms: int | None  # None: nothing is there, or it has not been asked for yet
    newest_ms: int | None
    in_per_second: float | None
    out_per_second: float
    groups: int
    lag: int


@dataclass(frozen=True, slots=True)
class TopicsPage:
    """Rows, how many there are in all, and how many of each kind."""

    rows: list[TopicRow]
    total: int
    kinds: dict[str, int]


@family.get("/api/topics")
async def topics(call: Call, wanted: TopicsWanted) -> TopicsPage:
    """Topics with their rates; sorted by what is asked for, a page at a time."""
    view = call.parts.view
    shapes = await view.topics.get()
    kinds: dict[str, int] = {}
    for shape in shapes.values():
        kinds[shape.kind] = kinds.get(shape.kind, 0) + 1
    chosen = [shape for shape in shapes.values() if _is_wanted(shape, wanted)]
    lags = await _lag_by_topic(call)
    keys = {
        "name": lambda shape: shape.name.lower(),
        "kind": lambda shape: (shape.kind, shape.name.lower()),
        "queues": lambda shape: shape.read_queues,
        "lag": lambda shape: lags.get(shape.name, _NO_LAG).lag,
        "groups": lambda shape: lags.get(shape.name, _NO_LAG).groups,
        "out": lambda shape: lags.get(shape.name, _NO_LAG).out_per_second,
    }
    known: dict[str, TopicFigures] = {}
    if wanted.sort.removeprefix("-") in ("in", "messages", "newest"):  # by what only the topics themselves tell
        known = await view.figures_of([shape.name for shape in chosen])
        keys |= {
            "in": lambda shape: none_last(known[shape.name].in_per_second),
            "messages": lambda shape: known[shape.name].messages,
            "newest": lambda shape: none_last(known[shape.name].newest_ms),
        }
    rows, total = page_of(chosen, wanted.sort, keys, wanted.page, wanted.size)
    known = await each([shape.name for shape in rows], view.topic_figures.get)
    oldest = await view.oldest_of([name for name, figures in known.items() if figures.messages])
    return TopicsPage(
        [_row(shape, known[shape.name], oldest.get(shape.name), lags.get(shape.name, _NO_LAG)) for shape in rows],
        total,
        kinds,
    )


def _is_wanted(shape: TopicShape, wanted: TopicsWanted) -> bool:
    if wanted.search.lower() not in shape.name.lower():
        return False
    if wanted.kind == "own":
        return shape.kind not in ("SYSTEM", "RETRY", "DLQ")
    return wanted.kind in ("all", shape.kind)


@dataclass(frozen=True, slots=True)
class _TopicLag:
    groups: int
    lag: int
    out_per_second: float


_NO_LAG: Final = _TopicLag(0, 0, 0.0)


async def _lag_by_topic(call: Call) -> dict[str, _TopicLag]:
    view = call.parts.view
    found: dict[str, _TopicLag] = {}
    for group, queues in (await view.lags.get()).items():
        of_group: dict[str, int] = {}
        for queue in queues:
            of_group[queue.queue.topic] = of_group.get(queue.queue.topic, 0) + max(queue.lag, 0)
        for topic, lag in of_group.items():
            before = found.get(topic, _NO_LAG)
            rate = view.out_per_second(group, topic) or 0.0
            found[topic] = _TopicLag(before.groups + 1, before.lag + lag, before.out_per_second + rate)
    return found


def _row(shape: TopicShape, figures: TopicFigures, oldest_ms: int | None, lag: _TopicLag) -> TopicRow:
    return TopicRow(
        shape.name,
        shape.kind,
        list(shape.brokers),
        shape.read_queues,
        shape.write_queues,
        shape.permission,
        figures.messages,
        oldest_ms,
        figures.newest_ms,
        figures.in_per_second,
        lag.out_per_second,
        lag.groups,
        lag.lag,
    )


# ── one topic ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class TopicOnBroker:
    """As one broker has it."""

    broker: str
    address: str
    read_queues: int
    write_queues: int
    permission: int
    ordered: bool
    attributes: dict[str, str]


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue."""

    broker: str
    queue: int
    min_offset: int
    max_offset: int
    messages: int
    newest_ms: int | None
    in_per_second: float | None  # None before the second look


@dataclass(frozen=True, slots=True)
class GroupOfTopic:
    """A group that consumes it."""

    group: str
    lag: int
    late_ms: int | None
    out_per_second: float | None
    clients: int


@dataclass(frozen=True, slots=True)
class TopicPage:
    """Everything about one topic."""

    name: str
    kind: str
    messages: int
    in_per_second: float | None
    newest_ms: int | None
    lag: int
    configs: list[TopicOnBroker]
    queues: list[QueueRow]
    groups: list[GroupOfTopic]


@family.get("/api/topics/{topic}")
async def topic(call: Call) -> TopicPage:
    """Configuration, queues and groups of a topic."""
    name, view = call.path["topic"], call.parts.view
    configs = await call.admin.topic_configs(name)
    stats = await call.admin.topic_statistics(name)
    figures = await view.topic_figures.get(name)
    queues = [
        QueueRow(
            place.broker_name,
            queue.queue_id,
            offset.min_offset,
            offset.max_offset,
            max(offset.max_offset - max(offset.min_offset, 0), 0),
            offset.last_update_timestamp or None,
            view.queue_in_per_second(queue, offset.max_offset),
        )
        for place, of_broker in stats.items()
        for queue, offset in sorted(of_broker.offsets.items())
    ]
    groups = await groups_of(call, name)
    return TopicPage(
        name,
        kind_of(name, next(iter(configs.values()))),
        figures.messages,
        figures.in_per_second,
        figures.newest_ms,
        sum(group.lag for group in groups),
        [
            TopicOnBroker(
                place.broker_name,
                place.address,
                config.read_queues,
                config.write_queues,
                config.permission,
                config.ordered,
                dict(config.attributes),
            )
            for place, config in configs.items()
        ],
        queues,
        groups,
    )


async def groups_of(call: Call, topic: str) -> list[GroupOfTopic]:
    """Who consumes a topic, those that wait longest first."""
    view, lags = call.parts.view, await call.parts.view.lags.get()
    names = await call.admin.groups_of_topic(topic)
    members = await each(names, view.members.get)
    found = []
    for group in names:
        of_topic = [lag for lag in lags.get(group, []) if lag.queue.topic == topic]
        figures = group_figures(of_topic, view.waits.since(group), call.now_ms)
        connected = members[group]
        clients = 0 if connected is None else len(connected.connections)
        found.append(GroupOfTopic(group, figures.lag, figures.late_ms, view.out_per_second(group, topic), clients))
    return sorted(found, key=lambda row: (-row.lag, row.group))


# ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that shall be there; on one broker, on those of a cluster, or on all."""

    name: str
    kind: Literal["NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"] = "NORMAL"
    queues: int = 8
    permission: int = PERM_READ | PERM_WRITE
    ordered: bool = False
    cluster: str | None = None
    broker: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)


@family.post("/api/topics")
async def create_topic(call: Call, wanted: NewTopic) -> Done:
    """Create a topic where it is not yet; one that is there already is refused: it is changed elsewhere."""
    chosen = await call.admin.brokers(cluster=wanted.cluster, broker=wanted.broker, with_slaves=False)
    if wanted.name in await call.admin.topics():
        there = {place.broker_name for place in await call.admin.topic_configs(wanted.name)}
        there.add("")  # of a broker that is named by an address nobody says whether it is one of them
        chosen = [place for place in chosen if place.broker_name not in there]
    if not chosen:
        raise BadInput("topic {name} is there already: change it on its own page", name=wanted.name)
    attributes = dict(wanted.attributes)
    if wanted.kind != "NORMAL":  # RocketMQ 4 knows no attributes, and every topic there is NORMAL
        attributes[_KIND_ATTRIBUTE] = wanted.kind
    config = TopicConfig(
        wanted.name,
        wanted.queues,
        wanted.queues,
        wanted.permission,
        ordered=wanted.ordered,
        attributes=attributes,
    )
    places = await call.admin.put_topic(config, places=chosen)
    return Done(
        said(
            "topic {name} was created on {names}",
            name=wanted.name,
            names=", ".join(place.broker_name or place.address for place in places),
        )
    )


@dataclass(frozen=True, slots=True)
class TopicWanted:
    """What shall be different; what is not named stays."""

    read_queues: int | None = None
    write_queues: int | None = None
    permission: int | None = None
    ordered: bool | None = None
    attributes: dict[str, str | None] = field(default_factory=dict)
    broker: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """One field on one broker, before and after."""

    broker: str
    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Differences:
    """What a change would do."""

    differences: list[Difference]


@family.post("/api/topics/{topic}/preview")
async def preview_topic(call: Call, wanted: TopicWanted) -> Differences:
    """What a change would do, without doing it."""
    return Differences(differences_of(await _changes(call, wanted)))


@family.put("/api/topics/{topic}")
async def change_topic(call: Call, wanted: TopicWanted) -> Done:
    """Change fields of a topic on its brokers; all others stay."""
    changes = await _changes(call, wanted)
    differences = differences_of(changes)
    call.before = {f"{each.broker} {each.field}": each.before for each in differences}
    call.after = {f"{each.broker} {each.field}": each.after for each in differences}
    await call.admin.apply_topic_changes(changes)
    return Done(said("topic {name} was changed on {brokers}", name=call.path["topic"], brokers=brokers(changes)))


async def _changes(call: Call, wanted: TopicWanted) -> list[TopicChange]:
    return await call.admin.topic_changes(
        call.path["topic"],
        read_queues=wanted.read_queues,
        write_queues=wanted.write_queues,
        permission=wanted.permission,
        ordered=wanted.ordered,
        attributes=wanted.attributes,
        broker=wanted.broker,
    )


def differences_of(changes: list[TopicChange]) -> list[Difference]:
    """Field by field."""
    found = []
    for change in changes:
        before = change.before
        for name in ("read_queues", "write_queues", "permission", "ordered", "attributes"):
            was, will = getattr(before, name) if before is not None else "", getattr(change.after, name)
            if was != will:
                found.append(Difference(change.place.broker_name, name, str(was), str(will)))
    return found


@dataclass(frozen=True, slots=True)
class Impact:
    """What deleting would take away."""

    messages: int
    groups: list[GroupOfTopic]
    clients: int
    lag: int


@family.get("/api/topics/{topic}/impact")
async def impact(call: Call) -> Impact:
    """What would be lost if the topic were deleted."""
    name = call.path["topic"]
    groups = await groups_of(call, name)
    figures = await call.parts.view.topic_figures.get(name)
    return Impact(figures.messages, groups, sum(group.clients for group in groups), sum(group.lag for group in groups))


@family.delete("/api/topics/{topic}")
async def delete_topic(call: Call) -> Done:
    """Delete a topic with its messages, from brokers and name servers."""
    name = call.path["topic"]
    configs = await call.admin.topic_configs(name)  # one that is not there is not found, rather than deleted
    call.before = {place.broker_name: str(config) for place, config in configs.items()}
    await call.admin.delete_topic(name)
    return Done(said("topic {name} was deleted", name=name))
