"""Our client's priorities, traces and ways back on a broker of Apache RocketMQ: the same as on ours."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from skyrocket.client import Admin, ClientError, ClientSettings, Message, NotOffered, Producer
from skyrocket.config.sections import StoreConfig
from skyrocket.format.trace import SendKind, Sent
from skyrocket.model.message_queue import MessageQueue
from tests.client_steps import soon, told
from tests.integration.client.servers import OURS, SERVER_PARAMETERS, apache_or_skip, registered
from tests.interop.rocketmq_broker import running_broker
from tests.interop.standalone import running_standalone
from tests.waiting import SECONDS

pytestmark = pytest.mark.timeout(200)

TOPIC, GROUP = "Orders", "Billing"


async def scenario(names: str, *, chooses_by_priority: bool) -> None:
    client = ClientSettings(names, trace=True)
    async with Admin(names) as admin, Producer("Shop", client=client) as producer:
        await admin.create_topic(TOPIC, 4)
        for group in (GROUP, "Audit"):
            await admin.create_group(group)
        await soon(admin, TOPIC, 4)
        receipts = {
            priority: await producer.send(Message(TOPIC, b"%d" % priority, keys="o-7", priority=priority))
            for priority in (0, 1, 2, 3, 4, 5)
        }
        if chooses_by_priority:
            queues = {priority: receipt.queue.queue_id for priority, receipt in receipts.items()}
            assert queues == {0: 0, 1: 1, 2: 2, 3: 3, 4: 3, 5: 3}
        (sent,) = await told(admin, receipts[5].message_id, 1)
        assert isinstance(sent, Sent)
        assert (sent.topic, sent.keys, sent.kind, sent.succeeded) == (TOPIC, "o-7", SendKind.NORMAL, True)

        queue = MessageQueue(TOPIC, receipts[0].queue.broker_name, 1)
        batch = await producer.send_batch([Message(TOPIC, b"x")] * 6, queue=queue)
        end = batch[-1].queue_offset + 1
        async with asyncio.timeout(SECONDS):
            while await admin.max_offset(queue) < end:  # Java's broker makes queue entries after its answer
                await asyncio.sleep(0.05)
        await admin.set_offset(GROUP, queue, 2)
        preview = await admin.preview_reset(GROUP, TOPIC, None)
        (move,) = [each for each in preview.moves if each.queue == queue]
        assert (move.committed, move.skipped, move.repeated) == (2, end - 2, 0)
        (move,) = [each for each in (await admin.preview_reset(GROUP, TOPIC, 0.0)).moves if each.queue == queue]
        assert (move.target, move.skipped, move.repeated) == (0, 0, 2)
        await admin.clone_offsets(GROUP, "Audit", TOPIC)
        assert await admin.committed("Audit", queue) == 2


@pytest.mark.parametrize("server", SERVER_PARAMETERS)
async def test_priorities_traces_and_ways_back(tmp_path: Path, server: str) -> None:
    with contextlib.ExitStack() as stack:
        if server == OURS:
            names = stack.enter_context(running_standalone(tmp_path)).name_server
        else:
            apache = apache_or_skip(server)
            names = stack.enter_context(running_broker(apache, tmp_path, StoreConfig())).name_server
            await registered(names)
        await scenario(names, chooses_by_priority=server != "4.9.7")


async def operators(names: str, *, has_timers: bool) -> None:
    async with Admin(names) as admin, Producer("Shop", names) as producer:
        with pytest.raises(NotOffered, match="request type 30001 not supported"):
            await admin.open_transactions()
        with pytest.raises(NotOffered, match="request type 30003 not supported"):
            await admin.pending_timers()
        if not has_timers:
            return
        await admin.create_topic(TOPIC, 4)
        await soon(admin, TOPIC, 4)
        receipt = await producer.send(Message(TOPIC, b"late", keys="o-7", delay=3600))
        async with asyncio.timeout(30):
            while await admin.timer_counts() != {TOPIC: 1}:
                await asyncio.sleep(0.1)
            while True:  # until its entry in the index is there
                with contextlib.suppress(ClientError):
                    assert await admin.recall(receipt.message_id) == receipt.message_id
                    break
                await asyncio.sleep(0.1)


@pytest.mark.parametrize("server", SERVER_PARAMETERS[1:])  # ours: tests/cluster/test_operator_commands.py
async def test_operators_hear_what_apache_does_not_offer_and_recall_timers(tmp_path: Path, server: str) -> None:
    apache = apache_or_skip(server)
    recalling = {"recallMessageEnable": "true"}
    with running_broker(apache, tmp_path, StoreConfig(), recalling) as broker:
        await registered(broker.name_server)
        await operators(broker.name_server, has_timers=server != "4.9.7")
