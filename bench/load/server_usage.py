"""What a server costs, as Linux counts it: CPU time and memory of its processes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_LISTENING = "0A"


@dataclass(frozen=True)
class Memory:
    """In bytes, summed over processes."""

    anonymous: int  # heap and stacks: what the processes have for themselves alone
    private: int  # with the pages of mapped files that no other process maps, which are page cache


def cpu_seconds(pids: Sequence[int]) -> float:
    """User and system time of all threads; a tick is 10 ms, so measure over seconds."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def memory(pids: Sequence[int]) -> Memory:
    """Memory now."""
    anonymous = private = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, value = line.split()[:2]
            if name == "Anonymous:":
                anonymous += int(value) << 10
            elif name in ("Private_Clean:", "Private_Dirty:"):
                private += int(value) << 10
    return Memory(anonymous, private)


def pids_listening_on(port: int) -> list[int]:
    """Processes of this machine that accept connections on a port, as far as we may see them."""
    sockets = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not Path(table).exists():
            continue
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{fields[9]}]")
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit() and _holds(folder, sockets)]


def _holds(process: Path, sockets: set[str]) -> bool:
    try:
        return any(str(handle.readlink()) in sockets for handle in (process / "fd").iterdir())
    except OSError:  # another user's, or gone meanwhile
        return False
