"""What this process has mapped: a file that is deleted keeps its room on the disk as long as somebody holds its map."""

from pathlib import Path


def is_mapped(inode: int) -> bool:
    """Files of the log are made without a name, and are shown without the one that they got."""
    return any(line.split()[4] == str(inode) for line in Path("/proc/self/maps").read_text().splitlines())
