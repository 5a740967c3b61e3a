"""`skyrocket reset`: let a group consume again from a moment on, or skip to it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.program.cluster import ask, client_command
from skyrocket.cli.program.moments import StartKind, start_of
from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError

if TYPE_CHECKING:
    from skyrocket.client import Admin, ClientSettings, MessageQueue, ResetPreview


@client_command("reset")
def reset(
    settings: "ClientSettings",
    group: Annotated[str, typer.Option("--group", help="The consumer group.", show_default=False)],
    topic: Annotated[str, typer.Option("--topic", help="In this topic.", show_default=False)],
    to: Annotated[
        str,
        typer.Option(
            "--to", help="earliest, latest, a while ago (15m, 2h) or a time (2026-01-31T12:00).", show_default=False
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "--preview", help="Only say what would be skipped or repeated.")
    ] = False,
) -> None:
    """Move a group to a moment, whether it runs or not; says for each queue what is skipped or consumed again.

    Exit code 0: done (or shown), 1: it failed, 2: wrong usage.
    """
    moment = _moment(to)

    async def moves(admin: "Admin") -> "tuple[ResetPreview, dict[MessageQueue, int]]":
        preview = await admin.preview_reset(group, topic, moment)
        return preview, {} if dry_run else await admin.reset_offsets(group, topic, moment)

    preview, moved = ask(settings, moves)
    for move in preview.moves:
        before = "nothing committed" if move.committed is None else f"at {move.committed}"
        typer.echo(
            f"{move.queue.broker_name}:{move.queue.queue_id} {before}, goes to {moved.get(move.queue, move.target)}"
            f" of {move.first} to {move.end}: {move.skipped} skipped, {move.repeated} consumed again"
        )
    if dry_run:
        typer.echo(f"{preview}; nothing was changed")
    else:
        typer.echo(f"group {group} in topic {topic}: {preview.skipped} skipped, {preview.repeated} consumed again")


def _moment(text: str) -> datetime | None:
    """The moment of --to; None is the end of the queue. Raises ConfigError."""
    try:
        start = start_of(text, SystemClock().now_ms())
    except ConfigError:
        start = None
    if start is None or start.kind in (StartKind.OFFSET, StartKind.LAST):
        raise ConfigError(
            f"--to {text!r} is not a moment: write earliest, latest, a while ago (15m, 2h) or a time (2026-01-31T12:00)"
        )
    if start.kind is StartKind.LATEST:
        return None
    return datetime.fromtimestamp(0 if start.kind is StartKind.EARLIEST else start.value / 1000, UTC)
