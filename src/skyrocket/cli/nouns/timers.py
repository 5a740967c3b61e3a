"""`skyrocket timers list | find | recall`: messages that wait for their time."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from skyrocket.cli.nouns.moments import moment
from skyrocket.cli.nouns.operator import Operator, operator_command, verbs
from skyrocket.cli.output.changes import Change
from skyrocket.cli.output.rows import Column, Output, Row
from skyrocket.cli.program.moments import moment_of
from skyrocket.cli.program.options import JsonLinesOption, limit_option, topic_option
from skyrocket.model.words import counted

if TYPE_CHECKING:
    from skyrocket.client import Admin, PendingTimer

timers = verbs("Timers: messages that wait for their time.")

PENDING: Final = (
    Column("dueAt", "DUE"),
    Column("messageId", "MESSAGE ID"),
    Column("topic"),
    Column("keys"),
    Column("broker"),
    Column("queueId", "QUEUE", wide=True, number=True),
    Column("dueMs", "DUE MS", wide=True, number=True),
)
COUNTS: Final = (Column("topic"), Column("waiting", number=True))


@timers.command("list")
@operator_command("timers list")
def list_pending(
    operator: Operator,
    topic: Annotated[str | None, topic_option()] = None,
    due_from: Annotated[
        str | None, typer.Option("--from", help="Due at this time (2026-01-31T12:00) or later.")
    ] = None,
    limit: Annotated[int, limit_option()] = 100,
    count: Annotated[bool, typer.Option("--count", help="Only how many wait, by topic.")] = False,
    as_json: JsonLinesOption = False,
) -> None:
    """Show them, soonest first, or how many there are; Apache's brokers tell numbers alone: --count.

    Exit code 0: shown, 1: it failed, 2: wrong usage, 3: some brokers failed.
    """
    if as_json:
        operator.output = Output.JSONL
    if count:
        counts = operator.ask(lambda admin: admin.timer_counts())
        rows = [{"topic": name, "waiting": each} for name, each in sorted(counts.items()) if topic in (None, name)]
        operator.show(COUNTS, rows, empty="no timers")
        return
    begin = 0.0 if due_from is None else moment_of(due_from).timestamp()
    found = operator.ask(lambda admin: admin.pending_timers(topic, due_from=begin, most=limit))
    operator.show(PENDING, [_row(each) for each in found], empty="no timers")
    if len(found) == limit:
        operator.say(f"the first {limit}: more with --limit, their numbers with --count")


@timers.command()
@operator_command("timers find")
def find(
    operator: Operator,
    key: Annotated[str, typer.Argument(metavar="KEY", help="A key of the message, or its id.", show_default=False)],
) -> None:
    """Timers with a key or message id, soonest first, those that were delivered too; Apache's 5.x have them as well.

    Exit code 0: shown, 1: it failed, 2: wrong usage, 3: some brokers failed, 4: there is none.
    """
    found = operator.ask(lambda admin: admin.find_timers(key))
    operator.show(PENDING, [_row(each) for each in found], empty=f"no timer has the key or id {key}")
    if not found:
        operator.nothing_found()


@timers.command()
@operator_command("timers recall", writes=True)
def recall(
    operator: Operator,
    which: Annotated[list[str], typer.Argument(metavar="ID...", help="Message ids, or recall handles of receipts.")],
) -> None:
    """Take messages back that wait: they are not delivered. The broker must allow it (recallMessageEnable).

    Exit code 0: taken back, 1: it failed, 2: wrong usage, 4: no such message waits.
    """

    async def recall_all(admin: "Admin") -> None:
        for each in which:
            operator.say(f"{await admin.recall(each)} is taken back")

    operator.carry_out(
        [Change(f"message {each}", "", "delivery", "waits", "taken back") for each in which],
        recall_all,
        question=f"{counted(len(which), 'message')} will never be delivered. Do it?",
    )


def _row(timer: "PendingTimer") -> Row:
    return {
        "dueAt": moment(timer.due_ms),
        "messageId": timer.message_id,
        "topic": timer.topic,
        "keys": list(timer.keys),
        "broker": timer.broker_name,
        "queueId": timer.queue_id,
        "dueMs": timer.due_ms,
    }
