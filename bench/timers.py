"""A million timers that wait: how fast they are parked, what they cost, how long a restart takes.

    python -m bench.timers                 a million
    python -m bench.timers --count 100000
    python -m bench.timers --count 0       only what senders see
    python -m bench.timers --only-kill     only the start after kill -9

First as senders see it: sends and timers take turns on one server, over sockets (`bench.load`). Then in one process,
without network, protocol and checks of a send: there a plain message costs so little that the ratio is another. Plain
messages and timers take turns, and their processor time is compared, so that a busy machine shows in both. At last a
server with as many that wait is killed, and started again on its store.
"""

import argparse
import os
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.load.measure import Timing, measure
from bench.load.own_server import own_server
from bench.load.scenario import SEND, Scenario
from skyrocket.broker.timer.rules import TimerRules
from skyrocket.broker.timer.service import TimerService
from skyrocket.broker.timer.timer_counts import TimerCountTable
from skyrocket.config.sections import StoreConfig
from skyrocket.format.config_files import TIMERS
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore
from skyrocket.store.timer.timer_files import TimerFiles
from skyrocket.testing.clock import FakeClock

WORK = Path(__file__).parent.parent / "var" / "bench"  # on a disk: /tmp may live in memory
GROUP = 64  # messages of one turn of an event loop
PARKED_AFTER = 8  # groups: at 5,000 timers a second so much is found every 100 ms, when the service looks
CHUNKS = 40  # plain messages and timers take turns so often
SPREAD_SECONDS = 2 * 86_400 - 120
ROUNDS = 5
FILL_SECONDS = 2.0  # of sends before the next time at which timers are due


class Timed:
    """A store with its timer and a clock that is moved."""

    def __init__(self, root: Path, clock: FakeClock) -> None:
        disk = Disk()
        self.clock = clock
        self.config = StoreConfig(dispatch_thread=False)
        self.store = MessageStore(root, self.config, clock=clock)
        self.store.open()
        self.files = TimerFiles(disk, self.store.paths, self.config.timer_precision_ms, self.config.timer_log_file_size)
        file = ConfigFile(disk, str(root / "config" / "timermetrics"), TIMERS.decode, TIMERS.encode)
        counts = TimerCountTable(file, clock)
        self.service = TimerService(self.store, self.files, counts, clock, self.config)
        self.service.load()
        self.rules = TimerRules(self.config, clock, self.service)

    def dispatch(self) -> None:
        self.store.dispatch()

    def fire(self) -> None:
        while self.service.fire_due(self.clock.now_ms()):
            self.dispatch()

    def put(self, first: int, count: int, *, timers: bool) -> None:
        """In groups, as an event loop does; what waits is parked in between."""
        for number, begin in enumerate(range(first, first + count, GROUP), 1):
            group = [self._message(each, timers) for each in range(begin, min(begin + GROUP, first + count))]
            assert all(result.ok for result in self.store.intake.put_group(group))
            self.dispatch()
            if timers and number % PARKED_AFTER == 0:
                self.service.fire_due(self.clock.now_ms())
        self.fire()

    def _message(self, number: int, is_timer: bool) -> PutMessage:
        key = b"UNIQ_KEY\x017F0000010001000000000000%08X\x02WAIT\x01true\x02" % number
        if not is_timer:
            return PutMessage("Orders", number % 8, b"x" * 128, key)
        seconds = 60 + number * 7919 % SPREAD_SECONDS
        message = PutMessage("Orders", number % 8, b"x" * 128, key + b"TIMER_DELAY_SEC\x01%d\x02" % seconds)
        self.rules.park(message)
        return message

    def stop(self) -> None:
        self.service.close()
        self.store.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.timers", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="timers")
    parser.add_argument("--only-kill", action="store_true", help="only the start after kill -9")
    options = parser.parse_args()
    if not options.only_kill:
        _measure_senders()
    if not options.count:
        return
    WORK.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=WORK, prefix="timers-"))
    try:
        if not options.only_kill:
            _measure(folder, options.count)
        _measure_start_after_kill(folder / "killed", options.count)
    finally:
        shutil.rmtree(folder)


def _measure_senders() -> None:
    """Rates and the server's processor time, medians of rounds that take turns; ratios of neighbouring rounds."""
    timing = Timing(0.5, 2.0)
    rates: list[tuple[float, float]] = []
    costs: list[tuple[float, float]] = []
    with own_server() as server:
        for window in (1, 16):
            rates.clear()
            costs.clear()
            for _ in range(ROUNDS):
                plain, timers = (
                    measure(_sends(server.broker, window, seconds), timing, 1, [server.pid]) for seconds in (0, 3600)
                )
                rates.append((plain.rate, timers.rate))
                costs.append((plain.server_cpu_us or 0.0, timers.server_cpu_us or 0.0))
            plain_rate, timer_rate = (statistics.median(column) for column in zip(*rates, strict=True))
            plain_us, timer_us = (statistics.median(column) for column in zip(*costs, strict=True))
            ratio = statistics.median(timer / plain for plain, timer in rates)
            print(f"over sockets, 64 connections, {window} in flight on each")
            print(f"  plain messages sent                 {plain_rate:>12,.0f} /s   {plain_us:.1f} µs of the server")
            print(
                f"  timers sent                         {timer_rate:>12,.0f} /s   {timer_us:.1f} µs of the server"
                f"   {ratio:.2f} of plain"
            )


