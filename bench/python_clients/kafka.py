"""Kafka with aiokafka: one broker that is its own controller."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.interop.apache import run_bounded

from bench.load.own_server import WORK
from bench.peers.maven import classpath
from bench.peers.other_system import Missing
from bench.peers.processes import await_ready, folder, free_ports, listens, process
from bench.python_clients.system import QUEUES, Client, Running, System

VERSION = "3.9.1"
_FORMAT_TIMEOUT_S = 60
_CLUSTER_ID = "c2t5cm9ja2V0LWJlbmNoLQ"
_POLL_MS = 1000
_PORTION = 500


class KafkaClient(Client):
    """One producer that waits for no linger, and a consumer for each way."""

    def __init__(self, port: int) -> None:
        self._address = f"127.0.0.1:{port}"
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # a server that starts is no news
        self._producer: Any = None

    async def open(self) -> None:
        import aiokafka
        from aiokafka.admin import AIOKafkaAdminClient, NewTopic

        admin = AIOKafkaAdminClient(bootstrap_servers=self._address)
        await admin.start()
        try:
            topics = [NewTopic(name, QUEUES, 1) for name in ("speed", "stock", "live")]
            await admin.create_topics(topics)
        finally:
            await admin.close()
        self._producer = aiokafka.AIOKafkaProducer(bootstrap_servers=self._address, acks="all")
        await self._producer.start()

    async def close(self) -> None:
        await self._producer.stop()

    async def send(self, body: bytes) -> None:
        await self._producer.send_and_wait("live" if body[:1] != b"x" else "speed", body)

    async def send_many(self, body: bytes, count: int) -> None:
        await self._send("speed", body, count)

    async def fill(self, body: bytes, count: int) -> None:
        await self._send("stock", body, count)

    async def _send(self, topic: str, body: bytes, count: int) -> None:
        for begin in range(0, count, _PORTION):
            portion = min(_PORTION, count - begin)
            pending = [await self._producer.send(topic, body) for _ in range(portion)]
        await self._producer.flush()
        await asyncio.gather(*pending)

    def _consumer(self, topic: str, **options: Any) -> Any:
        import aiokafka

        return aiokafka.AIOKafkaConsumer(topic, bootstrap_servers=self._address, **options)

    async def consume_one_by_one(self, count: int, reader: str) -> None:
        consumer = self._consumer("stock", group_id=reader, auto_offset_reset="earliest")
        await consumer.start()
        try:
            async for record in consumer:
                assert record.value
                count -= 1
                if not count:
                    break
        finally:
            await consumer.stop()

    async def consume_in_bulk(self, count: int, reader: str) -> None:
        consumer = self._consumer("stock", group_id=reader, auto_offset_reset="earliest")
        await consumer.start()
        try:
            while count > 0:
                for records in (await consumer.getmany(timeout_ms=_POLL_MS)).values():
                    assert all(record.value for record in records)
                    count -= len(records)
        finally:
            await consumer.stop()

    async def follow(self, seen: Callable[[bytes], None]) -> None:
        consumer = self._consumer("live", group_id=None, auto_offset_reset="latest")
        await consumer.start()
        try:
            async for record in consumer:
                seen(record.value)
        finally:
            await consumer.stop()


@dataclass(frozen=True)
class RunningKafka:
    """One broker."""

    port: int
    pid: int
    began: float

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@contextlib.contextmanager
def running_kafka(more: Mapping[str, object] | None = None) -> Iterator[RunningKafka]:
    """A broker on a free port, with its settings and these; raises Missing."""
    jars = classpath(f"kafka-{VERSION}", f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-nop:1.7.36")
    port, controller = free_ports(2)
    with folder(WORK, "kafka-") as home:
        conf = home / "server.properties"
        settings: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": home / "log",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            **(more or {}),
        }
        conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        java = ["java", "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", f"-Duser.home={home}", "-cp", jars]
        formatting = [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(conf)]
        done = run_bounded(formatting, _FORMAT_TIMEOUT_S)
        if done.exit_code != 0:
            raise Missing(f"Kafka's store cannot be formatted: {(done.stdout + done.stderr)[-300:]}")
        began = time.monotonic()
        with process([*java, "kafka.Kafka", str(conf)], home, "kafka") as running:
            await_ready(running, home / "kafka.log", lambda: listens(port))
            yield RunningKafka(port, running.pid, began)


@contextlib.contextmanager
def _start() -> Iterator[Running]:
    with running_kafka() as kafka:
        yield Running(lambda: KafkaClient(kafka.port), [kafka.pid], kafka.began)


KAFKA = System("kafka", f"Kafka {VERSION}, aiokafka", "in the page cache of one broker, flushed by the system", _start)
