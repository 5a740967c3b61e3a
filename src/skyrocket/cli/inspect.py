"""`skyrocket inspect`: shows and checks a store directory, offline."""

from pathlib import Path
from typing import Annotated

import typer

from skyrocket.cli.program.lifetime import EXIT_PROBLEMS, EXIT_USAGE
from skyrocket.cli.program.options import panel
from skyrocket.clock import SystemClock
from skyrocket.errors import SkyrocketError

_show = panel("What to show")
_choose = panel("Which records, entries and keys")
_check = panel("Checking")


def inspect(
    path: Annotated[Path, typer.Argument(help="Store directory: the one that holds `commitlog`.", show_default=False)],
    records: Annotated[bool, _show("--records", help="Records of the log.")] = False,
    queues: Annotated[bool, _show("--queues", help="Queues; the entries of one with --topic and --queue.")] = False,
    index: Annotated[bool, _show("--index", help="Index files; hits of a key with --topic and --key.")] = False,
    checkpoint: Annotated[bool, _show("--checkpoint", help="The checkpoint.")] = False,
    config_files: Annotated[bool, _show("--config-files", help="The files under `config`.")] = False,
    timer: Annotated[bool, _show("--timer", help="Timer log and wheel.")] = False,
    topic: Annotated[str | None, _choose(help="Of this topic only.")] = None,
    queue: Annotated[int | None, _choose(help="Of this queue id only.")] = None,
    from_offset: Annotated[int, _choose(help="From this physical offset on; with --queue: queue offset.")] = 0,
    limit: Annotated[int, _choose(help="At most this many; 0: all.", min=0)] = 20,
    key: Annotated[str | None, _choose(help="With this key or unique key.")] = None,
    tag: Annotated[str | None, _choose(help="With these tags.")] = None,
    body: Annotated[bool, _choose("--body", help="Show inflated bodies.")] = False,
    verify: Annotated[bool, _check("--verify", help="Compare log, queues, index, checkpoint.")] = False,
    compare: Annotated[Path | None, _check(help="Compare the log with that of this store, byte by byte.")] = None,
    strict: Annotated[bool, _check("--strict", help="Warnings count as problems too.")] = False,
    conf: Annotated[Path | None, _check(help="The broker's .conf file.")] = None,
    settings: Annotated[list[str] | None, _check("--set", help="One setting, as maxHashSlotNum=500.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of tables.")] = False,
) -> None:
    """Show and check a store directory of RocketMQ or Skyrocket, offline; no byte of it is changed.

    Without options: a summary. Exit code 0: fine, 1: --verify or --compare found problems, 2: wrong usage or not a
    store.
    """
    if compare is not None:
        _compare(compare, path, strict=strict, as_json=as_json)
        return
    # Here, because a server needs neither their time nor numpy's memory.
    from skyrocket.format.dispatch_claims import QueueName
    from skyrocket.inspector.output import JsonOutput, TableOutput
    from skyrocket.inspector.progress import ScanProgress
    from skyrocket.inspector.settings import inspection_settings
    from skyrocket.inspector.verify import verify as verify_store
    from skyrocket.inspector.views.index import index_files, lookup
    from skyrocket.inspector.views.queues import entries
    from skyrocket.inspector.views.queues import queues as queues_view
    from skyrocket.inspector.views.records import RecordFilter
    from skyrocket.inspector.views.records import records as records_view
    from skyrocket.inspector.views.small_files import checkpoint as checkpoint_view
    from skyrocket.inspector.views.small_files import config_files as config_files_view
    from skyrocket.inspector.views.small_files import timer as timer_view
    from skyrocket.inspector.views.summary import summary
    from skyrocket.offline.store_files import find_store_files

    try:
        given = inspection_settings(conf, settings or [])
        store = find_store_files(path)
    except SkyrocketError as error:
        typer.echo(f"skyrocket inspect: {error}", err=True)
        raise typer.Exit(EXIT_USAGE) from error
    output = JsonOutput() if as_json else TableOutput()
    if not any((records, queues, index, checkpoint, config_files, timer, verify)):
        for view in summary(store):
            output.show(view)
    total = sum(file.size for file in store.commit_log.files)
    if records:
        wanted = RecordFilter(topic, queue, from_offset, key, tag)
        with ScanProgress(total, SystemClock()) as progress:
            output.show(records_view(store.commit_log, wanted, limit, body=body, advance=progress.advance))
    if queues:
        one = topic is not None and queue is not None
        output.show(
            entries(store, QueueName(topic or "", queue or 0), from_offset, limit)
            if one
            else queues_view(store, topic, queue)
        )
    if index:
        shape = given.index_shape
        one = topic is not None and key is not None
        output.show(lookup(store, shape, topic or "", key or "", limit) if one else index_files(store, shape))
    if checkpoint:
        output.show(checkpoint_view(store))
    if config_files:
        output.show(config_files_view(store))
    if timer:
        for view in timer_view(store, limit):
            output.show(view)
    if verify:
        with ScanProgress(total, SystemClock()) as progress:
            result = verify_store(store, given, progress.advance)
        output.show_verification(result, strict=strict)
        if result.has_problems(strict=strict):
            raise typer.Exit(EXIT_PROBLEMS)


def _compare(left: Path, right: Path, *, strict: bool, as_json: bool) -> None:
    """Two stores beside each other; raises typer.Exit when their logs differ."""
    from skyrocket.inspector.compare import compare_logs
    from skyrocket.inspector.output import JsonOutput, TableOutput
    from skyrocket.inspector.progress import ScanProgress
    from skyrocket.offline.offset_files import OffsetFiles
    from skyrocket.offline.store_files import log_directory

    try:
        logs = [OffsetFiles(log_directory(place)) for place in (left, right)]
    except SkyrocketError as error:
        typer.echo(f"skyrocket inspect: {error}", err=True)
        raise typer.Exit(EXIT_USAGE) from error
    total = sum(file.size for log in logs for file in log.files)
    with ScanProgress(total, SystemClock()) as progress:
        result = compare_logs(logs[0], logs[1], progress.advance)
    output = JsonOutput() if as_json else TableOutput()
    output.show_comparison(result, (left, right), strict=strict)
    if result.has_problems(strict=strict):
        raise typer.Exit(EXIT_PROBLEMS)
