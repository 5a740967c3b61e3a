"""The probe sees a lock that another process holds, and takes none."""

import subprocess
import sys
from pathlib import Path

import pytest

from skyrocket.offline.store_files import lock_holder

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0, 0)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.requirement("A024")
def test_the_holder_of_the_lock_is_named(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_bytes(b"lock")
    assert lock_holder(lock) is None
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert lock_holder(lock) == process.pid
        process.communicate("")
    assert lock_holder(lock) is None


def test_a_store_without_a_lock_file_is_free(tmp_path: Path) -> None:
    assert lock_holder(tmp_path / "lock") is None
