"""mqadmin's 89 names and what is compared of each, as a table of the documentation (`tests/interop/matrix.py`)."""

from skyrocket.cli.mqadmin.commands import COMMANDS
from tests.interop.compared.names import COMPARED, ELSEWHERE
from tests.interop.compared.verb import ALL

_HEADINGS = ("skyrocket", "RocketMQ 5.4.0", "RocketMQ 4.9.7")


def compared_table() -> str:
    """A row for each name: how many of its commands print the same rows, and why others do not."""
    lines = [f"| name | {' | '.join(_HEADINGS)} |", "|---" * (1 + len(ALL)) + "|"]
    names = sorted(COMMANDS, key=str.lower)
    lines += [f"| {name} | {' | '.join(_cell(name, server) for server in ALL)} |" for name in names]
    return "\n".join(lines) + "\n"


def _cell(name: str, server: str) -> str:
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    verbs = [verb for verbs in COMPARED.values() for verb in verbs if verb.name == name and server in verb.servers]
    alike = sum(not verb.reason for verb in verbs)
    words = [f"same ({alike})"] if alike else []
    return "; ".join([*words, *dict.fromkeys(verb.reason for verb in verbs if verb.reason)])
