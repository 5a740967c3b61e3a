"""Rolling restarts of `skyrocket worker` by SIGTERM under load: nothing is lost; what comes twice is counted.

One worker that is restarted repeats nothing: it ends what it has begun and saves how far it came. Of several, those
that stay hand queues over to the one that joins; what they had begun of these, or had done and not yet told the broker,
comes again there. So whatever comes twice has come to two workers, and that is what the test finds.
"""

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from skyrocket import blocking
from skyrocket.testing import LocalCluster
from tests.integration.program import Program
from tests.waiting import wait_until

APPLICATION = """
import asyncio
import os
from pathlib import Path

from skyrocket import ConsumeFromWhere, PushConsumer, PushConsumerSettings

first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
consumer = PushConsumer("Billing", settings=PushConsumerSettings(consume_from=first, max_concurrency=8))
seen = os.open(Path(__file__).parent / "seen.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@consumer.on("Orders")
async def order(body: str) -> None:
    await asyncio.sleep(0.01)
    os.write(seen, f"{body} {os.getpid()}\\n".encode())
"""


MOST_WAITING = 1000
"""Messages that nobody has consumed: a machine on which workers start slowly must not pile them up for an hour."""


class Load:
    """A thread that sends numbers; what was confirmed."""

    def __init__(self, names: str, folder: Path) -> None:
        self.confirmed: list[str] = []
        self._names = names
        self._folder = folder
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._send, name="load")

    def _send(self) -> None:
        with blocking.Producer("Shop", self._names) as producer:
            number = 0
            while not self._is_over.is_set():
                producer.send("Orders", str(number))
                self.confirmed.append(str(number))
                number += 1
                time.sleep(0.004)
                while number % 100 == 0 and number - len(_seen(self._folder)) > MOST_WAITING:
                    if self._is_over.wait(0.1):
                        break

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("rounds", [3, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
@pytest.mark.parametrize("workers", [1, 2])
def test_rolling_restarts_lose_nothing(
    tmp_path: Path, rocketmq: LocalCluster, workers: int, rounds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop.py").write_text(APPLICATION)
    names = rocketmq.name_server_address
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(_worker(tmp_path, names)) for _ in range(workers)]
        for each in running:
            each.await_line("consumes Orders")  # before that a signal finds nobody who would hear it
        load = stack.enter_context(Load(names, tmp_path))
        wait_until(lambda: len(_seen(tmp_path)) > 20)
        for number in range(rounds):
            stopped = running.pop(0)
            assert stopped.stop() == 0, "\n".join(stopped.lines)
            before = len(_seen(tmp_path))  # now, so that what is waited for is not the work of the one that has gone
            running.append(stack.enter_context(_worker(tmp_path, names)))
            running[-1].await_line("consumes Orders")
            wait_until(partial(_more_than, tmp_path, before + 20), f"work goes on, round {number}")
        load.__exit__()
        confirmed = set(load.confirmed)
        _await_all(tmp_path, confirmed)
        for each in running:
            assert each.stop() == 0
    repeated = {body: by for body, by in _seen(tmp_path).items() if len(by) > 1}
    count = sum(len(by) - 1 for by in repeated.values())
    with capsys.disabled():
        print(f"\n{workers} workers, {rounds} restarts, {len(confirmed)} messages: {count} came twice")  # noqa: T201
    assert all(len(set(by)) == len(by) for by in repeated.values()), "a worker repeats nothing by itself"
    if workers == 1:
        assert repeated == {}, "a stop in order leaves nothing to repeat"


def _await_all(folder: Path, confirmed: set[str]) -> None:
    """What waits takes its time; lost is what is missing when a minute long nothing new has come."""
    while missing := confirmed - (seen := _seen(folder)).keys():
        some = ", ".join(sorted(missing)[:10])
        wait_until(partial(_more_than, folder, len(seen)), f"{len(missing)} are missing, as {some}")


@contextlib.contextmanager
def _worker(folder: Path, names: str) -> Iterator[Program]:
    with Program("worker", "shop:consumer", "--app-dir", str(folder), "-n", names, home=folder) as program:
        yield program


def _more_than(folder: Path, count: int) -> bool:
    return len(_seen(folder)) > count


def _seen(folder: Path) -> dict[str, list[str]]:
    """By message: the workers that it came to."""
    path = folder / "seen.txt"
    found = defaultdict(list)
    for line in path.read_text().splitlines() if path.exists() else []:
        body, worker = line.split()
        found[body].append(worker)
    return found
