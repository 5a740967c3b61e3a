"""What all clients of a group tell, side by side: what they want, have, and where they are stuck."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from skyrocket.client.admin.client_diagnosis import queue_findings, same_subscriptions, unowned_queues
from skyrocket.console.api.endpoint import Call, Family
from skyrocket.errors import SkyrocketError
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo
from skyrocket.protocol.codes import version_name

family = Family("Groups")

_MOST_ASKED: Final = 100
_AT_ONCE: Final = 8
_MOST_UNOWNED: Final = 20


@dataclass(frozen=True, slots=True)
class WantedTopic:
    """One subscription of a client."""

    topic: str
    expression: str
    kind: str


@dataclass(frozen=True, slots=True)
class OwnedQueues:
    """The queues of one topic at one broker that a client has."""

    topic: str
    broker: str
    queues: list[int]


@dataclass(frozen=True, slots=True)
class Member:
    """One client; `trouble` says why it has told nothing."""

    client_id: str
    address: str
    language: str
    version: str
    subscriptions: list[WantedTopic]
    queues: list[OwnedQueues]
    blocked: list[str]  # queues in which it does not get on
    trouble: str


@dataclass(frozen=True, slots=True)
class Members:
    """All clients of a group; what they differ in costs messages."""

    rows: list[Member]
    is_complete: bool  # false: there are more clients than were asked, or not all have answered
    is_consistent: bool | None  # whether those that answered want the same; None: nobody to compare
    differences: list[str]
    unowned: list[str]  # queues that nobody has


@family.get("/api/groups/{group}/members")
async def group_members(call: Call) -> Members:
    """What each client of the group says of itself, and whether all want the same; every client is asked."""
    name = call.path["group"]
    connected = await call.parts.view.members.get(name)
    if connected is None:
        return Members([], True, None, [], [])
    clients = sorted(connected.connections, key=lambda each: each.client_id)
    turn = asyncio.Semaphore(_AT_ONCE)

    async def ask(client_id: str) -> ConsumerRunningInfo | str:
        async with turn:
            try:
                return await call.admin.running_info(name, client_id)
            except SkyrocketError as error:
                return str(error)

    answers = await asyncio.gather(*(ask(each.client_id) for each in clients[:_MOST_ASKED]))
    infos: dict[str, ConsumerRunningInfo] = {}
    rows = []
    for each, answer in zip(clients, answers, strict=False):
        info = ConsumerRunningInfo() if isinstance(answer, str) else answer
        if not isinstance(answer, str):
            infos[each.client_id] = answer
        rows.append(
            Member(
                each.client_id,
                each.client_address,
                each.language or "",
                version_name(each.version),
                [WantedTopic(*wish) for wish in sorted(_wishes(info))],
                _owned(info),
                queue_findings(each.client_id, info, call.now_ms),
                answer if isinstance(answer, str) else "",
            )
        )
    whole = len(infos) == len(clients)
    unowned = await unowned_queues(call.admin, connected, infos) if whole else []
    return Members(
        rows,
        whole,
        same_subscriptions(infos) if len(infos) > 1 else None,
        _differences(infos),
        [f"{queue.topic} {queue.broker_name}:{queue.queue_id}" for queue in unowned[:_MOST_UNOWNED]],
    )


def _wishes(info: ConsumerRunningInfo) -> set[tuple[str, str, str]]:
    return {
        (each.topic, each.expression or "*", each.expression_type or "TAG")
        for each in info.subscriptions
        if not each.topic.startswith(RETRY_PREFIX)
    }


def _owned(info: ConsumerRunningInfo) -> list[OwnedQueues]:
    found: dict[tuple[str, str], list[int]] = {}
    for queue in sorted({*info.queues, *(info.pop_queues or ())}):
        if not queue.topic.startswith(RETRY_PREFIX):
            found.setdefault((queue.topic, queue.broker_name), []).append(queue.queue_id)
    return [OwnedQueues(topic, broker, queues) for (topic, broker), queues in found.items()]


def _differences(infos: Mapping[str, ConsumerRunningInfo]) -> list[str]:
    """What some want and others do not, in words."""
    wishes = {client_id: _wishes(info) for client_id, info in infos.items()}
    every = set().union(*wishes.values())
    found = []
    for topic, expression, kind in sorted(every):
        who = [client_id for client_id, wanted in wishes.items() if (topic, expression, kind) in wanted]
        if len(who) < len(wishes):
            found.append(f"{topic} {expression} ({kind}): {', '.join(who)}")
    return found
