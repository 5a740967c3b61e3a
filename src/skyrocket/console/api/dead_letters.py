"""Dead letters: what groups have given up, why, and letting them have it again."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import orjson
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from skyrocket.client.admin.dead_letters import DeadLetterFilter
from skyrocket.client.admin.side_by_side import each
from skyrocket.client.consumer.dead_letter_cause import cause_of
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.console.api.dead_letter_files import CsvFile, ParquetFile
from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.values import BadInput
from skyrocket.console.cluster.message_rows import FullMessage, full_of
from skyrocket.errors import DataError, SkyrocketError
from skyrocket.model.topic import DLQ_PREFIX
from skyrocket.model.words import said_of
from skyrocket.schemas.catalog import Decoded

_logger = logging.getLogger(__name__)

family = Family("Dead letters")

Letters = AsyncGenerator[ReceivedMessage, None]
T = TypeVar("T")

_MOST: Final = 500
_MOST_HELD: Final = 500  # of an export that may have millions
_MOST_HELD_BYTES: Final = 8 * 1024 * 1024
_MEDIA: Final = {"csv": "text/csv", "json": "application/x-ndjson", "parquet": "application/vnd.apache.parquet"}
_LONGEST_SECONDS: Final = 60  # a page waits for it


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """A group that has given something up."""

    group: str
    messages: int
    oldest_ms: int | None
    newest_ms: int | None
    in_per_second: float | None


@dataclass(frozen=True, slots=True)
class DeadGroups:
    """Most first."""

    rows: list[DeadGroup]


@family.get("/api/dead-letters")
async def dead_groups(call: Call) -> DeadGroups:
    """Groups with dead letters."""
    view = call.parts.view
    topics = [name for name, shape in (await view.topics.get()).items() if shape.kind == "DLQ"]
    known = await each(topics, view.topic_figures.get)
    oldest = await each([name for name, figures in known.items() if figures.messages], view.oldest.get)
    rows = [
        DeadGroup(
            name.removeprefix(DLQ_PREFIX),
            figures.messages,
            oldest.get(name),
            figures.newest_ms,
            figures.in_per_second,
        )
        for name, figures in known.items()
    ]
    return DeadGroups(sorted(rows, key=lambda row: (-row.messages, row.group)))


@dataclass(frozen=True, slots=True)
class DeadChoice:
    """Which; what is not given does not matter."""

    message_id: str = ""  # unique or offset id
    key: str = ""
    error: str = ""
    contains: str = ""
    from_ms: int | None = None  # when they died
    to_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DeadWanted(DeadChoice):
    """A choice of them, the newest `most`."""

    most: int = 100


@dataclass(frozen=True, slots=True)
class DeadRow:
    """One dead letter; the cause is there when a consumer of Skyrocket gave it up."""

    message_id: str
    offset_message_id: str
    topic: str  # where it came from
    died_ms: int
    attempts: int
    keys: list[str]
    tags: str | None
    error: str
    error_message: str
    host: str
    preview: str


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Newest first; `is_complete` is false when there are older ones."""

    rows: list[DeadRow]
    is_complete: bool


@family.get("/api/dead-letters/{group}")
async def dead_letters(call: Call, wanted: DeadWanted) -> DeadLetters:
    """What a group has given up, and why."""
    if not 1 <= wanted.most <= _MOST:
        raise BadInput("most is {most}: 1 to {limit} are shown at once", most=wanted.most, limit=_MOST)
    found = await call.admin.dead_letters(call.path["group"], _choice(wanted), most=wanted.most + 1, newest=True)
    rows = await _rows(call, list(reversed(found))[: wanted.most])
    return DeadLetters(rows, is_complete=len(found) <= wanted.most)


def _choice(wanted: DeadChoice) -> DeadLetterFilter:
    return DeadLetterFilter(
        key=wanted.key or None,
        error=wanted.error or None,
        message_ids=frozenset({wanted.message_id} - {""}),
        where=lambda message: _died_then(message, wanted) and _has(message, wanted.contains),
    )


def _died_then(message: ReceivedMessage, wanted: DeadChoice) -> bool:
    at_ms = message.store_timestamp
    return (wanted.from_ms is None or at_ms >= wanted.from_ms) and (wanted.to_ms is None or at_ms <= wanted.to_ms)


def _has(message: ReceivedMessage, text: str) -> bool:
    if not text:
        return True
    try:
        return text.encode() in message.body
    except DataError:  # it cannot be unpacked
        return False


async def _rows(call: Call, messages: list[ReceivedMessage]) -> list[DeadRow]:
    previews = await call.parts.decoder.previews(messages)
    return [_row(message, preview) for message, preview in zip(messages, previews, strict=True)]


