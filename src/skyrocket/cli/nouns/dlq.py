"""`skyrocket dlq list | resend | purge`: the dead letters of consumer groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skyrocket.cli.nouns.moments import moment
from skyrocket.cli.nouns.operator import Operator, operator_command, sent_counted, verbs
from skyrocket.cli.output.changes import Change
from skyrocket.cli.output.rows import Column, Output, Row
from skyrocket.cli.program.moments import ago_or_at
from skyrocket.cli.program.options import JsonLinesOption, limit_option, panel
from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError
from skyrocket.model.topic import DLQ_PREFIX
from skyrocket.model.words import counted

if TYPE_CHECKING:
    from skyrocket.client import Admin, DeadLetterFilter, ReceivedMessage

_which = panel("Which dead letters")
_COUNTED: Final = 1000  # enough to know what would be lost

GroupArgument = Annotated[str, typer.Argument(help="The consumer group that gave them up.", show_default=False)]

dlq = verbs("Dead letters: what consumer groups have given up.")

LETTERS: Final = (
    Column("diedAt", "DIED"),
    Column("messageId", "MESSAGE ID"),
    Column("topic"),
    Column("keys"),
    Column("attempts", number=True),
    Column("error"),
    Column("errorMessage", "CAUSE"),
    Column("tags", wide=True),
    Column("host", wide=True),
    Column("body", wide=True),
    Column("diedAtMs", "DIED MS", wide=True, number=True),
)


GROUPS: Final = (Column("group"), Column("messages", "DEAD LETTERS", number=True), Column("newestAt", "NEWEST"))


@dataclass(frozen=True)
class LetterOptions:
    """Which dead letters."""

    since: Annotated[str | None, _which("--since", help="Dead since 2h ago, or a time (2026-01-31T12:00).")] = None
    until: Annotated[str | None, _which("--until", help="Dead before that.")] = None
    key: Annotated[str | None, _which("--key", help="With this key.")] = None
    error: Annotated[str | None, _which("--error", help="With this in the exception's type, as OutOfStock.")] = None
    message_id: Annotated[list[str] | None, _which("--id", help="With this message id; may be repeated.")] = None
    limit: Annotated[int, limit_option(_which)] = 100

    @property
    def are_given(self) -> bool:
        return any((self.since, self.until, self.key, self.error, self.message_id))

    def filter(self) -> "DeadLetterFilter":
        """As our client takes it; raises ConfigError."""
        from skyrocket.client import DeadLetterFilter

        now_ms = SystemClock().now_ms()
        since, until = (None if text is None else ago_or_at(text, now_ms) for text in (self.since, self.until))
        ids = frozenset(self.message_id or ())
        return DeadLetterFilter(since, until, key=self.key, error=self.error, message_ids=ids)


@dlq.command("list")
@operator_command("dlq list")
def list_letters(
    operator: Operator,
    group: Annotated[
        str | None, typer.Argument(help="The consumer group that gave them up; without it, all groups that have some.")
    ] = None,
    *,
    which: LetterOptions,
    trace: Annotated[bool, typer.Option("--trace", help="With traceback and attempts.")] = False,
    as_json: JsonLinesOption = False,
) -> None:
    """Show them, oldest first, with the cause that our consumers have written down.

    Exit code 0: shown, 1: it failed, 2: wrong usage, 4: there is no such group.
    """
    if as_json:
        operator.output = Output.JSONL
    if group is None:
        if trace or which.are_given:
            raise ConfigError("say of which group: `skyrocket dlq list` alone lists the groups")
        operator.show(GROUPS, operator.ask(_groups), empty="no dead letters")
        return
    found = _letters(operator, group, which)
    if trace and found and operator.output.is_for_people:
        for message in found:
            operator.say_safely(_traced(message))
        return
    operator.show(LETTERS, [_row(each) for each in found], empty="no dead letters")


@dlq.command()
@operator_command("dlq resend", writes=True)
def resend(
    operator: Operator,
    group: GroupArgument,
    *,
    which: LetterOptions,
    everything: Annotated[bool, _which("--all", help="Without any choice.")] = False,
    to_topic: Annotated[
        bool, typer.Option("--to-topic", help="To the topics they came from, for all their groups.")
    ] = False,
    rate: Annotated[float, typer.Option("--rate", min=0, help="Messages per second; 0: no limit.")] = 0.0,
) -> None:
    """Let the group have them again, with all attempts before them; they also stay where they are.

    Exit code 0: sent, 1: it failed, 2: wrong usage, 4: there is no such group.
    """
    if not everything and not which.are_given:
        raise ConfigError("say which: --since, --until, --key, --error, --id, or --all")
    chosen, limit = which.filter(), which.limit
    letters = _letters(operator, group, which)
    changes = [
        Change(
            f"dead letter {each.message_id}",
            f"topic {each.topic}" if to_topic else f"group {group}",
            "state",
            "dead",
            "sent again",
        )
        for each in letters
    ]

    async def do(admin: "Admin") -> None:
        with sent_counted(operator, "dlq resend", "sent again") as told:
            await admin.resend_dead_letters(group, chosen, most=limit, to_topic=to_topic, rate=rate, told=told)

    operator.carry_out(changes, do, done="they also stay among the dead letters")


# Others call it so.
dlq.command("replay", help="The same as resend.")(resend)


@dlq.command()
@operator_command("dlq purge", writes=True)
def purge(operator: Operator, group: GroupArgument) -> None:
    """Delete all dead letters of a group, for ever.

    Exit code 0: deleted, or there were none, 1: it failed, 2: wrong usage, 4: there is no such group.
    """
    found = len(operator.ask(lambda admin: admin.dead_letters(group, most=_COUNTED)))
    many = f"{found:,}{' or more' if found == _COUNTED else ''}"
    changes = [Change(f"dead letters of {group}", "all brokers", "messages", many, None)] if found else []

    async def do(admin: "Admin") -> None:
        operator.say(f"{counted(await admin.purge_dead_letters(group), 'dead letter')} deleted")

    operator.carry_out(changes, do, question=f"The dead letters of {group} are deleted: {many}. Do it?")


async def _groups(admin: "Admin") -> list[Row]:
    rows: list[Row] = []
    for topic in await admin.topics():
        if topic.startswith(DLQ_PREFIX):
            offsets = (await admin.topic_offsets(topic)).values()
            newest = max((each.last_update_timestamp for each in offsets), default=0)
            rows.append(
                {
                    "group": topic.removeprefix(DLQ_PREFIX),
                    "messages": sum(each.max_offset - each.min_offset for each in offsets),
                    "newestAt": moment(newest) if newest else None,
                }
            )
    return [row for row in rows if row["messages"]]


def _letters(operator: Operator, group: str, which: LetterOptions) -> "Sequence[ReceivedMessage]":
    chosen = which.filter()
    return operator.ask(lambda admin: admin.dead_letters(group, chosen, most=which.limit))


def _traced(message: "ReceivedMessage") -> str:
    from skyrocket.client import cause_of

    died = datetime.fromtimestamp(message.store_timestamp / 1000, UTC).astimezone().isoformat(" ", "seconds")
    cause = cause_of(message)
    why = "cause unknown" if cause is None else f"{cause.error_type}: {cause.error_message}".splitlines()[0]
    keys = f" keys={','.join(message.keys)}" if message.keys else ""
    line = f"{died} {message.message_id} {message.topic}{keys} attempts={message.reconsume_times} {why}"
    if cause is None:
        return line
    attempts = "".join(
        f"\n  attempt {each.number} {datetime.fromtimestamp(each.at_ms / 1000, UTC).astimezone():%F %T} "
        f"{each.host}: {each.error}"
        for each in cause.attempts
    )
    indented = "".join(f"\n  {each}" for each in cause.traceback.splitlines())
    return f"{line}\n  host {cause.host}{attempts}{indented}"


def _row(message: "ReceivedMessage") -> Row:
    from skyrocket.client import cause_of

    cause = cause_of(message)
    return {
        "diedAt": moment(message.store_timestamp),
        "messageId": message.message_id,
        "topic": message.topic,
        "keys": list(message.keys),
        "attempts": message.reconsume_times,
        "error": None if cause is None else cause.error_type,
        "errorMessage": None if cause is None else cause.error_message,
        "tags": message.tags,
        "host": None if cause is None else cause.host,
        "body": message.body.decode("utf-8", "backslashreplace"),
        "diedAtMs": message.store_timestamp,
        "traceback": None if cause is None else cause.traceback,
        "history": [] if cause is None else [each._asdict() for each in cause.attempts],
    }
