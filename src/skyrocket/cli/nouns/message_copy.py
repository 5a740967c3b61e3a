"""`skyrocket msg copy`: the messages of a while, to another topic; what was stopped goes on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skyrocket.cli.nouns.copy_place import CopyOrder, CopyPlace
from skyrocket.cli.nouns.moments import moment
from skyrocket.cli.nouns.operator import Operator, sent_counted
from skyrocket.cli.output.changes import Change
from skyrocket.cli.output.text import visible_lines
from skyrocket.cli.program.lifetime import ended_by_sigterm
from skyrocket.cli.program.moments import ago_or_at
from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError
from skyrocket.model.words import counted

if TYPE_CHECKING:
    from skyrocket.client import Admin, CopyProgress

_FAR: Final = (1 << 63) - 1


def window(since: str | None, until: str | None) -> tuple[int, int]:
    """From when to when, in ms since 1970; raises ConfigError."""
    now_ms = SystemClock().now_ms()
    begin = 0 if since is None else round(ago_or_at(since, now_ms).timestamp() * 1000)
    return begin, _FAR if until is None else round(ago_or_at(until, now_ms).timestamp() * 1000)


def copy_messages(
    operator: Operator,
    source: Annotated[str, typer.Argument(help="From this topic.", show_default=False)],
    target: Annotated[str, typer.Argument(help="To this topic.", show_default=False)],
    since: Annotated[
        str | None, typer.Option("--since", help="Stored since 2h ago, or a time; --resume may know it.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="Stored before that.  [default: now]")] = None,
    tags: Annotated[str, typer.Option("--tags", help="With one of these tags, as 'TagA || TagB'.")] = "*",
    key: Annotated[str | None, typer.Option("--key", help="With this key.")] = None,
    rate: Annotated[float, typer.Option("--rate", min=0, help="Messages per second; 0: no limit.")] = 0.0,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most this many, in all.")] = 100_000,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", help="Keep in this file where it stands; if there is one, go on there.", dir_okay=False
        ),
    ] = None,
) -> None:
    """Send the messages of a while to another topic, or to the same one again.

    What was stopped goes on with the same --resume FILE: nothing is lost. The message that was on its way may be copied
    twice, after kill -9 those of the last second as well.
    """
    place = CopyPlace(resume)
    kept = place.read()
    if kept is None:
        order = _order(source, target, since, until, tags, key)
    else:
        order = kept[0]
        _check_same(resume, order, source, target, tags, key)

    async def look(admin: "Admin") -> "tuple[CopyProgress, int, bool]":
        from skyrocket.client import CopyProgress

        if kept is None:
            progress = CopyProgress(await admin.spans_between(source, order.since_ms / 1000, order.until_ms / 1000))
        else:
            progress = kept[1]
        return progress, *await _count(admin, progress, order, max(limit - progress.copied, 0))

    progress, found, is_limited = operator.ask(look)
    if kept is not None:
        operator.say(f"{counted(progress.copied, 'message was', 'messages were')} copied before, as {resume} says")
    if is_limited:
        typer.echo(f"skyrocket msg copy: --limit {limit:,} leaves the newest ones out: give a higher one", err=True)

    async def do(admin: "Admin") -> None:
        before = progress.copied
        place.keep(order, progress, now=True)
        with ended_by_sigterm(), sent_counted(operator, "msg copy", f"sent to {target}") as told:

            def passed() -> None:
                told(progress.copied - before)
                place.keep(order, progress)

            progress.at = passed
            try:
                await admin.go_on_copying(progress, target, tags=tags, key=key, most=limit, rate=rate)
            except BaseException:
                _say_where(progress, resume)
                raise
            finally:
                place.keep(order, progress, now=True)

    changes = [Change(f"{counted(found, 'message')} of {source}", f"topic {target}", "copies", 0, 1)] if found else []
    operator.carry_out(changes, do)


def _order(source: str, target: str, since: str | None, until: str | None, tags: str, key: str | None) -> CopyOrder:
    if since is None:
        raise ConfigError("--since is missing: from when on? Only what --resume has kept knows it")
    begin, end = window(since, until)
    end = min(end, SystemClock().now_ms())
    if end <= begin:
        raise ConfigError("--until is not behind --since")
    return CopyOrder(source, target, begin, end, tags, key)


def _check_same(path: Path | None, order: CopyOrder, source: str, target: str, tags: str, key: str | None) -> None:
    """--since and --until count when a copy begins; `2h` would be another time now."""
    wanted = {"source": source, "target": target, "tags": tags, "key": key}
    for name, value in wanted.items():
        if getattr(order, name) != value:
            raise ConfigError(
                f"{path} is of a copy with another {name}: {getattr(order, name)!r}, not {value!r}; give it the same, "
                "or another --resume"
            )


async def _count(admin: "Admin", progress: "CopyProgress", order: CopyOrder, most: int) -> tuple[int, bool]:
    """How many are copied, and whether there are more."""
    if order.tags == "*" and order.key is None:
        there = sum(max(end - begin, 0) for begin, end in progress.left.values())
        return min(there, most), there > most
    found = 0
    async for _ in admin.messages_of(progress.left, tags=order.tags, key=order.key):
        if found == most:
            return found, True
        found += 1
    return found, False


def _say_where(progress: "CopyProgress", path: Path | None) -> None:
    last = progress.last
    if last is not None:
        where = f"offset {last.queue_offset} of queue {last.queue_id} at {last.broker_name}"
        text = f"the last one that is confirmed was stored at {moment(last.store_timestamp)}, at {where}"
        typer.echo(visible_lines(f"skyrocket msg copy: {text}"), err=True)
    if path is not None:
        again = "the same command goes on there; the next message may be copied twice"
        typer.echo(visible_lines(f"skyrocket msg copy: {path} has the place: {again}"), err=True)
