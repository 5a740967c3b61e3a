"""A server that is killed under load: what was confirmed is consumed, and clients go on by themselves."""

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from skyrocket.client import (
    ConsumeFromWhere,
    Message,
    Producer,
    ProducerSettings,
    PushConsumer,
    PushConsumerSettings,
    ReceivedMessage,
    SendFailed,
)
from tests.client.cluster import run_bounded, until

TOPIC = "Orders"


def free_port() -> int:
    """Below the ports that the system gives to connections: while the server is away, one of those might take it."""
    while True:
        port = random.randrange(20_000, 32_000, 8)
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for each in (port - 2, port, port + 1):
                stack.enter_context(socket.create_server(("127.0.0.1", each)))
            return port


class Server:
    """`skyrocket standalone` on fixed ports, to be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = free_port(), free_port()
        self.names = f"127.0.0.1:{self._ports[0]}"
        self._process: subprocess.Popen[str] | None = None

    async def start(self) -> None:
        command = [sys.executable, "-m", "skyrocket", "standalone", "--store", str(self._folder / "store")]
        command += ["--namesrv-port", str(self._ports[0]), "--listen-port", str(self._ports[1])]
        command += ["--broker-ip", "127.0.0.1"]
        environment = {**os.environ, "HOME": str(self._folder)}
        with open(self._folder / "server.log", "w") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        assert self._process.stdout is not None
        line = await asyncio.to_thread(self._process.stdout.readline)
        assert "ready" in line, (self._folder / "server.log").read_text()

    def end(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(20)
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.mark.requirement("A088")
@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGTERM, id="restarted", marks=pytest.mark.slow),
    ],
)
def test_nothing_confirmed_is_lost_and_both_sides_go_on(tmp_path: Path, how: signal.Signals) -> None:
    async def main() -> None:
        server = Server(tmp_path)
        await server.start()
        confirmed: set[bytes] = set()
        got: Counter[bytes] = Counter()
        stopping = False
        settings = ProducerSettings(send_timeout=10, retries=1000, timeout_per_attempt=1.0)
        consumer = PushConsumer(
            "Billing",
            server.names,
            PushConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, persist_interval=0.2),
        )

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            got[message.body] += 1

        try:
            async with Producer("Shop", server.names, settings) as producer, consumer:

                async def work(name: int) -> None:
                    number = 0
                    while not stopping:
                        body = b"%d-%d" % (name, number)
                        try:
                            await producer.send(Message(TOPIC, body))
                        except SendFailed:
                            continue
                        confirmed.add(body)
                        number += 1
                        await asyncio.sleep(0.002)

                workers = [asyncio.create_task(work(name)) for name in range(8)]
                await until(lambda: len(confirmed) > 200, 20)
                before = len(confirmed)
                await asyncio.to_thread(server.end, how)
                await asyncio.sleep(0.3)
                await server.start()
                await until(lambda: len(confirmed) > before + 200, 30)
                stopping = True
                await asyncio.gather(*workers)
                await until(lambda: confirmed <= set(got), 30)
        finally:
            await asyncio.to_thread(server.end, signal.SIGKILL)

    run_bounded(main(), 120)
