"""Messages: found by id, key, time, tag or text; one with everything; sent and handed out again."""

import asyncio
import base64
from dataclasses import dataclass, field
from typing import Final

from starlette.responses import Response

from skyrocket.client.core.errors import BrokerRefused, NotFound
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.values import BadInput
from skyrocket.console.cluster.message_rows import FullMessage, MessageRow, full_of, own_properties, row_of
from skyrocket.console.cluster.message_search import MessageFilter, newest, sql_filter
from skyrocket.console.live.events import streamed
from skyrocket.console.live.tail import TailWanted, tail
from skyrocket.errors import DataError
from skyrocket.format.message_id import host_text, parse_offset_message_id
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.words import said
from skyrocket.schemas.catalog import Decoded

family = Family("Messages")

_MOST: Final = 200
_MOST_FOUND: Final = 8


@dataclass(frozen=True, slots=True)
class MessagesWanted:
    """With `key` by key, else the newest, of a span of time, a queue or an offset, that all filters take."""

    key: str = ""
    from_ms: int | None = None
    to_ms: int | None = None
    tags: str = ""
    contains: str = ""
    property_name: str = ""
    property_value: str = ""
    sql: str = ""  # SQL92 over properties
    broker: str = ""
    queue: int | None = None
    offset: int | None = None  # of that queue, or of all
    most: int = 50


@dataclass(frozen=True, slots=True)
class Messages:
    """Newest first."""

    rows: list[MessageRow]
    read: int  # how many were looked at
    is_complete: bool


@family.get("/api/topics/{topic}/messages")
async def messages(call: Call, wanted: MessagesWanted) -> Messages:
    """Messages of a topic, newest first."""
    if not 1 <= wanted.most <= _MOST:
        raise BadInput("most is {most}: 1 to {limit} are shown at once", most=wanted.most, limit=_MOST)
    topic = call.path["topic"]
    if wanted.key:
        found = await call.admin.query_by_key(
            topic, wanted.key, most=wanted.most, begin_ms=wanted.from_ms or 0, end_ms=wanted.to_ms or (1 << 63) - 1
        )
        rows = await call.parts.decoder.rows(list(reversed(found)))
        return Messages(rows, len(found), len(found) < wanted.most)
    chosen = MessageFilter(
        wanted.tags, wanted.contains, wanted.property_name, wanted.property_value, sql_filter(wanted.sql)
    )
    queue = None if wanted.queue is None else (wanted.broker, wanted.queue)
    answer = await newest(
        call.admin,
        topic,
        chosen,
        from_ms=wanted.from_ms,
        to_ms=wanted.to_ms,
        queue=queue,
        offset=wanted.offset,
        most=wanted.most,
    )
    return Messages(await call.parts.decoder.rows(answer.messages), answer.read, answer.is_complete)


@dataclass(frozen=True, slots=True)
class TrackRow:
    """What became of it in one group."""

    group: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class MessagePage:
    """A message, what its body says where a schema of the topic is known, and who has consumed it."""

    message: FullMessage
    decoded: Decoded | None
    tracks: list[TrackRow]


@family.get("/api/topics/{topic}/messages/{message_id}")
async def message(call: Call) -> MessagePage:
    """One message by its id (unique or offset id), with its body and who consumed it."""
    found = await _message(call)
    tracks = [
        TrackRow(track.group, track.kind.value, track.reason or "") for track in await call.admin.message_track(found)
    ]
    return MessagePage(full_of(found), await call.parts.decoder.decoded(found), tracks)


async def _message(call: Call) -> ReceivedMessage:
    """Raises NotFound; an offset id names an address, and no others are asked than the cluster's brokers."""
    topic, message_id = call.path["topic"], call.path["message_id"]
    if await _names_a_broker(call, message_id):
        return await call.admin.message(topic, message_id)
    found = await call.admin.query_by_unique_key(topic, message_id)
    if not found:
        raise NotFound(
            "no message {message_id} in topic {topic}: none of the last three days has this unique id, and "
            "it is no offset id of a broker of this cluster",
            message_id=message_id,
            topic=topic,
        )
    return found[0]


