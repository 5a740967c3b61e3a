"""Changes of consumer groups: create, configure, delete, and move them."""

from dataclasses import dataclass
from typing import Any, Literal

from skyrocket.client.admin.group_admin import GroupChange
from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.topics import Difference, Differences
from skyrocket.console.api.values import BadInput
from skyrocket.console.telling.counts import brokers
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.words import said, said_of

family = Family("Groups")


@dataclass(frozen=True, slots=True)
class NewGroup:
    """A group that shall be there."""

    name: str
    consumes_orderly: bool = False
    may_consume_broadcast: bool = True
    retry_max_times: int = 16
    retry_queues: int = 1
    cluster: str | None = None
    broker: str | None = None


@family.post("/api/groups")
async def create_group(call: Call, wanted: NewGroup) -> Done:
    """Create a group; one that is there is refused: it is changed elsewhere."""
    if wanted.name in await call.admin.groups():
        raise BadInput("group {name} is there already: change it on its own page", name=wanted.name)
    config = SubscriptionGroup(
        wanted.name,
        may_consume_broadcast=wanted.may_consume_broadcast,
        consumes_orderly=wanted.consumes_orderly,
        retry_queues=wanted.retry_queues,
        retry_max_times=wanted.retry_max_times,
    )
    await call.admin.create_group(config, cluster=wanted.cluster, broker=wanted.broker)
    return Done(said("group {name} was created", name=wanted.name))


@dataclass(frozen=True, slots=True)
class GroupWanted:
    """What shall be different; what is not named stays."""

    may_consume: bool | None = None
    may_consume_broadcast: bool | None = None
    consumes_orderly: bool | None = None
    retry_queues: int | None = None
    retry_max_times: int | None = None
    consume_timeout_minutes: int | None = None

    def fields(self) -> dict[str, Any]:
        """Those that are named."""
        named = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in named.items() if value is not None}


@family.post("/api/groups/{group}/preview")
async def preview_group(call: Call, wanted: GroupWanted) -> Differences:
    """What a change would do, without doing it."""
    changes = await call.admin.group_changes(call.path["group"], wanted.fields())
    return Differences(_differences(changes, wanted))


@family.put("/api/groups/{group}")
async def change_group(call: Call, wanted: GroupWanted) -> Done:
    """Change fields of a group on its brokers; all others stay."""
    changes = await call.admin.group_changes(call.path["group"], wanted.fields())
    differences = _differences(changes, wanted)
    call.before = {f"{each.broker} {each.field}": each.before for each in differences}
    call.after = {f"{each.broker} {each.field}": each.after for each in differences}
    await call.admin.apply_group_changes(changes)
    return Done(said("group {name} was changed on {brokers}", name=call.path["group"], brokers=brokers(changes)))


def _differences(changes: list[GroupChange], wanted: GroupWanted) -> list[Difference]:
    return [
        Difference(change.place.broker_name, name, str(getattr(change.before, name)), str(value))
        for change in changes
        for name, value in wanted.fields().items()
        if getattr(change.before, name) != value
    ]


@family.delete("/api/groups/{group}")
async def delete_group(call: Call) -> Done:
    """Delete a group with its offsets; its retries and dead letters stay."""
    name = call.path["group"]
    await call.admin.group_configs(name)
    await call.admin.delete_group(name, with_offsets=True)
    return Done(said("group {name} was deleted", name=name))


@dataclass(frozen=True, slots=True)
class ResetWanted:
    """Where a group shall go on in a topic: a time, an offset of every queue, or one of the ends."""

    topic: str
    to: Literal["earliest", "latest", "time", "offset"] = "latest"
    at_ms: int | None = None
    offset: int | None = None

    def moment(self) -> float | None:
        """Seconds since 1970, None for the end; raises BadInput."""
        if self.to == "latest":
            return None
        if self.to == "earliest":
            return 0.0
        if self.at_ms is None:
            raise BadInput("at_ms is missing: to what time?")
        return self.at_ms / 1000

    def chosen_offset(self) -> int | None:
        """For every queue, None when it is a moment; raises BadInput."""
        if self.to != "offset":
            return None
        if self.offset is None or self.offset < 0:
            raise BadInput("offset is missing or negative: at which offset of every queue?")
        return self.offset


