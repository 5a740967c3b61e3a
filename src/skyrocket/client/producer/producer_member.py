"""What every kind of send stands on: a member of a producer group, its start and its end, its topics and queues."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.hooks import SendHook, preparing
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.lifecycle import Startable, State
from skyrocket.client.core.members import TransactionCheck
from skyrocket.client.core.message import (
    Message,
    ReceivedMessage,
)
from skyrocket.client.core.middleware import Middleware, checked
from skyrocket.client.core.names import check_group, check_sendable, unwrap, wrap
from skyrocket.client.core.routes import Route
from skyrocket.client.core.settings import Acl, ClientSettings, of_kind, settings_of
from skyrocket.client.producer.accumulator import Accumulator
from skyrocket.client.producer.gathering import Gathering
from skyrocket.client.producer.in_flight import InFlight
from skyrocket.client.producer.producer_settings import ProducerSettings
from skyrocket.client.sending.message_encoding import (
    EncodingRules,
)
from skyrocket.client.sending.queue_selector import QueueSelector, index_by_hash
from skyrocket.client.sending.retrying_sender import RetryingSender
from skyrocket.client.sending.send_number import SendNumbers
from skyrocket.client.tracing.optional_tracer import PRODUCE, tracer_of
from skyrocket.model.message_queue import MessageQueue

if TYPE_CHECKING:
    from skyrocket.client.tracing.trace import Tracer

_logger = logging.getLogger(__name__)


class ProducerGroupMember(Startable):
    """One member of a producer group; Producer adds the ways to send."""

    def __init__(
        self,
        group: str,
        name_servers: str | Sequence[str] = "",
        settings: ProducerSettings | None = None,
        *,
        client: ClientSettings | None = None,
        credentials: Acl | None = None,
        hooks: Sequence[SendHook] = (),
    ) -> None:
        check_group(group)
        self.settings = of_kind("settings", settings, ProducerSettings)
        self._client = settings_of(client, name_servers, credentials)
        self._namespace = self._client.effective_namespace()
        self.group = wrap(self._namespace, group)
        self._hooks = tuple(hooks)
        self._preparing = preparing(hooks)
        self._rules = EncodingRules(
            self._namespace,
            self.settings.compress_over,
            self.settings.compress_type,
            self.settings.compress_level,
            self.settings.max_message_size,
        )
        self._around: list[Middleware] = []
        self._known_topics: dict[str, str] = {}
        self._flight = InFlight(self.settings.max_in_flight, self.settings.max_in_flight_bytes)
        self._oneways = 0
        self._numbers = SendNumbers()
        self._tracer: Tracer | None = None
        self._instance: ClientInstance
        self._sender: RetryingSender
        self._accumulator: Accumulator
        self._gathering: Gathering
        self._is_short = False  # whether nobody but the producer itself has to do with a send
        self._gathers = False

    def __repr__(self) -> str:
        return f"producer {self.group}"

    def use(self, *middleware: Middleware) -> None:
        """Let sends go through these, the first outermost; before the start. `enqueue` goes past them."""
        self._check_new()
        self._around += checked(middleware)

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Join the client; brokers are met by the first send. Raises AlreadyStarted, GroupInUse or NoNameServer."""
        self._check_new()
        self._instance = await ClientInstance.acquire(self._client)
        settings = self.settings
        self._tracer = tracer_of(self._instance, self._client.trace, self.group, PRODUCE)
        hooks = self._hooks if self._tracer is None else (*self._hooks, self._tracer)
        self._sender = RetryingSender(self._instance, self.group, settings.send_rules(), hooks)
        self._accumulator = Accumulator(
            lambda out: self._sender.send(out, settings.send_timeout),
            self._rules,
            self._instance.clock,
            max_bytes=settings.auto_batch_bytes,
            max_delay=settings.auto_batch_delay,
            total_bytes=settings.auto_batch_total_bytes,
            timeout=settings.send_timeout,
            keeps_members=self._tracer is not None,
        )
        self._gathering = Gathering(
            self._sender,
            self._flight,
            self._instance.clock,
            max_bytes=min(settings.max_batch_bytes, settings.max_message_size),
            timeout=settings.send_timeout,
        )
        self._is_short = not (settings.idempotent or self._preparing or self._around)
        self._gathers = settings.gather_sends and self._sender.is_plain
        try:
            self._instance.join_producer(self)
        except BaseException:
            await self._instance.release()
            raise
        if self._tracer is not None:
            self._tracer.dispatcher.start()
        self._state = State.RUNNING

    async def stop(self) -> None:
        """Refuse new sends, wait for those under way, say goodbye; may be called again."""
        if self._state is not State.RUNNING:
            return
        self._state = State.STOPPED
        await self._accumulator.close(self.settings.drain_timeout)
        if not await self._flight.drained(self.settings.drain_timeout):
            _logger.warning("sends are given up group=%s count=%d", self.group, self._flight.count)
        try:
            if self._tracer is not None:
                await self._tracer.dispatcher.close()
            await self._instance.leave_producer(self.group)
        finally:
            await self._instance.release()

    # ── what the client asks of its members ──────────────────────────────────────────────────────────────────────────

    @property
    def topics(self) -> list[str]:
        return list(self._sender.topics)

    def forked(self) -> None:
        self._state = State.FORKED

    def route_changed(self, topic: str, route: Route) -> None:
        self._sender.route_changed(topic, route)

    async def check_transaction(self, message: ReceivedMessage, question: TransactionCheck) -> None:
        """A plain producer has no transactions: the broker asks another one, or again."""
        _logger.warning("a transaction check for a producer without transactions group=%s", self.group)

    @property
    def dropped_traces(self) -> int:
        """Trace events that could not be told."""
        return 0 if self._tracer is None else self._tracer.dispatcher.dropped

    # ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _topic(self, topic: str) -> str:
        """The topic's full name, checked once."""
        check_sendable(topic)
        full = self._known_topics[topic] = wrap(self._namespace, topic)
        return full

    def _usable(self, topic: str) -> str:
        """The topic's full name, for a producer that runs; `send`, which is called most, does it in place."""
        full = self._known_topics.get(topic) or self._topic(topic)
        self._check_running()
        return full

    async def _chosen(
        self, message: Message, topic: str, queue: MessageQueue | None, selector: QueueSelector | None, argument: Any
    ) -> MessageQueue:
        if queue is not None:
            if unwrap(self._namespace, queue.topic) != unwrap(self._namespace, topic):
                raise WrongUse(f"queue {queue} belongs to another topic than the message ({message.topic})")
            return queue._replace(topic=topic)
        info = self._sender.topics.get(topic) or await self._sender.publish_info(topic)
        if selector is None:
            return info.queues[index_by_hash(message.sharding_key, len(info.queues))]
        shown = [each._replace(topic=message.topic) for each in info.queues]
        chosen = selector(shown, message, argument)
        if chosen not in shown:
            raise WrongUse(f"the selector chose {chosen!r}, which is none of the {len(shown)} queues it was given")
        return chosen._replace(topic=topic)
