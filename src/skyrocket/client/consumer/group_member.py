"""A member of a consumer group: how push, lite pull and simple consumers start, stop, and answer brokers.

start ─▶ the client is joined ─▶ parts are built ─▶ the group is joined ─▶ work begins
stop  ─▶ tasks end ─▶ work ends, offsets are saved ─▶ traces are sent ─▶ the group is left ─▶ the client too
"""

import asyncio
import logging
import sys
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from skyrocket.client.consumer.process_queue import ProcessQueue
from skyrocket.client.consumer.start_position import ConsumeFromWhere, MessageModel
from skyrocket.client.consumer.subscription_check import check_filters
from skyrocket.client.core.errors import ClientError, NoNameServer, NoRoute, NotANameServer
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.lifecycle import Startable, State
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.names import check_group, wrap
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.tracing.optional_tracer import CONSUME, tracer_of
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.bodies.heartbeat import ConsumerData
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo, DirectConsumption, ProcessQueueInfo
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.errors import SystemFailure
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.tasks import TaskSet, cancel_all

if TYPE_CHECKING:
    from skyrocket.client.tracing.trace import Tracer

_logger = logging.getLogger(__name__)

_LONGEST_PAUSE: Final = 30.0


class GroupMember(Startable):
    """One consumer of a group; its kind builds the parts, begins the work and ends it."""

    kind: ClassVar[str]  # in messages to people
    consume_type: ClassVar[str]  # in messages to brokers

    def __init__(
        self,
        group: str,
        client: ClientSettings,
        consume_from: ConsumeFromWhere,
        model: MessageModel = MessageModel.CLUSTERING,
    ) -> None:
        check_group(group)
        self._client = client
        self._namespace = client.effective_namespace()
        self.group = wrap(self._namespace, group)
        self._consume_from = consume_from
        self._model = model
        self._subscriptions: dict[str, SubscriptionData] = {}  # by topic with namespace
        self._tasks = TaskSet()
        self._repeated: list[asyncio.Task[None]] = []
        self._started_ms = 0
        self._tracer: Tracer | None = None
        self._instance: ClientInstance

    def __repr__(self) -> str:
        return f"{self.kind} {self.group}"

    @property
    def is_clustering(self) -> bool:
        return self._model is MessageModel.CLUSTERING

    # ── what a kind of consumer adds ─────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def _build(self) -> None:
        """Make the parts; brokers do not know us yet."""

    @abstractmethod
    async def _begin(self) -> None:
        """We are in the group: take up work."""

    async def _finish(self, seconds: float) -> None:
        """Nothing is pulled any more: end running work within this time, and save how far it is."""

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Join the group and begin; raises AlreadyStarted, GroupInUse, NoNameServer, or BrokerRefused for a filter."""
        self._check_new()
        self._state = State.STARTING
        try:
            self._instance = await ClientInstance.acquire(self._client, stable_id=not self.is_clustering)
        except BaseException:
            self._state = State.NEW
            raise
        try:
            self._started_ms = self._instance.clock.now_ms()
            self._tracer = tracer_of(self._instance, self._client.trace, self.group, CONSUME)
            self._build()
            self._instance.join_consumer(self)
        except BaseException:
            self._state = State.NEW
            await self._instance.release()
            raise
        self._state = State.RUNNING
        try:
            if self._tracer is not None:
                self._tracer.dispatcher.start()
            await self._begin()
        except BaseException:
            await self._end(0.0)
            raise

    async def _meet_brokers(self) -> None:
        """Find the topics, have filters checked, say hello; a topic that does not exist yet may come later."""
        try:
            await self._meet()
        except NoNameServer as error:
            if not self._client.wait_for_name_servers or isinstance(error, NotANameServer):
                raise
            _logger.warning("%s starts without its cluster, and goes on trying: %s", self, error)
            self._tasks.start(self._meet_later(), f"wait for name servers {self.group}")

    async def _meet_later(self) -> None:
        """Ask again after pauses that grow; the rebalancer finds the queues."""
        pause = 1.0
        while True:
            await asyncio.sleep(pause)
            try:
                await self._meet()
            except (ClientError, RemotingError) as error:
                pause = min(2 * pause, _LONGEST_PAUSE)
                _logger.warning("%s is still without its cluster, next try in %g s: %s", self, pause, error)
            else:
                _logger.warning("%s has found its cluster", self)
                self.rebalance_soon()
                return

    async def _meet(self) -> None:
        for topic in list(self._subscriptions):
            if topic.startswith(RETRY_PREFIX):
                continue  # made by the first heartbeat
            try:
                await self._instance.route(topic)
            except NoRoute as error:
                _logger.warning("a subscribed topic is not there yet: %s", error)
        await check_filters(self._instance, self.group, list(self._subscriptions.values()))
        await self._instance.beat_all()

    def _repeat(self, seconds: float, work: Callable[[], Any], name: str, *, first: float | None = None) -> None:
        self._repeated.append(self._instance.every(seconds, work, f"{name} {self.group}", first=first))

    async def stop(self) -> None:
        """End work, save offsets, say goodbye; who waits for messages gets none. May be called again."""
        if self._state is State.RUNNING:
            await self._end(0.0)

    async def _end(self, seconds: float) -> None:
        self._state = State.STOPPED
        try:
            await cancel_all(self._repeated)
            await self._tasks.cancel()
            await self._finish(seconds)
            if self._tracer is not None:
                await self._tracer.dispatcher.close()
            if self._instance.consumers.get(self.group) is self:
                await self._instance.leave_consumer(self.group)
        finally:
            await self._instance.release()

    @property
    def dropped_traces(self) -> int:
        """Trace events that could not be told."""
        return 0 if self._tracer is None else self._tracer.dispatcher.dropped

    # ── what brokers ask ─────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def topics(self) -> list[str]:
        return list(self._subscriptions)

    def forked(self) -> None:
        self._state = State.FORKED

    def heartbeat_data(self) -> ConsumerData:
        return ConsumerData(
            self.group,
            self.consume_type,
            self._model.value,
            self._consume_from.value,
            tuple(self._subscriptions.values()),
            self._client.unit_mode,
        )

    def rebalance_soon(self) -> None:
        pass  # nothing is assigned, so nothing moves

    async def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        pass  # without queues offsets are the broker's, which has reset them already

    def offsets_of(self, topic: str) -> dict[MessageQueue, int]:
        return {}

    def _in_hand(self) -> Iterable[ProcessQueue]:
        return ()

    def _running_properties(self) -> Mapping[str, str]:
        return {}

    def running_info(self, with_stacks: bool) -> ConsumerRunningInfo:
        clock = self._instance.clock
        now, now_ms = clock.monotonic(), clock.now_ms()

        def wall(moment: float) -> int:
            return now_ms - round((now - moment) * 1000)

        return ConsumerRunningInfo(
            properties={
                "PROP_CONSUMER_START_TIMESTAMP": str(self._started_ms),
                "PROP_NAMESERVER_ADDR": "".join(f"{address};" for address in self._instance.names.addresses),
                "PROP_CONSUME_TYPE": self.consume_type,
                **self._running_properties(),
            },
            subscriptions=tuple(sorted(self._subscriptions.values(), key=lambda each: each.topic)),
            queues={
                each.queue: ProcessQueueInfo(
                    commit_offset=self.offsets_of(each.queue.topic).get(each.queue) or 0,
                    cached_min_offset=each.min_offset or 0,
                    cached_max_offset=max(each.max_offset, 0),
                    cached_messages=each.count,
                    cached_mib=each.size >> 20,
                    is_locked=each.is_locked,
                    last_lock_timestamp=wall(each.locked_at),
                    is_dropped=each.is_dropped,
                    last_pull_timestamp=wall(each.last_pulled),
                    last_consume_timestamp=wall(each.last_consumed),
                )
                for each in self._in_hand()
            },
            jstack=_stacks() if with_stacks else None,
        )

    async def consume_directly(self, message: ReceivedMessage) -> DirectConsumption:
        raise SystemFailure(f"{self} asks for its messages itself: it has no handler to call")


def _stacks() -> str:
    """What threads and tasks are doing."""
    lines: list[str] = []
    for number, frame in sys._current_frames().items():
        lines += [f"thread {number}", *traceback.format_stack(frame)]
    for task in asyncio.all_tasks():
        lines.append(f"task {task.get_name()}: {task.get_coro()!r}")
    return "\n".join(lines)
