"""`skyrocket trace`: what clients have told about a message."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skyrocket.cli.nouns.moments import moment
from skyrocket.cli.nouns.operator import Operator, operator_command, verbs
from skyrocket.cli.output.rows import Column, Row

if TYPE_CHECKING:
    from skyrocket.format.trace import TraceEvent

trace = verbs("What clients have told about a message.")

EVENTS: Final = (
    Column("at"),
    Column("event"),
    Column("group"),
    Column("client"),
    Column("succeeded", "OK"),
    Column("costMs", "MS", number=True),
    Column("retries", number=True),
    Column("topic", wide=True),
    Column("broker", wide=True),
)


@trace.command()
@operator_command("trace show")
def show(
    operator: Operator,
    message_id: Annotated[str, typer.Argument(metavar="ID", help="The message's unique id.")],
    topic: Annotated[str, typer.Option("--topic", help="Where traces are kept.")] = "RMQ_SYS_TRACE_TOPIC",
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most this many records.")] = 64,
) -> None:
    """Sends, calls of handlers, retries and ends of transactions, in time's order."""
    from skyrocket.client import NoRoute, NotFound

    try:
        events = operator.ask(lambda admin: admin.trace(message_id, topic=topic, most=limit))
    except NoRoute as error:
        raise NotFound(
            f"no broker has traces (topic {topic}): no client has told of anything yet. Clients do with trace=True "
            "(Java: enableMsgTrace); brokers make the topic with traceTopicEnable=true, or by the first trace with "
            "autoCreateTopicEnable=true"
        ) from error
    operator.show(EVENTS, [event_row(each) for each in events], empty=f"no client has told about {message_id}")
    if not events:
        operator.nothing_found()


def event_row(event: "TraceEvent") -> Row:
    """One thing that a client told."""
    given: Any = event
    return {
        "at": moment(given.timestamp),
        "event": _NAMES.get(type(event).__name__, type(event).__name__),
        "group": given.group,
        "client": given.client_host or None,
        "succeeded": getattr(given, "succeeded", None),
        "costMs": getattr(given, "cost_ms", None),
        "retries": getattr(given, "retry_times", None),
        "topic": getattr(given, "topic", None),
        "broker": getattr(given, "store_host", None),
    }


_NAMES: Final = {
    "Sent": "sent",
    "CallBegan": "call began",
    "CallEnded": "call ended",
    "TransactionEnded": "transaction ended",
    "Recalled": "recalled",
}
