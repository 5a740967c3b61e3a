"""Moving groups back and forth: what a reset would do, and offsets taken over from another group."""

import asyncio
import time
from pathlib import Path

from hypothesis import given as for_all
from hypothesis import strategies as st

from skyrocket.client.admin.admin import Admin
from skyrocket.client.admin.reset_preview import QueueMove, ResetPreview
from skyrocket.client.core.message import Message
from skyrocket.client.producer.producer import Producer
from skyrocket.model.message_queue import MessageQueue
from tests.client_steps import soon
from tests.cluster.servers import cluster

TOPIC, GROUP = "Orders", "Billing"
QUEUE = MessageQueue(TOPIC, "broker-a", 0)


async def test_a_preview_counts_what_the_reset_then_skips_or_repeats(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer, Admin(given.names) as admin:
        await admin.create_topic(TOPIC, 2)
        await admin.create_group(GROUP)
        await soon(admin, TOPIC, 2)
        first, second = await admin.queues(TOPIC)
        for number in range(6):
            await producer.send(Message(TOPIC, b"%d" % number), queue=first)
        middle = time.time() + 0.02
        await asyncio.sleep(0.05)
        for number in range(4):
            await producer.send(Message(TOPIC, b"%d" % number), queue=first)
        await admin.set_offset(GROUP, first, 8)
        before = await admin.consumer_lag(GROUP, TOPIC)

        back = await admin.preview_reset(GROUP, TOPIC, middle)
        assert (back.skipped, back.repeated) == (0, 2)
        end = await admin.preview_reset(GROUP, TOPIC, None)
        assert (end.skipped, end.repeated) == (2, 0)
        assert str(end) == "group Billing in topic Orders: 2 messages would be skipped, 0 consumed again"
        start = await admin.preview_reset(GROUP, TOPIC, 0.0)
        assert (start.skipped, start.repeated) == (0, 8)
        assert start.moves == (QueueMove(first, 8, 0, 0, 10), QueueMove(second, None, 0, 0, 0))
        assert await admin.consumer_lag(GROUP, TOPIC) == before  # nothing has moved

        for moment, preview in ((middle, back), (None, end), (0.0, start)):
            moved = await admin.reset_offsets(GROUP, TOPIC, moment)
            assert moved == {move.queue: move.target for move in preview.moves}


async def test_a_group_goes_on_where_another_one_is(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer, Admin(given.names) as admin:
        await admin.create_topic(TOPIC, 2)
        await soon(admin, TOPIC, 2)
        for group in (GROUP, "Audit"):
            await admin.create_group(group)
        first, second = await admin.queues(TOPIC)
        for queue, offset in ((first, 3), (second, 5)):
            await producer.send_batch([Message(TOPIC, b"x")] * 7, queue=queue)
            await admin.set_offset(GROUP, queue, offset)
        assert await admin.committed("Audit", first) is None
        await admin.clone_offsets(GROUP, "Audit", TOPIC)
        assert [await admin.committed("Audit", queue) for queue in (first, second)] == [3, 5]
        assert [await admin.committed(GROUP, queue) for queue in (first, second)] == [3, 5]


@for_all(st.data())
def test_counts_agree_with_a_walk_over_all_offsets(data: st.DataObject) -> None:
    first = data.draw(st.integers(0, 20))
    end = data.draw(st.integers(first, first + 20))
    committed = data.draw(st.none() | st.integers(0, end + 3))
    target = data.draw(st.integers(0, end))
    move = QueueMove(QUEUE, committed, target, first, end)
    there = range(first, end)
    done = {offset for offset in there if committed is not None and offset < committed}
    then = {offset for offset in there if offset >= target}
    assert move.repeated == len(done & then)
    assert move.skipped == len(set(there) - done - then)
    assert move.left == len(then)
    preview = ResetPreview(GROUP, TOPIC, (move, move))
    assert (preview.skipped, preview.repeated) == (2 * move.skipped, 2 * move.repeated)
