"""docs/reference/commands.md, written from the commands themselves.

python -m tests.commands_page > docs/reference/commands.md
"""

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from skyrocket.cli.commands import COMMANDS, load
from skyrocket.cli.output.rows import Column

_HEADING = """# The commands

Written by `python -m tests.commands_page > docs/reference/commands.md` from the commands' own help; a test fails when
it is stale. `skyrocket NOUN VERB --help` has every option. What `produce`, `consume`, `dlq`, `timers`, `transactions`
and `reset` do is in [In the terminal](terminal.md); RocketMQ's own names are in [mqadmin](mqadmin.md).

All of them are clients: they work with Skyrocket and with Apache RocketMQ 4.9 and 5.x, without Java and without Spark.

- **Which cluster**: `--namesrv`, else `$NAMESRV_ADDR`; or `--context NAME`, else the current context
  ([contexts](../guides/operations.md#contexts)), else `127.0.0.1:9876`.
- **As whom**: `--access-key`, `--secret-key`, better `$ROCKETMQ_ACCESS_KEY`, `$ROCKETMQ_SECRET_KEY`.
- `--output table`, `wide` (more columns), `json`, `jsonl`, `csv`; keys of JSON are stable: `readQueues`. A message is
  the line of `consume --format json` everywhere (`queue_offset`), so that `produce --json` takes it. JSON lines without
  rows are empty; stderr says so.
- `--dry-run` of commands that change something: only say what would be changed.
- `--yes`: where something could be lost a question is asked on a terminal; without one `--yes` must be given.
- **Exit code**: 0 done, 1 failed, 2 wrong usage, 3 some brokers did it and others failed (said on stderr), 4 what was
  named is not there. A broker that does not answer in time is waited for once in a command, and counts as failed.
  130: ended by Ctrl-C, `msg copy` by SIGTERM too, which lets it keep its place.

Updates change the fields that are named and nothing else, and show the difference first. Text of strangers (names,
keys, bodies) is shown as text: nothing of it can command a terminal.
"""


def page() -> str:
    """All of it."""
    return _HEADING + "".join(_parts()).rstrip("\n") + "\n"


def _parts() -> Iterator[str]:
    for panel, entries in COMMANDS.items():
        yield f"\n## {panel}\n"
        for name, entry in entries.items():
            command: Any = load(name)
            verbs = getattr(command, "commands", {})
            yield f"\n### {name}\n\n{entry.line}\n"
            if not verbs:
                yield f"\n`skyrocket {_usage(name, command)}`{_options(command)}\n"
                continue
            yield "\n| verb | |\n|---|---|\n"
            for verb, each in verbs.items():
                yield f"| `{_usage(f'{name} {verb}', each)}` | {_first_line(each)}{_options(each)} |\n"
            yield from _keys(entry.module)


def _usage(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument" and not each.hidden]
    return " ".join([name, *(each.metavar or each.name.upper() for each in arguments)])


def _first_line(command: Any) -> str:
    return str(command.help or "").strip().splitlines()[0] if command.help else ""


_SHARED = {
    "--namesrv", "--access-key", "--secret-key", "--security-token", "--namespace", "--tls", "--tls-ca",
    "--tls-cert", "--tls-key", "--tls-insecure-trust-any-server", "--context", "--output", "--dry-run", "--yes",
    "--verbose", "--help",
}  # fmt: skip


def _options(command: Any) -> str:
    own = [
        max(each.opts, key=len)
        for each in command.params
        if each.param_type_name == "option" and not set(each.opts) & _SHARED
    ]
    return f" ({', '.join(f'`{each}`' for each in own)})" if own else ""


def _keys(module: str) -> Iterator[str]:
    found = vars(import_module(f"skyrocket.cli.{module}"))
    tables = {
        name: value
        for name, value in found.items()
        if name.isupper() and isinstance(value, tuple) and value and isinstance(value[0], Column)
    }
    if tables:
        shown = "; ".join(
            f"{name.lower().replace('_', ' ')}: {', '.join(f'`{column.key}`' for column in columns)}"
            for name, columns in tables.items()
        )
        yield f"\nJSON keys of rows: {shown}.\n"


if __name__ == "__main__":
    sys.stdout.write(page())
