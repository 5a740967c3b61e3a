"""How late a group is, as the history keeps it: the age of the oldest message that was not consumed."""

from pathlib import Path

from skyrocket.client import Message
from skyrocket.console.cluster.view import ClusterView
from skyrocket.console.history.database import Database
from skyrocket.console.history.recorder import Recorder
from skyrocket.console.history.series import Series
from skyrocket.testing.async_cluster import AsyncLocalCluster


async def test_after_hours_without_a_message_a_group_is_not_late(tmp_path: Path) -> None:
    async with AsyncLocalCluster() as cluster, cluster.admin() as admin, cluster.producer() as producer:
        await cluster.create_topic("Orders", queues=1)
        await cluster.create_group("billing")
        (queue,) = await admin.queues("Orders")
        await producer.send(Message("Orders", b"old"))
        await admin.set_offset("billing", queue, 1)
        await cluster.advance(hours=3)
        await producer.send(Message("Orders", b"new"))
        database = Database(tmp_path / "console.db")
        await database.open()
        series, view = Series(database, 1 << 30), ClusterView(admin, cluster.clock)
        recorder = Recorder(view, series, cluster.clock)

        async def recorded() -> float:
            view.forget()
            await recorder.record()
            now_ms = cluster.clock.now_ms()
            return (await series.between("late:group:billing", now_ms - 60_000, now_ms))[-1].value

        try:
            assert 0 <= await recorded() < 60
            await cluster.advance(minutes=20)
            assert 1200 <= await recorded() < 1300
            await admin.set_offset("billing", queue, 2)
            assert await recorded() == 0
        finally:
            await view.end()
            await database.close()