@dataclass(frozen=True, slots=True)
class MoveRow:
    """One queue of a reset."""

    broker: str
    queue: int
    committed: int | None
    target: int
    skipped: int
    repeated: int
    left: int


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """What a reset would do."""

    skipped: int
    repeated: int
    clients: int
    moves: list[MoveRow]


@family.get("/api/groups/{group}/reset")
async def preview_reset(call: Call, wanted: ResetWanted) -> ResetPlan:
    """What a reset would skip and repeat, queue by queue; changes nothing."""
    group, offset = call.path["group"], wanted.chosen_offset()
    if offset is None:
        preview = await call.admin.preview_reset(group, wanted.topic, wanted.moment())
    else:
        preview = await call.admin.preview_offset(group, wanted.topic, offset)
    members = await call.parts.view.members.get(group)
    moves = [
        MoveRow(
            move.queue.broker_name,
            move.queue.queue_id,
            move.committed,
            move.target,
            move.skipped,
            move.repeated,
            move.left,
        )
        for move in preview.moves
    ]
    clients = 0 if members is None else len(members.connections)
    return ResetPlan(preview.skipped, preview.repeated, clients, moves)


@family.post("/api/groups/{group}/reset")
async def reset(call: Call, wanted: ResetWanted) -> Done:
    """Let a group go on elsewhere; running members are told."""
    name, offset = call.path["group"], wanted.chosen_offset()
    lags = await call.admin.consumer_lag(name, wanted.topic)
    call.before = {f"{lag.queue.broker_name}:{lag.queue.queue_id}": lag.consumer_offset for lag in lags}
    if offset is None:
        moved = await call.admin.reset_offsets(name, wanted.topic, wanted.moment())
    else:
        moved = await call.admin.move_to_offset(name, wanted.topic, offset)
    return Done(
        said(
            "group {name} goes on elsewhere in {queues} of {topic}",
            name=name,
            queues=said_of(len(moved), "{n:,} queue", "{n:,} queues"),
            topic=wanted.topic,
        ),
        {f"{queue.broker_name}:{queue.queue_id}": str(offset) for queue, offset in moved.items()},
    )


@dataclass(frozen=True, slots=True)
class QueueMoveWanted:
    """One queue, and the offset to go on with."""

    topic: str
    broker: str
    queue: int
    offset: int


@family.post("/api/groups/{group}/move")
async def move_queue(call: Call, wanted: QueueMoveWanted) -> Done:
    """Let a group go on at an offset of one queue."""
    queue = MessageQueue(wanted.topic, wanted.broker, wanted.queue)
    call.before = {"offset": await call.admin.committed(call.path["group"], queue)}
    call.after = {"offset": wanted.offset}
    await call.admin.move_queue(call.path["group"], queue, wanted.offset)
    return Done(
        said(
            "queue {queue} at {broker} goes on with offset {offset}",
            queue=wanted.queue,
            broker=wanted.broker,
            offset=wanted.offset,
        )
    )


@dataclass(frozen=True, slots=True)
class CloneWanted:
    """Another group that shall be as far."""

    topic: str
    target: str


@family.post("/api/groups/{group}/clone")
async def clone(call: Call, wanted: CloneWanted) -> Done:
    """Let another group go on in a topic where this one is."""
    await call.admin.clone_offsets(call.path["group"], wanted.target, wanted.topic)
    return Done(
        said(
            "group {target} goes on in {topic} where {group} is",
            target=wanted.target,
            topic=wanted.topic,
            group=call.path["group"],
        )
    )


@dataclass(frozen=True, slots=True)
class ReadingWanted:
    """Whether a group may read a topic."""

    topic: str
    allowed: bool = True


@family.post("/api/groups/{group}/reading")
async def reading(call: Call, wanted: ReadingWanted) -> Done:
    """Pause or resume a group in one topic; brokers refuse its pulls meanwhile."""
    await call.admin.forbid_reading(call.path["group"], wanted.topic, forbidden=not wanted.allowed)
    if wanted.allowed:
        return Done(said("group {group} reads {topic}", group=call.path["group"], topic=wanted.topic))
    return Done(said("group {group} no longer reads {topic}", group=call.path["group"], topic=wanted.topic))
