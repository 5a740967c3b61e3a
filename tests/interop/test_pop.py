"""The official Java client's push consumer in pop mode at our server: messages, retries, a killed server."""

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client import Admin, Message, Producer
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.protocol.bodies.assignment import RequestMode
from skyrocket.protocol.bodies.groups import SUBSCRIPTION_GROUP
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.requests.messaging import SendMessageV2
from skyrocket.protocol.requests.pop import SetMessageRequestMode
from skyrocket.remoting.client import RemotingClient
from tests.interop.apache import Apache
from tests.ports import free_port
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

TOPIC, GROUP = "TopicPop", "GroupPop"
VERSION = "5.4.0"


class Server:
    """Our server on ports that it keeps when it is started again."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._ports = ["0", "0"]
        self._metrics_port = free_port()
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "skyrocket", "standalone", "--broker-ip", "127.0.0.1"]
        command += ["--namesrv-port", self._ports[0], "--listen-port", self._ports[1]]
        command += ["--store", str(self._home / "store"), "--set", f"metricsPromExporterPort={self._metrics_port}"]
        with open(self._home / "standalone.log", "a") as log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "HOME": str(self._home)}
            )
        assert self._process.stdout is not None
        ready = re.search(r"namesrv=\S+:(\d+) broker=\S+:(\d+)", self._process.stdout.readline())
        assert ready is not None, (self._home / "standalone.log").read_text()
        self._ports = [ready[1], ready[2]]

    @property
    def name_server(self) -> str:
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def broker(self) -> str:
        return f"127.0.0.1:{self._ports[1]}"

    def metric(self, name: str) -> float:
        """The sum over all its labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics_port}/metrics", timeout=20) as page:
            lines = page.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name}{{", f"{name} ")))

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    made.start()
    try:
        yield made
    finally:
        made.kill()


class PopConsumer:
    """The Java program; what its listener was given."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue(maxsize=10_000)
        self.seen: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def all_seen(self) -> list[dict[str, Any]]:
        """With what it has printed by now."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.seen.append(self._lines.get_nowait())
        return self.seen

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(json.loads(line))

    def until(self, condition: Callable[[list[dict[str, Any]]], bool], seconds: float) -> list[dict[str, Any]]:
        deadline = time.monotonic() + seconds
        while not condition(self.seen):
            left = deadline - time.monotonic()
            assert left > 0, f"it did not happen; seen: {self.seen}"
            with contextlib.suppress(queue.Empty):
                self.seen.append(self._lines.get(timeout=left))
        return self.seen


@contextlib.contextmanager
def pop_consumer(apache: Apache, name_server: str, home: Path) -> Iterator[PopConsumer]:
    with open(home / "consumer.log", "w") as log:
        process = subprocess.Popen(
            apache.command("PopClient", name_server, GROUP, TOPIC, home=home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        yield PopConsumer(process)
    finally:
        process.kill()
        process.wait()


def bodies(lines: list[dict[str, Any]]) -> set[str]:
    return {line["body"] for line in lines if "body" in line}


async def _prepare(broker: str, sent: list[str]) -> None:
    async with RemotingClient() as client:
        for number, body in enumerate(sent):
            request = SendMessageV2(
                producer_group="Producers",
                topic=TOPIC,
                default_topic="TBW102",
                default_topic_queue_nums=4,
                queue_id=number % 4,
                sys_flag=0,
                born_timestamp=1_700_000_000_000,
                flag=0,
                properties=f"UNIQ_KEY\x01U{body}\x02",
                reconsume_times=0,
            )
            await client.call(broker, request, body.encode())
        group = SUBSCRIPTION_GROUP.encode(SubscriptionGroup(GROUP))
        await client.invoke(broker, RemotingCommand(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group))
        mode = RequestMode(topic=TOPIC, group=GROUP, mode="POP", pop_share_queues=8)
        await client.call(broker, SetMessageRequestMode(), mode.encode())


async def test_the_java_push_consumer_pops_retries_and_acknowledges(
    apache_of_version: Callable[[str], Apache], server: Server, tmp_path: Path
) -> None:
    apache = apache_of_version(VERSION)
    sent = [f"m{number}" for number in range(20)] + ["fail-a", "fail-b"]
    await _prepare(server.broker, sent)
    with pop_consumer(apache, server.name_server, tmp_path) as consumer:
        seen = consumer.until(lambda lines: bodies(lines) == set(sent), 60)
        assert all(line["isPopped"] for line in seen if "body" in line)
        retried = consumer.until(lambda lines: sum(1 for line in lines if line.get("reconsumeTimes") == 1) >= 2, 60)
        again = [line for line in retried if line.get("reconsumeTimes") == 1]
        assert {line["body"] for line in again} == {"fail-a", "fail-b"}
        assert {line["topic"] for line in again} == {TOPIC}, "messages of the retry topic keep the name of their own"
        # All that was ever popped is acknowledged, or was given to the group again: nothing is left that could come.
        wait_until(lambda: server.metric("rocketmq_pop_revive_lag") == 0)
        assert server.metric("rocketmq_pop_revive_retry_messages_total") == 2
        counted = [line["body"] for line in consumer.all_seen() if "body" in line]
        assert sorted(counted) == sorted([*sent, "fail-a", "fail-b"])


async def test_what_the_java_consumer_had_in_hand_comes_again_after_a_killed_server(
    apache_of_version: Callable[[str], Apache], server: Server, tmp_path: Path
) -> None:
    apache = apache_of_version(VERSION)
    sent = [f"m{number}" for number in range(8)] + ["fail-a"]
    await _prepare(server.broker, sent)
    with pop_consumer(apache, server.name_server, tmp_path) as consumer:
        consumer.until(lambda lines: bodies(lines) == set(sent), 60)
        server.kill()
        server.start()
        # Also those whose acknowledgement the kill cut off may come again, but this one must.
        consumer.until(
            lambda lines: any(line.get("reconsumeTimes") == 1 and line["body"] == "fail-a" for line in lines), 90
        )


async def _prepare_priorities(name_server: str, broker: str, counts: dict[int, int]) -> None:
    async with Admin(name_server) as admin, Producer("Producers", name_server) as producer:
        await admin.create_topic(TOPIC, 4, attributes={"message.type": "PRIORITY"})
        for priority, count in counts.items():
            for number in range(count):
                await producer.send(Message(TOPIC, f"{priority}-{number}".encode(), priority=priority))
    await _prepare(broker, [])


async def test_the_java_push_consumer_pops_high_priorities_first(
    apache_of_version: Callable[[str], Apache], server: Server, tmp_path: Path
) -> None:
    apache = apache_of_version(VERSION)
    counts = {0: 50, 1: 50, 3: 50}
    await _prepare_priorities(server.name_server, server.broker, counts)
    sent = {f"{priority}-{number}" for priority, count in counts.items() for number in range(count)}
    with pop_consumer(apache, server.name_server, tmp_path) as consumer:
        lines = consumer.until(lambda lines: bodies(lines) == sent, 90)
    # Its threads mix what one pop has brought; when a message was popped stands in its receipt.
    popped_at: dict[int, list[int]] = {priority: [] for priority in counts}
    for line in lines:
        if "body" in line and not line["reconsumeTimes"]:
            popped_at[int(line["body"].partition("-")[0])].append(int(line["receipt"].split(" ")[1]))
    assert max(popped_at[3]) <= min(popped_at[1])
    assert max(popped_at[1]) <= min(popped_at[0])
    assert max(popped_at[3]) < max(popped_at[0])
