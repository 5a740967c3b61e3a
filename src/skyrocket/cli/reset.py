"""`skyrocket reset`: let a group consume again from a moment on, or skip to it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from skyrocket.cli.cluster_options import client_command
from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError
from skyrocket.remoting.event_loop import run

if TYPE_CHECKING:
    from skyrocket.client import ClientSettings, MessageQueue, ResetPreview


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
    preview, moved = run(_reset(settings, group, topic, _moment(to), dry_run=dry_run))
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


async def _reset(
    settings: "ClientSettings", group: str, topic: str, moment: datetime | None, *, dry_run: bool
) -> "tuple[ResetPreview, dict[MessageQueue, int]]":
    from skyrocket.client import Admin

    async with Admin(client=settings) as admin:
        preview = await admin.preview_reset(group, topic, moment)
        return preview, {} if dry_run else await admin.reset_offsets(group, topic, moment)


def _moment(text: str) -> datetime | None:
    """None is the end."""
    from skyrocket.cli.terminal.moments import Place, start_of

    try:
        start = start_of(text, SystemClock().now_ms())
    except ConfigError:
        start = None
    if start is None or start.place in (Place.OFFSET, Place.LAST):
        raise ConfigError(
            f"--to {text!r} is no moment: earliest, latest, a while ago (15m, 2h) or a time (2026-01-31T12:00)"
        )
    if start.place is Place.LATEST:
        return None
    return datetime.fromtimestamp(0 if start.place is Place.EARLIEST else start.value / 1000, UTC)
