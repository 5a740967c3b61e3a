"""The way of a message through the store, and percentiles over all that clients told."""

import asyncio
from dataclasses import replace

import pytest

from skyrocket.client import Message, Producer, PushConsumer, PushConsumerSettings
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.console.cluster.trace_times import StageTimes, percentile, stage_times
from skyrocket.format.trace import CallBegan, CallEnded, CallOutcome, SendKind, Sent
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import console_of
from tests.waiting import until


def sent(number: int, cost_ms: int, *, succeeded: bool = True) -> Sent:
    kind = SendKind(0)
    return Sent(1000, None, "shop", "Orders", f"m{number}", None, None, "h", 1, cost_ms, kind, None, succeeded)


def test_percentiles_are_taken_per_stage_and_retries_do_not_count_as_waits() -> None:
    events = [sent(number, number) for number in range(1, 101)]
    calls = [CallBegan(1010, None, "billing", f"r{number}", f"m{number}", 0, None) for number in range(1, 5)]
    retry = CallBegan(99_000, None, "billing", "again", "m1", 1, None)
    ends = [
        CallEnded("r1", "m1", 7, False, None, CallOutcome.EXCEPTION),
        CallEnded("again", "m1", 9, True, None, CallOutcome.SUCCESS),
        CallEnded("nobody", "m1", 9, True, None, CallOutcome.SUCCESS),
    ]
    assert stage_times([*calls, retry, *ends, sent(101, 500, succeeded=False), *events]) == [
        StageTimes("send", "Orders", 101, 1, 51, 91, 100, 500),
        StageTimes("wait", "billing", 4, 0, 7, 9, 9, 9),
        StageTimes("consume", "billing", 2, 1, 7, 9, 9, 9),
    ]
    assert stage_times([]) == []
    assert [percentile([5.0], share) for share in (0.5, 1.0)] == [5.0, 5.0]


@pytest.mark.requirement("B009", "D022")
async def test_a_trace_goes_through_the_store_to_each_attempt_and_times_of_all_are_told() -> None:
    settings = {"traceTopicEnable": "true"}
    async with AsyncLocalCluster(settings=settings) as cluster, console_of(cluster) as visitor:
        nothing = await visitor.get("/api/traces", trace_topic="Nowhere")
        await cluster.create_topic("Orders", queues=1)
        await cluster.create_group("billing", retries=0)
        client = replace(cluster.client_settings, trace=True)
        consumer = PushConsumer("billing", client=client, settings=PushConsumerSettings(max_reconsume_times=0))

        @consumer.on("Orders")
        async def fail(_: ReceivedMessage) -> None:
            await asyncio.sleep(0)
            raise ValueError("no")

        async with consumer, Producer("shop", client=client) as producer:
            receipt = await producer.send(Message("Orders", b"x", keys="o-1"))
            await until(lambda: cluster.dead_letters("billing"))
        trace = await visitor.get(f"/api/traces/{receipt.message_id}")
        times = await visitor.get("/api/traces")
    kinds = [step["kind"] for step in trace["steps"]]
    assert sorted(kinds[:2]) == ["send", "store"]
    assert kinds[2:] == ["consume"]
    store = next(step for step in trace["steps"] if step["kind"] == "store")
    assert "Orders, queue 0 at broker-a, offset 0" in store["says"]
    assert trace["steps"][-1]["succeeded"] is False
    found = {(row["stage"], row["name"]): (row["count"], row["failures"]) for row in times["rows"]}
    assert found == {("send", "Orders"): (1, 0), ("wait", "billing"): (1, 0), ("consume", "billing"): (1, 1)}
    assert "no trace topic" in nothing["trouble"]
