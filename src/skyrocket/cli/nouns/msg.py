"""`skyrocket msg`: find messages, follow a topic, copy them, hand one to a client."""

import inspect
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skyrocket.cli.consume import commits, show_messages
from skyrocket.cli.nouns.message_copy import copy_messages, window
from skyrocket.cli.nouns.moments import moment
from skyrocket.cli.nouns.operator import Operator, operator_command, verbs
from skyrocket.cli.output.changes import Change
from skyrocket.cli.output.rows import Column, Row
from skyrocket.cli.output.text import visible_body
from skyrocket.cli.produce import sending_command
from skyrocket.cli.program.cluster import client_command
from skyrocket.cli.program.numbers import MOST_INT, MOST_LONG
from skyrocket.cli.program.options import SchemasOption, with_parameters

if TYPE_CHECKING:
    from skyrocket.client import Admin, MessageTrack, ReceivedMessage
    from skyrocket.schemas.catalog import Catalog

msg = verbs("Find messages, follow a topic, hand one to a client.")

TopicArgument = Annotated[str, typer.Argument(help="The topic.", show_default=False)]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A message id: unique key or offset id.")]

FOUND: Final = (
    Column("messageId", "MESSAGE ID"),
    Column("broker"),
    Column("queueId", "QUEUE", number=True),
    Column("queueOffset", "OFFSET", number=True),
    Column("storedAt", "STORED"),
    Column("tags"),
    Column("keys"),
    Column("bytes", number=True, wide=True),
    Column("body", wide=True),
)


@msg.command()
@operator_command("msg get")
def get(
    operator: Operator,
    topic: TopicArgument,
    message_id: IdArgument,
    no_track: Annotated[bool, typer.Option("--no-track", help="Do not ask what became of it in each group.")] = False,
    schemas: SchemasOption = None,
) -> None:
    """One message with all it has, and what became of it in each group."""
    from skyrocket.schemas.catalog import catalog_of

    catalog = catalog_of(schemas)

    async def look(admin: "Admin") -> "tuple[ReceivedMessage, list[MessageTrack]]":
        message = await admin.message(topic, message_id)
        return message, [] if no_track else await admin.message_track(message)

    _show_one(operator, *operator.ask(look), catalog)


@msg.command()
@operator_command("msg at")
def at(
    operator: Operator,
    topic: TopicArgument,
    broker: Annotated[str, typer.Argument(help="The broker's name.")],
    queue: Annotated[int, typer.Argument(help="The queue.", min=0, max=MOST_INT)],
    offset: Annotated[int, typer.Argument(help="The offset there.", min=0, max=MOST_LONG)],
    schemas: SchemasOption = None,
) -> None:
    """The message at an offset of a queue."""
    from skyrocket.client import MessageQueue
    from skyrocket.schemas.catalog import catalog_of

    catalog = catalog_of(schemas)
    found = operator.ask(lambda admin: admin.message_at(MessageQueue(topic, broker, queue), offset))
    _show_one(operator, found, [], catalog)


def _show_one(operator: Operator, message: "ReceivedMessage", track: "list[MessageTrack]", catalog: "Catalog") -> None:
    from skyrocket.cli.terminal.json_lines import described

    fields: dict[str, Any] = described(message)
    decoded = catalog.decoded(message.topic, message.body)
    if decoded is not None:
        fields["schema"] = decoded.schema
        fields |= {"not_decoded": decoded.trouble} if decoded.trouble else {"decoded": decoded.value}
    groups = [{"group": each.group, "state": each.kind.value, "reason": each.reason} for each in track]
    if not operator.output.is_for_people:
        operator.show_object(fields | {"groups": groups})
        return
    operator.show_object(fields)
    if groups:
        operator.say("")
        operator.show((Column("group"), Column("state"), Column("reason")), groups)


@msg.command()
@operator_command("msg find")
def find(
    operator: Operator,
    topic: TopicArgument,
    key: Annotated[str, typer.Argument(help="A key of the message, or its unique id.")],
    since: Annotated[str | None, typer.Option("--since", help="Stored since 2h ago, or a time.")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Stored before that.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST_INT, help="At most this many of each broker.")] = 64,
) -> None:
    """Messages with a key, oldest first."""
    begin, end = window(since, until)

    async def look(admin: "Admin") -> "list[ReceivedMessage]":
        by_key = await admin.query_by_key(topic, key, most=limit, begin_ms=begin, end_ms=end)
        return by_key or await admin.query_by_unique_key(topic, key, most=limit)

    found = operator.ask(look)
    operator.show(FOUND, map(found_row, found), empty=f"no message of {topic} has the key {key}")
    if not found:
        operator.nothing_found()


def found_row(message: "ReceivedMessage") -> Row:
    """A message in a list."""
    return {
        "messageId": message.message_id,
        "broker": message.broker_name,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "storedAt": moment(message.store_timestamp),
        "tags": message.tags,
        "keys": message.keys,
        "bytes": len(message.body),
        "body": visible_body(message.body[:200]),
    }


@msg.command()
@operator_command("msg deliver", writes=True)
def deliver(
    operator: Operator,
    topic: TopicArgument,
    message_id: IdArgument,
    group: Annotated[str, typer.Option("--group", help="The group of the client.")],
    client: Annotated[str, typer.Option("--client", help="Its id, as `group members` shows it.")],
) -> None:
    """Let one client consume a message now; offsets do not change."""
    message = operator.ask(lambda admin: admin.message(topic, message_id))
    results: list[Any] = []

    async def do(admin: "Admin") -> None:
        results.append(await admin.consume_directly(group, client, message))

    changes = [Change(f"message {message_id}", client, "consumed by", None, group)]
    operator.carry_out(changes, do, done="")
    for result in results:
        fields = {"result": result.result, "spentMs": result.spent_ms, "remark": result.remark}
        operator.show_object(fields)
        if result.result != "CR_SUCCESS":
            raise typer.Exit(1)


@msg.command()
@operator_command("msg resend", writes=True)
def resend(operator: Operator, topic: TopicArgument, message_id: IdArgument) -> None:
    """Send a message again, as a new one to the same topic."""
    message = operator.ask(lambda admin: admin.message(topic, message_id))
    changes = [Change(f"message {message_id}", f"topic {topic}", "copies", 1, 2)]

    async def do(admin: "Admin") -> None:
        receipt = await admin.send_again(message, topic)
        operator.say(f"{receipt.status.name} {receipt.message_id}")

    operator.carry_out(changes, do)


msg.command("copy")(operator_command("msg copy", writes=True)(copy_messages))
msg.command("send")(sending_command("msg send"))
msg.command("print")(client_command("msg print", writes=commits)(show_messages))


def _tail(**given: Any) -> None:
    show_messages(follow=True, **given)


msg.command("tail", help="Follow a topic until Ctrl-C: what comes from now on, or from --from on.")(
    client_command("msg tail", writes=commits)(
        with_parameters(
            _tail,
            show_messages,
            [each for each in inspect.signature(show_messages).parameters.values() if each.name != "follow"],
        )
    )
)