def _sends(address: tuple[str, int], window: int, timer_seconds: int) -> Scenario:
    return Scenario(
        kind=SEND,
        address=address,
        topic="Orders",
        connections=64,
        window=window,
        rate=None,
        body_size=128,
        batch=1,
        queues=8,
        tag="",
        pull_at_most=32,
        timer_seconds=timer_seconds,
    )


def _measure(folder: Path, count: int) -> None:
    clock = FakeClock()
    plain, timed = Timed(folder / "plain", clock), Timed(folder / "timers", clock)
    before = _memory_mib()
    chunk = -(-count // CHUNKS)
    costs: list[tuple[float, float]] = []
    for first in range(0, count, chunk):
        part = min(chunk, count - first)
        costs.append(
            (
                _cpu_seconds(partial(plain.put, first, part, timers=False)) / part * 1e6,
                _cpu_seconds(partial(timed.put, first, part, timers=True)) / part * 1e6,
            )
        )
    plain.stop()
    plain_us, timer_us = (statistics.median(column) for column in zip(*costs, strict=True))
    low, ratio, high = statistics.quantiles([plain_us / timer_us for plain_us, timer_us in costs], n=4)
    print(f"plain messages put and dispatched     {plain_us:>12.2f} µs of processor time")
    print(
        f"timers put, dispatched and parked     {timer_us:>12.2f} µs   {ratio:.2f} of the rate of plain messages"
        f" ({low:.2f} to {high:.2f} in the middle half of the rounds)"
    )
    after = _memory_mib()
    for name in before:
        print(f"memory for {count:,} that wait, {name:<10} {after[name] - before[name]:>7,.0f} MiB")
    saving = _seconds(timed.service.save)
    print(f"saving the files once                 {saving:>12.3f} s")
    stopping = _seconds(timed.stop)
    print(f"stop                                  {stopping:>12.3f} s")

    began = time.perf_counter()
    timed = Timed(folder / "timers", clock)
    whole = time.perf_counter() - began
    print(f"start with store recovery             {whole:>12.3f} s")
    timed.service.save()
    again = TimerFiles(Disk(), timed.store.paths, 1000, timed.config.timer_log_file_size)
    opening = _seconds(lambda: again.open(timed.store.commit_log.readable_offset))
    print(f"the timer's part of it                {opening:>12.3f} s")
    again.close()
    (folder / "timers" / "timerwheel").unlink()
    again = TimerFiles(Disk(), timed.store.paths, 1000, timed.config.timer_log_file_size)
    opening = _seconds(lambda: again.open(timed.store.commit_log.readable_offset))
    print(f"the same without a wheel              {opening:>12.3f} s")
    again.close()

    clock.advance(seconds=SPREAD_SECONDS + 120)
    delivering = _cpu_seconds(timed.fire) / count * 1e6
    print(f"timers delivered                      {delivering:>12.2f} µs of processor time")
    assert timed.service.totals.delivered == count, timed.service.totals
    timed.stop()


def _measure_start_after_kill(store: Path, count: int) -> None:
    """From the start of the process until it takes messages; an empty store beside it."""
    sent = 0
    with own_server(store=store) as server:
        empty = server.seconds_to_ready
        for number in range(1, 1000):
            seconds = 3600 + number * 7919 % SPREAD_SECONDS
            filled = measure(_sends(server.broker, 16, seconds), Timing(0.0, FILL_SECONDS), 1, [server.pid])
            assert not filled.errors, filled
            sent += filled.messages
            if sent >= count:
                break
        os.kill(server.pid, signal.SIGKILL)
    with own_server(store=store) as server:
        log_mib = sum(file.stat().st_blocks for file in (store / "commitlog").iterdir()) * 512 / 2**20
        print(
            f"server ready after kill -9            {server.seconds_to_ready:>12.3f} s   with {sent:,} that wait,"
            f" {log_mib:,.0f} MiB of log (an empty store: {empty:.3f} s)"
        )


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _memory_mib() -> dict[str, float]:
    """What the process itself holds, and pages of mapped files, which the kernel takes back when it needs them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return {name: int(fields[key].split()[0]) / 1024 for name, key in (("private", "RssAnon"), ("mapped", "RssFile"))}


if __name__ == "__main__":
    main()
