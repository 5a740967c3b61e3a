"""One command of mqadmin that both tools run, and where its rows may differ.

Placeholders of all scenes: {n} name server, {b} broker, {out} a directory, {x} J for RocketMQ's tool and S for ours:
what is changed has it in its name, so that both begin with the same cluster.
"""

from dataclasses import dataclass

OURS, V5, V4 = "skyrocket", "5.4.0", "4.9.7"
ALL = (OURS, V5, V4)
SINCE_5 = (OURS, V5)


@dataclass(frozen=True)
class Compared:
    """A command; `reason` says why rows differ, where they do: then ours alone is looked at."""

    command: str
    servers: tuple[str, ...] = ALL
    reason: str = ""
    # For a broker of 4.9.7, which RocketMQ's tool of 5.4.0 cannot ask this: the command for the tool of 4.9.7.
    of_tool_4: str = ""
    endless_s: int = 0  # it never ends by itself: how long it is listened to
    is_in_order: bool = False  # it shows what commands before it have changed

    @property
    def name(self) -> str:
        return self.command.split()[0]

    @property
    def phase(self) -> int:
        """0 looks, 1 changes what others show, 2 sends; both tools are done with one before the next begins."""
        if self.is_in_order:
            return 1
        if self.name.startswith(("send", "checkMsg", "clusterRT")):
            return 2
        return 0 if self.name.startswith(_LOOKS) else 1


_LOOKS = ("clusterList", "topic", "allocate", "broker", "stats", "consume", "producer", "query", "print", "get", "ha")


def same(command: str, servers: tuple[str, ...] = ALL) -> Compared:
    return Compared(command, servers)


def differs(command: str, reason: str, servers: tuple[str, ...] = ALL) -> Compared:
    return Compared(command, servers, reason)


def old_tool_at_4(command: str, for_it: str = "") -> Compared:
    """The tool of 5.4.0 asks every broker for static topics, or for counts; one of 4.9 does not know the question."""
    return Compared(command, of_tool_4=for_it or command)
