"""Metrics and health of servers, asked over HTTP on a port of their own."""

import asyncio
import json
import random
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from skyrocket.broker.broker import CannotStart
from skyrocket.broker.registration.feature import RegistrationFeature
from skyrocket.client import Message
from skyrocket.config.sections import BrokerConfig, MetricsExporter, NameServerConfig
from skyrocket.observability.exposition import Kind, Metric, render
from skyrocket.observability.http_endpoint import MAX_CONNECTIONS, HttpEndpoint, Page
from skyrocket.protocol.requests.offsets import UpdateConsumerOffset
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.broker.broker_fixture import GROUP, TOPIC, RunningBroker, running_broker
from tests.cluster.namesrv import name_server_fixture
from tests.http_get import get
from tests.ports import free_port
from tests.unit.store.stores import clean_expired
from tests.waiting import until

OBSERVED = BrokerConfig(metrics_exporter=MetricsExporter.PROM, metrics_port=0)


async def scraped(port: int) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    """Every number by its name and labels, as Prometheus' own library reads them."""
    status, text = await asyncio.to_thread(get, port, "/metrics")
    assert status == 200
    return {
        sample.name: {frozenset(s.labels.items()): s.value for s in family.samples if s.name == sample.name}
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(numbers: dict[frozenset[tuple[str, str]], float], **labels: str) -> float:
    (found,) = [number for own, number in numbers.items() if labels.items() <= dict(own).items()]
    return found


async def ready(given: RunningBroker) -> tuple[int, dict[str, object]]:
    status, text = await asyncio.to_thread(get, given.broker.metrics_port, "/ready")
    return status, json.loads(text)


# ── the broker ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("B018")
async def test_what_happens_in_a_broker_is_seen_in_its_metrics(tmp_path: Path) -> None:
    async with running_broker(tmp_path, OBSERVED) as given:
        for i in range(5):
            await given.send(b"%d" % i)
        await given.beat()
        await given.pull()
        commit = UpdateConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=2)
        await given.client.call(given.address, commit)
        waiting = asyncio.create_task(given.pull(0, queue_id=1, suspend_ms=20_000))
        await until(lambda: given.broker.parts.classes.pull.in_hand == 1)
        found = await scraped(given.broker.metrics_port)
        own = {"topic": TOPIC, "cluster": "DefaultCluster", "node_type": "broker", "node_id": "broker-a"}
        assert value(found["rocketmq_messages_in_total"], is_system="false", **own) == 5
        assert value(found["rocketmq_throughput_in_total"], **own) > 5 * 100
        consumed = {"topic": TOPIC, "consumer_group": GROUP, "is_retry": "false", "is_system": "false"}
        assert value(found["rocketmq_messages_out_total"], **consumed) == 5
        assert value(found["rocketmq_throughput_out_total"], **consumed) > 5 * 100
        assert value(found["rocketmq_consumer_lag_messages"], **consumed) == 3
        assert value(found["rocketmq_consumer_inflight_messages"], **consumed) == 3
        assert value(found["rocketmq_consumer_ready_messages"], **consumed) == 0
        for latency, count in (("send", 5), ("store", 5), ("pull", 1)):
            name = f"skyrocket_{latency}_latency_seconds"
            assert value(found[f"{name}_count"]) == value(found[f"{name}_bucket"], le="+Inf") == count
            assert value(found[f"{name}_sum"]) > 0
        assert value(found["rocketmq_processor_watermark"], processor="pull") == 1
        assert value(found["rocketmq_processor_watermark"], processor="send") == 0
        assert value(found["rocketmq_producer_connections"]) == 1
        assert value(found["rocketmq_consumer_connections"], consumer_group=GROUP, consume_mode="push") == 1
        assert value(found["rocketmq_broker_permission"]) == 6
        assert value(found["rocketmq_topic_number"]) == len(given.broker.tables.topics.topics)
        assert value(found["rocketmq_consumer_group_number"]) == len(given.broker.tables.groups.groups)
        assert value(found["rocketmq_storage_size"], storage_type="local", storage_medium="disk") > 5 * 100
        assert value(found["rocketmq_storage_dispatch_behind_bytes"]) == 0
        assert value(found["rocketmq_storage_flush_behind_bytes"]) >= 0
        assert 0 <= value(found["rocketmq_storage_message_reserve_time"]) < 60_000
        assert value(found["skyrocket_store_writable"]) == 1
        assert value(found["skyrocket_requests_total"], request_code="310") == 5
        assert value(found["skyrocket_connections"]) == 1
        await given.send(queue_id=1)
        await waiting
        again = await scraped(given.broker.metrics_port)
        assert value(again["rocketmq_messages_in_total"], **own) == 6
        assert value(again["rocketmq_processor_watermark"], processor="pull") == 0


async def test_a_broker_is_ready_while_its_store_takes_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_broker(tmp_path, OBSERVED) as given:
        assert await ready(given) == (200, {"status": "ready"})
        store = given.broker.store
        monkeypatch.setattr(store.disk, "used_ratio", lambda _: 0.95)
        await asyncio.to_thread(clean_expired, store)
        status, text = await ready(given)
        assert status == 503
        assert text == {
            "status": "not ready",
            "reasons": {"store": f"the disk of {store.paths.root} is full: no messages are taken"},
        }
        monkeypatch.undo()
        await asyncio.to_thread(clean_expired, store)
        assert (await ready(given))[0] == 200
        store.gate.fail(OSError(5, "Input/output error"))
        status, text = await ready(given)
        assert status == 503
        assert "repair the disk and start again" in str(text)
        assert await asyncio.to_thread(get, given.broker.metrics_port, "/health") == (200, '{"status": "alive"}\n')


