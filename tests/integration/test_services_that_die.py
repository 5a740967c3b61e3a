"""A broker whose loops die: one bad moment passes, a loop that cannot live stops the program with a reason."""

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from skyrocket.broker.state import persistence
from skyrocket.remoting import services

async def doomed(self):
    raise OSError("no space left")

persistence.Persistence.run = doomed
services.Services.__init__.__kwdefaults__["first_pause_seconds"] = 0.01
from skyrocket.cli import main
sys.argv = ["skyrocket", *sys.argv[1:]]
main()
"""


def test_a_program_without_a_vital_loop_stops_and_says_why(tmp_path: Path) -> None:
    arguments = ["standalone", "--namesrv-port", "0", "--listen-port", "0", "--store", str(tmp_path / "store")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments, "--set", "bindAddress=127.0.0.1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert re.search(r"skyrocket standalone: doomed died 6 times .* at last of OSError: no space left\.", done.stderr)
    assert done.stderr.count("a service died and is run again") == 5
    assert not (tmp_path / "store" / "abort").exists()  # it stopped in order
