"""`skyrocket reset`: let a group consume again from a moment on, or skip to it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skyrocket.cli.output.rows import Column, Output, Row, rendered
from skyrocket.cli.output.writing import write
from skyrocket.cli.program.cluster import ask, client_command
from skyrocket.cli.program.moments import StartKind, start_of
from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError, SkyrocketError

if TYPE_CHECKING:
    from skyrocket.client import Admin, ClientSettings, MessageQueue, QueueMove, ResetPreview

MANY: Final = 1000  # messages: skipping more may be a mistake
MOVES: Final = (
    Column("broker"),
    Column("queueId", "QUEUE", number=True),
    Column("committed", number=True),
    Column("target", number=True),
    Column("first", number=True, wide=True),
    Column("end", number=True, wide=True),
    Column("skipped", number=True),
    Column("consumedAgain", "CONSUMED AGAIN", number=True),
    Column("done"),
)


class NotConfirmed(SkyrocketError):
    """The question was answered with no, or there was nobody to answer it."""


@client_command("reset", writes=lambda given: not given["dry_run"])
def reset(
    settings: "ClientSettings",
    group: Annotated[str, typer.Option("--group", help="The consumer group.", show_default=False)],
    topic: Annotated[str, typer.Option("--topic", help="In this topic.", show_default=False)],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="earliest, latest, an offset (1200), a while ago (15m, 2h) or a time (2026-01-31T12:00).",
            show_default=False,
        ),
    ],
    queue: Annotated[
        str | None, typer.Option("--queue", help="One queue alone, as broker-a:3.", show_default=False)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "--preview", help="Only say what would be skipped or repeated.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help=f"Skip {MANY:,} messages and more without a question.")
    ] = False,
    output: Annotated[
        Output | None, typer.Option("--output", help="How to show it.  [default: sentences]", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As --output jsonl.")] = False,
) -> None:
    """Move a group to a moment or offset, whether it runs or not; says what each queue skips or consumes again.

    Exit code 0: done (or shown), 1: it failed, or the question was not answered with yes, 2: wrong usage, 3: some
    brokers did it and others failed, 4: there is no such group or topic.
    """
    if as_json and output not in (None, Output.JSONL):
        raise ConfigError("--json is --output jsonl: give one of them")
    form = Output.JSONL if as_json else output
    place = _place(to)

    async def look(admin: "Admin") -> "ResetPreview":
        if isinstance(place, int):
            preview = await admin.preview_offset(group, topic, place)
        else:
            preview = await admin.preview_reset(group, topic, place)
        if all(move.committed is None for move in preview.moves):
            await admin.group_configs(group)  # raises NotFound
        return preview if queue is None else _of_queue(preview, queue)

    async def move_group(admin: "Admin") -> "dict[MessageQueue, int]":
        if queue is not None:
            (move,) = preview.moves
            await admin.move_queue(group, move.queue, move.target)
            return {move.queue: move.target}
        if isinstance(place, int):
            return await admin.move_to_offset(group, topic, place)
        return await admin.reset_offsets(group, topic, place)

    preview = ask(settings, look)
    if not dry_run and not yes and preview.skipped >= MANY:
        _confirm(preview)
    moved = {} if dry_run else ask(settings, move_group)
    targets = [(move, moved.get(move.queue, move.target)) for move in preview.moves]
    if form is not None:
        write(rendered(MOVES, [_row(*each, is_done=not dry_run) for each in targets], form))
        return
    for move, target in targets:
        write(_text(move, target) + "\n")
    if dry_run:
        write(f"{preview}; nothing was changed\n")
    else:
        write(f"group {group} in topic {topic}: {preview.skipped} skipped, {preview.repeated} consumed again\n")


def _of_queue(preview: "ResetPreview", queue: str) -> "ResetPreview":
    """Of one queue, named as this command shows them; raises NotFound."""
    from skyrocket.client import NotFound

    moves = {_queue_name(move): move for move in preview.moves}
    if queue not in moves:
        raise NotFound(f"topic {preview.topic} has no queue {queue}: there are {', '.join(moves)}")
    return replace(preview, moves=(moves[queue],))


def _queue_name(move: "QueueMove") -> str:
    return f"{move.queue.broker_name}:{move.queue.queue_id}"


def _confirm(preview: "ResetPreview") -> None:
    question = f"Group {preview.group} will never get {preview.skipped:,} messages of topic {preview.topic}. Skip them?"
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:  # nobody is there to answer
        agreed = False
    if not agreed:
        raise NotConfirmed("nothing was changed; --yes skips without a question")


def _text(move: "QueueMove", target: int) -> str:
    before = "nothing committed" if move.committed is None else f"at {move.committed}"
    return (
        f"{_queue_name(move)} {before}, goes to {target}"
        f" of {move.first} to {move.end}: {move.skipped} skipped, {move.repeated} consumed again"
    )


def _row(move: "QueueMove", target: int, *, is_done: bool) -> Row:
    return {
        "broker": move.queue.broker_name,
        "queueId": move.queue.queue_id,
        "committed": move.committed,
        "target": target,
        "first": move.first,
        "end": move.end,
        "skipped": move.skipped,
        "consumedAgain": move.repeated,
        "done": is_done,
    }


def _place(text: str) -> datetime | int | None:
    """The moment or offset of --to; None is the end of the queue. Raises ConfigError."""
    try:
        start = start_of(text, SystemClock().now_ms())
    except ConfigError:
        start = None
    if start is None or start.kind is StartKind.LAST:
        raise ConfigError(
            f"--to {text!r} is not a place: write earliest, latest, an offset (1200), a while ago (15m, 2h) or a time "
            "(2026-01-31T12:00)"
        )
    if start.kind is StartKind.LATEST:
        return None
    if start.kind is StartKind.OFFSET:
        return start.value
    return datetime.fromtimestamp(0 if start.kind is StartKind.EARLIEST else start.value / 1000, UTC)