def _row(message: ReceivedMessage, preview: str) -> DeadRow:
    cause = cause_of(message)
    return DeadRow(
        message.message_id,
        message.offset_message_id,
        message.topic,
        message.store_timestamp,
        message.reconsume_times,
        message.keys,
        message.tags,
        "" if cause is None else cause.error_type,
        "" if cause is None else cause.error_message,
        "" if cause is None else cause.host,
        preview,
    )


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One call of the handler that failed."""

    number: int
    at_ms: int
    host: str
    error: str


@dataclass(frozen=True, slots=True)
class DeadLetterPage:
    """One with everything."""

    row: DeadRow
    message: FullMessage
    decoded: Decoded | None
    traceback: str
    attempts: list[AttemptRow]


@family.get("/api/dead-letters/{group}/messages/{message_id}")
async def dead_letter(call: Call) -> DeadLetterPage:
    """One dead letter with its body and the attempts that failed."""
    wanted = DeadLetterFilter(message_ids=frozenset({call.path["message_id"]}))
    found = await call.admin.dead_letters(call.path["group"], wanted, most=1, newest=True)
    if not found:
        raise BadInput(
            "group {group} has no dead letter {message_id}",
            group=call.path["group"],
            message_id=call.path["message_id"],
        )
    cause = cause_of(found[0])
    attempts = [] if cause is None else [AttemptRow(*attempt) for attempt in cause.attempts]
    traceback = "" if cause is None else cause.traceback
    full, decoded = full_of(found[0]), await call.parts.decoder.decoded(found[0])
    (row,) = await _rows(call, found)
    return DeadLetterPage(row, full, decoded, traceback, attempts)


@dataclass(frozen=True, slots=True)
class ResendWanted:
    """Which, by id, and to whom: the group itself, or the topics they came from (all groups of those get them)."""

    message_ids: list[str]
    to_topic: bool = False
    per_second: float = 0.0  # 0: no limit


@family.post("/api/dead-letters/{group}/resend")
async def resend(call: Call, wanted: ResendWanted) -> Done:
    """Let the group have dead letters again; they stay among the dead letters, too."""
    if not wanted.message_ids:
        raise BadInput("message_ids is empty: choose what to send again")
    if len(wanted.message_ids) > _MOST:
        raise BadInput("at most {limit} are sent at once", limit=_MOST)
    seconds = len(wanted.message_ids) / wanted.per_second if wanted.per_second > 0 else 0
    if wanted.per_second < 0 or seconds > _LONGEST_SECONDS:
        raise BadInput(
            "per_second is {per_second:g}, which takes {seconds:.0f} s of the {limit} that are "
            "allowed: send faster, or fewer at once (`skyrocket dlq resend --rate` has no such limit)",
            per_second=wanted.per_second,
            seconds=seconds,
            limit=_LONGEST_SECONDS,
        )
    chosen = DeadLetterFilter(message_ids=frozenset(wanted.message_ids))
    receipts = await call.admin.resend_dead_letters(
        call.path["group"],
        chosen,
        most=len(wanted.message_ids),
        to_topic=wanted.to_topic,
        rate=wanted.per_second,
    )
    return Done(said_of(len(receipts), "{n:,} message was sent again", "{n:,} messages were sent again"))


@family.post("/api/dead-letters/{group}/purge")
async def purge(call: Call) -> Done:
    """Delete all dead letters of a group, for ever."""
    group = call.path["group"]
    gone = await call.admin.purge_dead_letters(group)
    return Done(
        said_of(gone, "{n:,} dead letter of {group} is gone", "{n:,} dead letters of {group} are gone", group=group)
    )


@dataclass(frozen=True, slots=True)
class ExportWanted(DeadChoice):
    """As a file."""

    format: Literal["csv", "json", "parquet"] = "csv"


@family.get("/api/dead-letters/{group}/export", media=tuple(_MEDIA.values()))
async def export(call: Call, wanted: ExportWanted) -> Response:
    """All of these dead letters as a file, oldest first: a CSV table, or JSON lines or Parquet with bodies."""
    letters = call.admin.each_dead_letter(call.path["group"], _choice(wanted))
    write = {"csv": _csv, "json": _json_lines, "parquet": _parquet}[wanted.format]
    parts = write(call, letters)
    try:
        first = await anext(parts)  # what refuses it does so before the file begins
    except BaseException:
        await parts.aclose()
        raise
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", call.path["group"])
    headers = {"Content-Disposition": f'attachment; filename="dead-letters-{name}.{wanted.format}"'}
    return ExportAnswer(_from(first, parts), media_type=_MEDIA[wanted.format], headers=headers)


class ExportAnswer(StreamingResponse):
    """A file that is sent as it is made. One that breaks off has no end, by which its reader knows it."""

    async def stream_response(self, send: Send) -> None:
        """Ends without its last part when a broker fails; that needs no stack trace."""
        try:
            await super().stream_response(send)
        except SkyrocketError as error:
            _logger.warning("an export of dead letters broke off, its file is not whole: %s", error)


async def _from(first: bytes, parts: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    async with aclosing(parts):
        yield first
        async for part in parts:
            yield part


async def _batches(found: AsyncGenerator[T, None], size: Callable[[T], int]) -> AsyncGenerator[list[T], None]:
    """As many as are held at once; at least one, if it is empty."""
    batch: list[T] = []
    held = 0
    async with aclosing(found):
        async for each_one in found:
            batch.append(each_one)
            held += size(each_one)
            if len(batch) >= _MOST_HELD or held >= _MOST_HELD_BYTES:
                yield batch
                batch, held = [], 0
    yield batch


def _size(message: ReceivedMessage) -> int:
    try:
        return len(message.body)
    except DataError:  # it cannot be unpacked
        return message.stored_body_size


async def _csv(call: Call, letters: Letters) -> AsyncGenerator[bytes, None]:
    file = CsvFile(DeadRow.__slots__)
    async with aclosing(_batches(letters, _size)) as batches:
        async for batch in batches:
            yield file.take(await _rows(call, batch))


async def _json_lines(_: Call, letters: Letters) -> AsyncGenerator[bytes, None]:
    async with aclosing(_batches(_lines(letters), len)) as batches:
        async for batch in batches:
            yield b"".join(batch)


async def _lines(letters: Letters) -> AsyncGenerator[bytes, None]:
    async with aclosing(letters):
        async for message in letters:
            yield orjson.dumps(full_of(message)) + b"\n"  # before its body is unpacked: it says how it is stored


async def _parquet(_: Call, letters: Letters) -> AsyncGenerator[bytes, None]:
    async with aclosing(_batches(letters, _size)) as batches:
        file = ParquetFile()
        async for batch in batches:
            yield await asyncio.to_thread(file.take, batch)
        yield await asyncio.to_thread(file.end)