async def test_a_broker_is_not_ready_before_a_name_server_knows_it(tmp_path: Path) -> None:
    port = free_port()
    config = replace(OBSERVED, name_servers=f"127.0.0.1:{port}", register_period_ms=10_000)
    async with running_broker(tmp_path, config) as given:
        status, text = await ready(given)
        assert status == 503
        reason = f"registered at none of the name servers 127.0.0.1:{port}"
        assert text["reasons"] == {"registration": reason}
        names = NameServerConfig(bind_address="127.0.0.1")
        async with name_server_fixture.running(tmp_path, names) as (_, address):
            given.broker.feature(RegistrationFeature).registration.name_servers = (str(address),)
            await given.broker.feature(RegistrationFeature).registration.register()
            assert (await ready(given))[0] == 200


async def test_without_the_setting_no_port_is_taken(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        assert given.broker.metrics_port == 0


async def test_a_port_that_is_taken_is_named_with_the_next_step(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = replace(OBSERVED, metrics_port=taken.getsockname()[1])
        with pytest.raises(CannotStart, match=r"cannot serve metrics: .*taken.*metricsPromExporterPort"):
            async with running_broker(tmp_path, config):
                pass


# ── the name server ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_name_server_tells_how_many_brokers_and_topics_it_knows(tmp_path: Path) -> None:
    port = free_port()
    async with name_server_fixture.running(tmp_path, NameServerConfig(metrics_port=port)) as (_, address):
        async with running_broker(tmp_path, BrokerConfig(name_servers=str(address))) as given:
            await given.send()
            found = await scraped(port)
            assert value(found["skyrocket_namesrv_brokers"], node_type="namesrv") == 1
            assert value(found["skyrocket_namesrv_topics"]) > 1
            assert value(found["skyrocket_requests_total"], request_code="103") >= 1
            assert await asyncio.to_thread(get, port, "/health") == (200, '{"status": "alive"}\n')
        assert value((await scraped(port))["skyrocket_namesrv_brokers"]) == 0


# ── the endpoint ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_only_what_is_there_can_be_read() -> None:
    def broken() -> Page:
        raise ValueError

    endpoint = HttpEndpoint({"/x": lambda: Page(200, "text/plain", b"here"), "/broken": broken})
    port = await endpoint.listen("127.0.0.1", 0)
    asked = [("/x", "GET"), ("/x?y=1", "GET"), ("/x", "HEAD"), ("/y", "GET"), ("/x", "POST"), ("/broken", "GET")]
    answers = [await asyncio.to_thread(get, port, path, method) for path, method in asked]
    assert answers[:4] == [
        (200, "here"),
        (200, "here"),
        (200, ""),
        (404, "not here; there are: /broken /x\n"),
    ]
    assert [status for status, _ in answers[4:]] == [405, 500]
    await endpoint.stop()


async def test_slow_large_and_nonsensical_requests_and_too_many_of_them_do_no_harm() -> None:
    endpoint = HttpEndpoint({"/x": lambda: Page(200, "text/plain", b"here")}, seconds=1.0)
    port = await endpoint.listen("127.0.0.1", 0)
    rng = random.Random(7)

    async def answer_to(data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(data)
            return await asyncio.wait_for(reader.read(), 60)
        except ConnectionError:
            return b""
        finally:
            writer.close()

    assert (await answer_to(b"GET /x HTTP/1.1\r\nHost: " + b"x" * 20_000)).startswith(b"HTTP/1.1 431 ")
    assert (await answer_to(b"\x16\x03\x01 what\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    noise = await asyncio.gather(*(answer_to(rng.randbytes(rng.randrange(1, 300))) for _ in range(50)))
    assert not any(answer.startswith(b"HTTP/1.1 200") for answer in noise)
    slow = [asyncio.create_task(answer_to(b"GET /x HTT")) for _ in range(MAX_CONNECTIONS + 20)]
    assert await asyncio.gather(*slow) == [b""] * len(slow)
    assert await asyncio.to_thread(get, port, "/x") == (200, "here")
    await endpoint.stop()


def test_labels_may_hold_any_text() -> None:
    metric = Metric("a_total", Kind.COUNTER, "help")
    strange = 'back\\slash "quote"\nline % ü'
    metric.add(1.5, topic=strange)
    (family,) = text_string_to_metric_families(render([metric], {"cluster": "c"}).decode())
    assert [(s.labels, s.value) for s in family.samples] == [({"cluster": "c", "topic": strange}, 1.5)]


async def test_sums_over_a_master_and_its_slave_count_nothing_twice() -> None:
    settings = {"metricsExporterType": "PROM", "metricsPromExporterPort": "0"}
    async with AsyncLocalCluster(replicas=2, settings=settings) as cluster, cluster.admin() as admin:
        await cluster.create_topic("Orders", queues=1)
        await cluster.create_group("Billing")
        (queue,) = await admin.queues("Orders")
        async with cluster.producer() as producer:
            for _ in range(3):  # a slave has them before the producer hears of it
                await producer.send(Message("Orders", b"x"))
        await admin.set_offset("Billing", queue, 1)
        (master,), (slave,) = cluster._sets.masters(), cluster._sets.followers()
        await until(lambda: slave.tables.offsets.committed("Billing", "Orders", 0) == 1, "the slave has the offsets")
        pages = [await scraped(broker.metrics_port) for broker in (master, slave)]
    for name, total in (("rocketmq_messages_in_total", 3), ("rocketmq_consumer_lag_messages", 2)):
        rows = [row for page in pages for row in page.get(name, {}).items() if ("topic", "Orders") in row[0]]
        assert [number for _, number in rows] == [total]
