"""The cluster for code without an event loop: it runs on a loop of its own, in a thread of its own.

    with LocalCluster() as mq:
        mq.create_topic("Orders")
        with mq.producer() as producer:
            producer.send(Message("Orders", b"paid"))
        assert [message.body for message in mq.messages("Orders")] == [b"paid"]

Every method is that of `AsyncLocalCluster`, run over there; `async with LocalCluster()` gives the asyncio form itself.
"""

import contextlib
import functools
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from skyrocket.errors import SkyrocketError
from skyrocket.remoting.event_loop import LoopThread, calls, waits
from skyrocket.testing.async_cluster import COMMIT_SECONDS, AsyncLocalCluster
from skyrocket.testing.time_travel import REACTION_SECONDS

if TYPE_CHECKING:
    from skyrocket.client import blocking
    from skyrocket.client.core.settings import ClientSettings

T = TypeVar("T")


class LocalCluster:
    """One name server and some brokers; `settings` are RocketMQ's keys, for every broker."""

    def __init__(
        self,
        *,
        brokers: int = 1,
        replicas: int = 1,
        failover: bool = False,
        settings: Mapping[str, object] | None = None,
        reaction_seconds: float = REACTION_SECONDS,
    ) -> None:
        """`replicas` counts each master: with 2 it has one slave, which has a message before its sender hears of it.

        With `failover` a controller makes one of them master, and another one when that one is gone.
        """
        self._make = functools.partial(
            AsyncLocalCluster,
            brokers=brokers,
            replicas=replicas,
            failover=failover,
            settings=settings,
            reaction_seconds=reaction_seconds,
        )
        self._thread: LoopThread | None = None
        self._inner: AsyncLocalCluster | None = None

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> AsyncLocalCluster:
        self._inner = cluster = self._make()
        await cluster.start()
        return cluster

    async def __aexit__(self, *_: object) -> None:
        await self._cluster.stop()

    def start(self) -> None:
        """Returns when clients find every broker."""
        if self._inner is not None:
            raise SkyrocketError("a local cluster is started only once: make a new one")

        async def started() -> AsyncLocalCluster:
            cluster = self._make()
            await cluster.start()
            return cluster

        thread = LoopThread("skyrocket-local-cluster")
        try:
            self._inner = thread.run(started())
        except BaseException:
            thread.end()
            raise
        self._thread = thread

    def stop(self) -> None:
        """Stop all and remove the directory; may be called again."""
        thread, self._thread = self._thread, None
        if thread is not None:
            with contextlib.ExitStack() as stack:
                stack.callback(thread.end)
                thread.run(self._cluster.stop())

    # ── what is there ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def name_server_address(self) -> str:
        """What clients are given."""
        return self._cluster.name_server_address

    @property
    def broker_names(self) -> list[str]:
        return self._cluster.broker_names

    @property
    def broker_addresses(self) -> dict[str, str]:
        """By name, also of brokers that do not run now."""
        return self._cluster.broker_addresses

    @property
    def directory(self) -> Path:
        """Where the stores are, for as long as the cluster lives."""
        return self._cluster.directory

    @property
    def ready_seconds(self) -> float:
        """How long the start took."""
        return self._cluster.ready_seconds

    @property
    def now_ms(self) -> int:
        """What time it is for messages."""
        return self._cluster.now_ms

    @property
    def client_settings(self) -> "ClientSettings":
        """For clients of `skyrocket.client`: quick to notice what changes, as tests want it."""
        return self._cluster.client_settings

    def producer(self, group: str = "test-producers", **options: Any) -> "blocking.Producer":
        """A producer of this cluster, not started; `options` as Producer takes them."""
        from skyrocket.client import blocking

        return blocking.Producer(group, client=self.client_settings, **options)

    def push_consumer(self, group: str, **options: Any) -> "blocking.PushConsumer":
        """A push consumer of this cluster, not started; `options` as PushConsumer takes them; it commits quickly."""
        from skyrocket.client import PushConsumerSettings, blocking

        options.setdefault("settings", PushConsumerSettings(persist_interval=COMMIT_SECONDS))
        return blocking.PushConsumer(group, client=self.client_settings, **options)

    def lite_pull_consumer(self, group: str, **options: Any) -> "blocking.LitePullConsumer":
        """A lite pull consumer of this cluster, not started; `options` as LitePullConsumer takes them."""
        from skyrocket.client import blocking

        return blocking.LitePullConsumer(group, client=self.client_settings, **options)

    def simple_consumer(self, group: str, **options: Any) -> "blocking.SimpleConsumer":
        """A simple consumer of this cluster, not started; `options` as SimpleConsumer takes them."""
        from skyrocket.client import blocking

        return blocking.SimpleConsumer(group, client=self.client_settings, **options)

    def admin(self) -> "blocking.Admin":
        """Administration of this cluster, not started."""
        from skyrocket.client import blocking

        return blocking.Admin(client=self.client_settings)

    # ── the methods of the asyncio form ──────────────────────────────────────────────────────────────────────────────

    create_topic = waits(AsyncLocalCluster.create_topic)
    create_group = waits(AsyncLocalCluster.create_group)
    unique_topic = waits(AsyncLocalCluster.unique_topic)
    unique_group = waits(AsyncLocalCluster.unique_group)
    messages = calls(AsyncLocalCluster.messages)
    dead_letters = calls(AsyncLocalCluster.dead_letters)
    offsets = calls(AsyncLocalCluster.offsets)
    stop_broker = waits(AsyncLocalCluster.stop_broker)
    kill_broker = waits(AsyncLocalCluster.kill_broker)
    kill_master = waits(AsyncLocalCluster.kill_master)
    await_master = waits(AsyncLocalCluster.await_master)
    start_broker = waits(AsyncLocalCluster.start_broker)
    restart_broker = waits(AsyncLocalCluster.restart_broker)
    advance = waits(AsyncLocalCluster.advance)

    @property
    def _cluster(self) -> AsyncLocalCluster:
        if self._inner is None:
            raise SkyrocketError("the cluster does not run: enter it with `with`, or call start()")
        return self._inner

    def _run(self, work: Callable[[AsyncLocalCluster], Coroutine[Any, Any, T]]) -> T:
        cluster = self._cluster
        if self._thread is None:
            raise SkyrocketError("the cluster does not run any more")
        return self._thread.run(work(cluster))
