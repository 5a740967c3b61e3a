"""Rolling restarts of `skyrocket worker` by SIGTERM under load: nothing is lost; what comes twice is counted.

One worker that is restarted repeats nothing: it ends what it has begun and saves how far it came. Of several, those
that stay hand queues over to the one that joins; what they had begun of these, or had done and not yet told the broker,
comes again there.
"""

import contextlib
import threading
import time
from collections import Counter
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


class Load:
    """A thread that sends numbers; what was confirmed."""

    def __init__(self, names: str) -> None:
        self.confirmed: list[str] = []
        self._names = names
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

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("rounds", [3, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
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
        load = stack.enter_context(Load(names))
        wait_until(lambda: len(_seen(tmp_path)) > 20)
        for number in range(rounds):
            before = len(_seen(tmp_path))
            stopped = running.pop(0)
            assert stopped.stop() == 0, "\n".join(stopped.lines)
            running.append(stack.enter_context(_worker(tmp_path, names)))
            running[-1].await_line("consumes Orders")
            wait_until(partial(_more_than, tmp_path, before + 20), f"work goes on, round {number}")
        load.__exit__()
        confirmed = set(load.confirmed)
        wait_until(lambda: confirmed <= _seen(tmp_path).keys(), "everything was consumed")
        for each in running:
            assert each.stop() == 0
    repeats = {body: count - 1 for body, count in _seen(tmp_path).items() if count > 1}
    with capsys.disabled():
        print(f"\n{workers} workers, {rounds} restarts, {len(confirmed)} messages: {sum(repeats.values())} came twice")  # noqa: T201
    if workers == 1:
        assert repeats == {}, "a stop in order leaves nothing to repeat"


@contextlib.contextmanager
def _worker(folder: Path, names: str) -> Iterator[Program]:
    with Program("worker", "shop:consumer", "--app-dir", str(folder), "-n", names, home=folder) as program:
        yield program


def _more_than(folder: Path, count: int) -> bool:
    return len(_seen(folder)) > count


def _seen(folder: Path) -> Counter[str]:
    path = folder / "seen.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return Counter(line.split()[0] for line in lines)
