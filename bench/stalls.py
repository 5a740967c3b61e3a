"""How long pulls wait while the disk stands still: `python -m bench.stalls` (root, ext4 and loop devices).

A server of our own has its store on a disk that is stopped for some seconds, again and again, while a load generator
sends. Pulls of messages that are in memory are due at a fixed rate; each counts from when it was due, so that those
that could not be sent count too. What counts is the time in which the disk stood still.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.load.own_server import WORK, own_server
from bench.load.request_frames import PullFrame
from skyrocket.testing.stalling_disk import NoStallingDisk, StallingDisk, stalling_disk

TARGET_MS: Final = 50.0
_TOPIC: Final = "Stalls"
_PULLS_PER_SECOND: Final = 200
_PAUSE_S: Final = 3.0


@dataclass(frozen=True)
class Stall:
    """What pulls met while the disk stood still once."""

    seconds: float
    pulls: int
    p99_ms: float
    longest_ms: float


class Puller(threading.Thread):
    """Pulls the first messages of a queue, when they are due."""

    def __init__(self, broker: tuple[str, int]) -> None:
        super().__init__(name="puller", daemon=True)
        self.waits: list[tuple[float, float]] = []  # when it was due, and how long it took
        self._socket = socket.create_connection(broker, timeout=60)
        self._frame = PullFrame(_TOPIC, 0, 32).patched(0, 0)
        self._stopped = threading.Event()

    def run(self) -> None:
        due = time.perf_counter()
        while not self._stopped.wait(max(due - time.perf_counter(), 0)):
            self._socket.sendall(self._frame)
            answer = self._read(int.from_bytes(self._read(4), "big"))
            assert b'"code":0,' in answer, answer[:300]
            self.waits.append((due, time.perf_counter() - due))
            due += 1 / _PULLS_PER_SECOND

    def _read(self, size: int) -> bytes:
        data = self._socket.recv(size, socket.MSG_WAITALL)
        if len(data) < size:
            raise ConnectionError("the server closed the connection")
        return data

    def stop(self) -> None:
        self._stopped.set()
        self.join(60)
        self._socket.close()

    def between(self, began: float, ended: float) -> Stall:
        waits = sorted(wait for due, wait in self.waits if began <= due < ended)
        if not waits:
            raise AssertionError("no pull was due")
        return Stall(ended - began, len(waits), waits[int(len(waits) * 0.99)] * 1000, waits[-1] * 1000)


@contextlib.contextmanager
def load(broker: tuple[str, int], seconds: float, extra: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """Senders beside us, for so long at most."""
    command = [sys.executable, "-m", "bench.load", "--broker", f"{broker[0]}:{broker[1]}", "send"]
    command += ["--topic", _TOPIC, "--seconds", str(seconds), "--json", *extra]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.killpg(process.pid, signal.SIGKILL)  # its workers, too
        process.wait()


def measure(
    disk: StallingDisk, *, stalls: int, seconds: float, frozen: bool, settings: Sequence[str], extra: Sequence[str]
) -> list[Stall]:
    """Stop the disk so many times under load."""
    with own_server(settings, disk.folder, stop_timeout_s=60) as server:
        with load(server.broker, 2, ["--warm-up", "0.1"]) as first:
            first.wait(60)  # what is pulled
        puller = Puller(server.broker)
        puller.start()
        found = []
        with load(server.broker, stalls * (seconds + _PAUSE_S) + 60, extra):
            time.sleep(_PAUSE_S)
            for _ in range(stalls):
                began, ended = disk.stall(seconds, frozen=frozen)
                time.sleep(_PAUSE_S)
                found.append(puller.between(began, ended))
        puller.stop()
        return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.stalls", description=__doc__)
    parser.add_argument("--stalls", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long the disk stands still")
    parser.add_argument("--frozen", action="store_true", help="freeze the file system, not the device below it")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--rate", type=int, help="sends per second; default: as many as it takes")
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    extra = ["--rate", str(options.rate)] if options.rate else []
    try:
        with stalling_disk(options.work) as disk:
            found = measure(
                disk,
                stalls=options.stalls,
                seconds=options.seconds,
                frozen=options.frozen,
                settings=options.settings,
                extra=extra,
            )
    except NoStallingDisk as reason:
        sys.exit(f"not measured: {reason}")
    for number, stall in enumerate(found, 1):
        if options.json:
            print(json.dumps(vars(stall)))
        else:
            print(
                f"stall {number:2} of {stall.seconds:4.1f} s: {stall.pulls} pulls, "
                f"99 % within {stall.p99_ms:7.1f} ms, longest {stall.longest_ms:7.1f} ms"
            )
    met = sum(stall.p99_ms < TARGET_MS for stall in found)
    print(f"99 % of the pulls under {TARGET_MS:.0f} ms in {met} of {len(found)} stalls", file=sys.stderr)
    sys.exit(met < len(found))


if __name__ == "__main__":
    main()