async def _names_a_broker(call: Call, message_id: str) -> bool:
    """Whether it could be an offset id here."""
    try:
        address = host_text(parse_offset_message_id(message_id).store_host)
    except DataError:
        return False
    return address in {broker.address for broker in await call.parts.view.brokers.get()}


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a queue."""

    broker: str
    queue: int
    offset: int


@family.get("/api/topics/{topic}/at")
async def message_at(call: Call, wanted: Place) -> MessageRow:
    """The message at an offset of a queue: the neighbours of another one."""
    queue = MessageQueue(call.path["topic"], wanted.broker, wanted.queue)
    return row_of(await call.admin.message_at(queue, wanted.offset))


@dataclass(frozen=True, slots=True)
class NewMessage:
    """To send; of `delay_seconds` and `delay_level` at most one. `body_base64` is for bytes that are no text."""

    body: str = ""
    body_base64: str = ""
    tags: str = ""
    keys: str = ""
    sharding_key: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    delay_seconds: float | None = None
    delay_level: int = 0


@dataclass(frozen=True, slots=True)
class SentMessage:
    """Where it went."""

    message_id: str
    offset_message_id: str
    broker: str
    queue: int
    offset: int


@family.post("/api/topics/{topic}/messages")
async def send(call: Call, wanted: NewMessage) -> SentMessage:
    """Send a message."""
    try:
        body = base64.b64decode(wanted.body_base64, validate=True) if wanted.body_base64 else wanted.body.encode()
    except ValueError as error:
        raise BadInput("body_base64 is not base64: {error}", error=error) from None
    out = Message(
        call.path["topic"],
        body,
        tags=wanted.tags or None,
        keys=wanted.keys.split(),
        properties=wanted.properties,
        sharding_key=wanted.sharding_key or None,
        delay_level=wanted.delay_level,
        delay=wanted.delay_seconds,
    )
    return await _sent(call, out)


async def _sent(call: Call, out: Message) -> SentMessage:
    receipt = await (await call.actor.producer()).send(out)
    queue = receipt.queue
    return SentMessage(
        receipt.message_id, receipt.offset_message_id, queue.broker_name, queue.queue_id, receipt.queue_offset
    )


@family.post("/api/topics/{topic}/messages/{message_id}/again")
async def send_again(call: Call) -> SentMessage:
    """Send a copy of a message as a new one; every group of the topic gets it."""
    found = await _message(call)
    try:
        body = found.body
    except DataError as error:
        raise BadInput("its body cannot be read: {error}", error=error) from error
    copy = Message(found.topic, body, found.tags, found.keys, own_properties(found), found.sharding_key)
    return await _sent(call, copy)


@dataclass(frozen=True, slots=True)
class Delivery:
    """To whom a message shall be handed."""

    group: str
    client_id: str


@family.post("/api/topics/{topic}/messages/{message_id}/deliver")
async def deliver(call: Call, wanted: Delivery) -> Done:
    """Hand a message to one client of a group now; offsets do not change. Only push consumers take it."""
    answer = await call.admin.consume_directly(wanted.group, wanted.client_id, await _message(call))
    result = {"result": answer.result or "", "remark": answer.remark or "", "ms": str(answer.spent_ms)}
    return Done(
        said(
            "{client_id} answered {result} after {ms} ms",
            client_id=wanted.client_id,
            result=answer.result,
            ms=answer.spent_ms,
        ),
        result,
    )


@family.get("/api/topics/{topic}/tail", media=("text/event-stream",))
async def follow(call: Call, wanted: TailWanted) -> Response:
    """New messages as server-sent events: `message`, and `skipped` when there are more than are shown."""
    parts = call.parts
    admission = parts.streams.admit(call.address)
    return streamed(tail(call.admin, call.path["topic"], wanted, admission, parts.decoder, call.check_session))


@dataclass(frozen=True, slots=True)
class FindWanted:
    """A piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class FoundNames:
    """Topics and groups with it in their name."""

    topics: list[str]
    groups: list[str]


@family.get("/api/find")
async def find(call: Call, wanted: FindWanted) -> FoundNames:
    """Topics and groups by a part of their name; an exact name alone, where it is one."""
    text = wanted.text.lower()
    shapes, groups = await asyncio.gather(call.parts.view.topics.get(), call.parts.view.groups.get())
    topics = [wanted.text] if wanted.text in shapes else [name for name in shapes if text in name.lower()]
    names = [wanted.text] if wanted.text in groups else [name for name in groups if text in name.lower()]
    return FoundNames(sorted(topics)[:_MOST_FOUND], sorted(names)[:_MOST_FOUND])


@dataclass(frozen=True, slots=True)
class IdWanted:
    """A message id, or a key."""

    id: str


@dataclass(frozen=True, slots=True)
class FoundMessages:
    """Where there is such a message."""

    rows: list[MessageRow]
    topics_searched: int


@family.get("/api/messages")
async def messages_by_id(call: Call, wanted: IdWanted) -> FoundMessages:
    """A message id (unique or offset id) or key, in every topic of applications: for who does not know the topic."""
    shapes = [shape.name for shape in (await call.parts.view.topics.get()).values() if shape.kind != "SYSTEM"]
    turn = asyncio.Semaphore(_MOST_FOUND)

    async def look(topic: str) -> list[ReceivedMessage]:
        async with turn:
            try:
                return [
                    *await call.admin.query_by_unique_key(topic, wanted.id),
                    *await call.admin.query_by_key(topic, wanted.id),
                ]
            except (BrokerRefused, NotFound):
                return []

    found = await asyncio.gather(*(look(topic) for topic in shapes))
    messages = [message for each in found for message in each] or await _by_offset_id(call, wanted.id)
    return FoundMessages(await call.parts.decoder.rows(messages[:_MOST]), len(shapes))


async def _by_offset_id(call: Call, text: str) -> list[ReceivedMessage]:
    """An offset id names its place, and what lies there its topic."""
    if not await _names_a_broker(call, text):
        return []
    try:
        return [await call.admin.message_by_offset_id(text)]
    except NotFound:
        return []
