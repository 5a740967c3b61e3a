"""Senders that never give up, ours and RocketMQ's: a row of numbers for each queue, one after the other.

A number is sent until it is acknowledged; one that was stored without an answer may be found twice, next to each other.
"""

import asyncio
import contextlib
import subprocess
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Final, Protocol, Self

from skyrocket.client import ClientError, ClientSettings, Message, Producer, ProducerSettings
from skyrocket.client.core.send_receipt import SendStatus
from skyrocket.model.message_queue import MessageQueue
from skyrocket.remoting.errors import RemotingError
from tests.interop.apache import Apache
from tests.waiting import wait_until

BROKER: Final = "broker-a"
QUEUES: Final = 2
_PAUSE_SECONDS: Final = 0.02
_PATIENCE_SECONDS: Final = 120.0


class Load(Protocol):
    """A running load; `acknowledged` has the numbers of each queue, as they were acknowledged."""

    topic: str
    acknowledged: dict[int, list[int]]

    def count(self) -> int: ...

    def end(self) -> None:
        """Finish what was begun; fails when that is not acknowledged."""


class OurLoad:
    """Our producer, on a loop in a thread of its own."""

    topic = "OrdersOfOurs"

    def __init__(self, names: str) -> None:
        self._names = names
        self.acknowledged: dict[int, list[int]] = defaultdict(list)
        self._is_ending = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="load of ours")
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ending = True
        self._thread.join()

    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def end(self) -> None:
        self.__exit__()
        if self._failure is not None:
            raise AssertionError("the load of ours failed") from self._failure

    def _run(self) -> None:
        try:
            asyncio.run(self._send_all())
        except Exception as error:  # noqa: BLE001 (told by `end`, in the thread of the test)
            self._failure = error

    async def _send_all(self) -> None:
        settings = ProducerSettings(retries=0, send_timeout=3.0)
        client = ClientSettings(name_servers=self._names)
        async with Producer("OurLoad", settings=settings, client=client) as producer, asyncio.TaskGroup() as group:
            for queue_id in range(QUEUES):
                group.create_task(self._send_row(producer, MessageQueue(self.topic, BROKER, queue_id)))

    async def _send_row(self, producer: Producer, queue: MessageQueue) -> None:
        number = 0
        while not self._is_ending:
            await self._send_one(producer, queue, number)
            self.acknowledged[queue.queue_id].append(number)
            number += 1
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _send_one(self, producer: Producer, queue: MessageQueue, number: int) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                receipt = await producer.send(Message(self.topic, b"%d" % number), queue=queue)
                if receipt.status is SendStatus.SEND_OK:
                    return
            except (ClientError, RemotingError):
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(_PAUSE_SECONDS)


class JavaLoad:
    """RocketMQ's producer, as a process."""

    topic = "OrdersOfJava"

    def __init__(self, apache: Apache, folder: Path, names: str) -> None:
        self.acknowledged: dict[int, list[int]] = defaultdict(list)
        self._has_ended = False
        home = folder / "java-load"
        home.mkdir()
        self._errors = open(home / "errors", "wb")  # noqa: SIM115
        self._process = subprocess.Popen(
            apache.command("FailoverLoad", names, self.topic, BROKER, str(QUEUES), home=home, log_level="ERROR"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=home,
        )
        self._reader = threading.Thread(target=self._read, name="load of Java")
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._errors.close()
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        wait_until(lambda: self._has_ended, "Java's load ends", seconds=_PATIENCE_SECONDS + 30)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == "end":
                self._has_ended = True
                return
            queue_id, number = map(int, line.split())
            self.acknowledged[queue_id].append(number)
