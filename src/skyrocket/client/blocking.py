"""The client for programs without an event loop: every method below is the asyncio one, run on a loop in a thread.

    with blocking.Producer("Shop", "127.0.0.1:9876") as producer:
        producer.send(Message("Orders", b"paid"))

One thread with one loop serves the whole process; it is made by the first use, and again after a fork. Waiting is
done in short slices, so that Ctrl-C is heard. Handlers that are plain functions run in threads of their consumer.
"""

import concurrent.futures
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Self, TypeVar, overload

from skyrocket.client.admin import admin as _admin
from skyrocket.client.admin.dead_letters import ALL_DEAD_LETTERS, DeadLetterFilter
from skyrocket.client.admin.message_copies import Spans
from skyrocket.client.consumer import lite_pull_consumer as _lite
from skyrocket.client.consumer import push_consumer as _push
from skyrocket.client.consumer.handler_types import BatchDecorator, HandlerDecorator
from skyrocket.client.consumer.handlers import NO_POLICY, HandlerWrapper
from skyrocket.client.consumer.retry_policy import RetryPolicy
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.send_receipt import SendReceipt
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.exactly_once import relay as _relay
from skyrocket.client.exactly_once.databases import Source
from skyrocket.client.exactly_once.outbox import Outbox
from skyrocket.client.pop import simple_consumer as _simple
from skyrocket.client.producer import producer as _producer
from skyrocket.client.producer import transaction as _transaction
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.subscription import ALL_TAGS
from skyrocket.remoting.event_loop import LoopThread, calls, constructs, waits

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class _SharedThread:
    """The event loop of the process's blocking clients: made by the first use, and again after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: LoopThread | None = None
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._made = None

    def get(self) -> LoopThread:
        with self._lock:
            if self._made is None:
                self._made = LoopThread("skyrocket-client")
            return self._made


_THREAD: Final = _SharedThread()


class _Blocking(Generic[T]):
    """What stands for an asyncio object."""

    _inner: T

    def __repr__(self) -> str:
        return f"blocking {self._inner!r}"

    def _run(self, work: Callable[[T], Coroutine[Any, Any, R]]) -> R:
        return _THREAD.get().run(work(self._inner))


class _Running(_Blocking[T]):
    """Context manager over `start` and `stop`."""

    start: Callable[..., None]
    stop: Callable[..., None]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Producer(_Running[_producer.Producer]):
    """See skyrocket.client.producer.producer.Producer."""

    @constructs(_producer.Producer)
    def __init__(self) -> None: ...

    start = waits(_producer.Producer.start)
    stop = waits(_producer.Producer.stop)
    send = waits(_producer.Producer.send)
    send_numbered = waits(_producer.Producer.send_numbered)
    send_oneway = waits(_producer.Producer.send_oneway)
    send_batch = waits(_producer.Producer.send_batch)
    request = waits(_producer.Producer.request)
    reply = waits(_producer.Producer.reply)
    recall = waits(_producer.Producer.recall)
    flush = waits(_producer.Producer.flush)
    queues = waits(_producer.Producer.queues)
    use = calls(_producer.Producer.use)

    def send_nowait(self, *args: Any, **kwargs: Any) -> "concurrent.futures.Future[SendReceipt]":
        """`send` with a future for the receipt; tried again `async_retries` times unless `retries` is given."""
        settings = self._inner.settings
        if settings.async_retries != settings.retries:
            kwargs.setdefault("retries", settings.async_retries)
        return _THREAD.get().submit(self._inner.send(*args, **kwargs))


class TransactionProducer(Producer):
    """See skyrocket.client.producer.transaction.TransactionProducer."""

    _inner: _transaction.TransactionProducer

    @constructs(_transaction.TransactionProducer)
    def __init__(self) -> None: ...

    start = waits(_transaction.TransactionProducer.start)

    def checker(self, function: F) -> F:
        """Decorator: this function tells how a transaction ended."""
        return self._inner.checker(function)

    @contextlib.contextmanager
    def transaction(self, message: Message, *, timeout: float | None = None) -> Iterator[_transaction.Transaction]:
        """Send the half message, run the block, then commit, or leave it open if the block raises."""
        block = self._inner.transaction(message, timeout=timeout)
        transaction = _THREAD.get().run(block.__aenter__())
        try:
            yield transaction
        except BaseException as error:
            if not _THREAD.get().run(block.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            _THREAD.get().run(block.__aexit__(None, None, None))


class OutboxRelay(_Running[_relay.OutboxRelay]):
    """See skyrocket.client.exactly_once.relay.OutboxRelay."""

    def __init__(
        self,
        outbox: Outbox,
        database: Source,
        producer: Producer,
        *,
        batch: int = 100,
        poll_seconds: float = 0.5,
        stop_seconds: float = 10.0,
    ) -> None:
        self._inner = _relay.OutboxRelay(
            outbox, database, producer._inner, batch=batch, poll_seconds=poll_seconds, stop_seconds=stop_seconds
        )

    start = waits(_relay.OutboxRelay.start)
    stop = waits(_relay.OutboxRelay.stop)
    wake = calls(_relay.OutboxRelay.wake)
    send_pending = waits(_relay.OutboxRelay.send_pending)

    @property
    def sent(self) -> int:
        """Messages that brokers have confirmed."""
        return self._inner.sent


class PushConsumer(_Running[_push.PushConsumer]):
    """See skyrocket.client.consumer.push_consumer.PushConsumer."""

    @constructs(_push.PushConsumer)
    def __init__(self) -> None: ...

    start = waits(_push.PushConsumer.start)
    stop = waits(_push.PushConsumer.stop)
    subscribe = calls(_push.PushConsumer.subscribe)
    unsubscribe = calls(_push.PushConsumer.unsubscribe)
    pause = calls(_push.PushConsumer.pause)
    resume = calls(_push.PushConsumer.resume)
    reset_to = waits(_push.PushConsumer.reset_to)
    commit_offset = waits(_push.PushConsumer.commit_offset)
    wait_stopped = waits(_push.PushConsumer.wait_stopped)

    use = calls(_push.PushConsumer.use)
    in_hand = calls(_push.PushConsumer.in_hand)
    prepare_to_run = calls(_push.PushConsumer.prepare_to_run)

    def run(self, *, drain: float | None = None) -> None:
        """Start, consume until SIGTERM or Ctrl-C, let handlers end for `drain` seconds, stop."""
        self._inner.run(drain=drain)

    # By hand, because a decorator that keeps the function's type cannot be wrapped without losing it.
    @overload
    def on(
        self,
        topic: str,
        *,
        tags: str = "*",
        sql: str | None = None,
        batch: Literal[False] = False,
        once: HandlerWrapper | None = None,
        retry: RetryPolicy = NO_POLICY,
    ) -> HandlerDecorator: ...

    @overload
    def on(
        self,
        topic: str,
        *,
        tags: str = "*",
        sql: str | None = None,
        batch: Literal[True],
        retry: RetryPolicy = NO_POLICY,
    ) -> BatchDecorator: ...

    def on(
        self,
        topic: str,
        *,
        tags: str = "*",
        sql: str | None = None,
        batch: bool = False,
        once: HandlerWrapper | None = None,
        retry: RetryPolicy = NO_POLICY,
    ) -> Any:
        """Decorator: this function consumes the topic."""
        options: Any = {"tags": tags, "sql": sql, "batch": batch, "once": once, "retry": retry}

        def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
            async def call(inner: _push.PushConsumer) -> Callable[..., Any]:
                made: Callable[..., Any] = inner.on(topic, **options)(function)
                return made

            return self._run(call)

        return decorated


class LitePullConsumer(_Running[_lite.LitePullConsumer]):
    """See skyrocket.client.consumer.lite_pull_consumer.LitePullConsumer."""

    @constructs(_lite.LitePullConsumer)
    def __init__(self) -> None: ...

    start = waits(_lite.LitePullConsumer.start)
    stop = waits(_lite.LitePullConsumer.stop)
    subscribe = waits(_lite.LitePullConsumer.subscribe)
    unsubscribe = waits(_lite.LitePullConsumer.unsubscribe)
    assign = waits(_lite.LitePullConsumer.assign)
    message_queues = waits(_lite.LitePullConsumer.message_queues)
    poll = waits(_lite.LitePullConsumer.poll)
    poll_arrow = waits(_lite.LitePullConsumer.poll_arrow)
    commit = waits(_lite.LitePullConsumer.commit)
    committed = waits(_lite.LitePullConsumer.committed)
    position = calls(_lite.LitePullConsumer.position)
    seek = waits(_lite.LitePullConsumer.seek)
    seek_to_begin = waits(_lite.LitePullConsumer.seek_to_begin)
    seek_to_end = waits(_lite.LitePullConsumer.seek_to_end)
    offset_for_timestamp = waits(_lite.LitePullConsumer.offset_for_timestamp)
    pause = calls(_lite.LitePullConsumer.pause)
    resume = calls(_lite.LitePullConsumer.resume)

    def __iter__(self) -> Iterator[ReceivedMessage]:
        """Messages one by one until the consumer is stopped."""
        batches = self._inner.batches()
        with contextlib.suppress(StopAsyncIteration):
            while True:
                yield from _THREAD.get().run(_next(batches.__anext__()))

    def arrow_batches(
        self, max_messages: int = 8192, columns: Iterable[str] | None = None, *, linger: float = 0.02
    ) -> "Iterator[pa.RecordBatch]":
        """Messages as `pyarrow.RecordBatch`es as they come, until the consumer is stopped."""
        batches = self._inner.arrow_batches(max_messages, columns, linger=linger)
        with contextlib.suppress(StopAsyncIteration):
            while True:
                yield _THREAD.get().run(_next(batches.__anext__()))


async def _next(awaitable: Any) -> Any:
    return await awaitable


async def _next_message(awaitable: Any) -> ReceivedMessage:
    message: ReceivedMessage = await awaitable
    return message


def _each(messages: AsyncIterator[ReceivedMessage]) -> Iterator[ReceivedMessage]:
    with contextlib.suppress(StopAsyncIteration):
        while True:
            yield _THREAD.get().run(_next_message(messages.__anext__()))


class SimpleConsumer(_Running[_simple.SimpleConsumer]):
    """See skyrocket.client.pop.simple_consumer.SimpleConsumer."""

    @constructs(_simple.SimpleConsumer)
    def __init__(self) -> None: ...

    start = waits(_simple.SimpleConsumer.start)
    stop = waits(_simple.SimpleConsumer.stop)
    receive = waits(_simple.SimpleConsumer.receive)
    ack = waits(_simple.SimpleConsumer.ack)
    change_invisible = waits(_simple.SimpleConsumer.change_invisible)
    to_dead_letters = waits(_simple.SimpleConsumer.to_dead_letters)


class Admin(_Running[_admin.Admin]):
    """See skyrocket.client.admin.admin.Admin."""

    @constructs(_admin.Admin)
    def __init__(self) -> None: ...

    @property
    def failures(self) -> dict[str, Exception]:
        """Brokers that failed while others did what all were asked; of a tolerant admin."""
        return self._inner.failures

    @property
    def settings(self) -> ClientSettings:
        """How it finds its cluster."""
        return self._inner.settings

    def read_queue(
        self, queue: MessageQueue, begin: int, end: int, *, expression: str = ALL_TAGS, batch: int = 32
    ) -> Iterator[ReceivedMessage]:
        """Messages of a queue, one by one."""
        yield from _each(self._inner.read_queue(queue, begin, end, expression=expression, batch=batch))

    def messages_between(
        self,
        topic: str,
        since: datetime | float,
        until: datetime | float,
        *,
        tags: str = ALL_TAGS,
        key: str | None = None,
    ) -> Iterator[ReceivedMessage]:
        """What was stored from one moment to before another, one by one."""
        yield from _each(self._inner.messages_between(topic, since, until, tags=tags, key=key))

    def each_dead_letter(self, group: str, wanted: DeadLetterFilter = ALL_DEAD_LETTERS) -> Iterator[ReceivedMessage]:
        """All dead letters of a group, one by one."""
        yield from _each(self._inner.each_dead_letter(group, wanted))

    def messages_of(self, spans: Spans, *, tags: str = ALL_TAGS, key: str | None = None) -> Iterator[ReceivedMessage]:
        """What lies there, one by one."""
        yield from _each(self._inner.messages_of(spans, tags=tags, key=key))

    start = waits(_admin.Admin.start)
    stop = waits(_admin.Admin.stop)
    name_servers = calls(_admin.Admin.name_servers)
    cluster = waits(_admin.Admin.cluster)
    route = waits(_admin.Admin.route)
    brokers = waits(_admin.Admin.brokers)
    create_user = waits(_admin.Admin.create_user)
    update_user = waits(_admin.Admin.update_user)
    delete_user = waits(_admin.Admin.delete_user)
    users = waits(_admin.Admin.users)
    user = waits(_admin.Admin.user)
    create_rights = waits(_admin.Admin.create_rights)
    update_rights = waits(_admin.Admin.update_rights)
    delete_rights = waits(_admin.Admin.delete_rights)
    rights = waits(_admin.Admin.rights)
    quotas = waits(_admin.Admin.quotas)
    set_quota = waits(_admin.Admin.set_quota)
    remove_quota = waits(_admin.Admin.remove_quota)
    rights_of = waits(_admin.Admin.rights_of)
    name_server_settings = waits(_admin.Admin.name_server_settings)
    change_name_server_settings = waits(_admin.Admin.change_name_server_settings)
    put_value = waits(_admin.Admin.put_value)
    value = waits(_admin.Admin.value)
    values = waits(_admin.Admin.values)
    delete_value = waits(_admin.Admin.delete_value)
    wipe_write_permission = waits(_admin.Admin.wipe_write_permission)
    add_write_permission = waits(_admin.Admin.add_write_permission)
    broker_settings = waits(_admin.Admin.broker_settings)
    setting_changes = waits(_admin.Admin.setting_changes)
    apply_setting_changes = waits(_admin.Admin.apply_setting_changes)
    change_broker_settings = waits(_admin.Admin.change_broker_settings)
    runtime_info = waits(_admin.Admin.runtime_info)
    statistics = waits(_admin.Admin.statistics)
    broker_lag = waits(_admin.Admin.broker_lag)
    producers = waits(_admin.Admin.producers)
    clean_expired_queues = waits(_admin.Admin.clean_expired_queues)
    delete_expired_logs = waits(_admin.Admin.delete_expired_logs)
    ha_status = waits(_admin.Admin.ha_status)
    reset_master_flush_offset = waits(_admin.Admin.reset_master_flush_offset)
    cold_data_limits = waits(_admin.Admin.cold_data_limits)
    set_cold_data_limit = waits(_admin.Admin.set_cold_data_limit)
    remove_cold_data_limit = waits(_admin.Admin.remove_cold_data_limit)
    set_read_ahead = waits(_admin.Admin.set_read_ahead)
    open_transactions = waits(_admin.Admin.open_transactions)
    end_transaction = waits(_admin.Admin.end_transaction)
    check_transaction = waits(_admin.Admin.check_transaction)
    given_up_transactions = waits(_admin.Admin.given_up_transactions)
    resume_transaction = waits(_admin.Admin.resume_transaction)
    pending_timers = waits(_admin.Admin.pending_timers)
    find_timers = waits(_admin.Admin.find_timers)
    timer_counts = waits(_admin.Admin.timer_counts)
    recall = waits(_admin.Admin.recall)
    dead_letters = waits(_admin.Admin.dead_letters)
    resend_dead_letters = waits(_admin.Admin.resend_dead_letters)
    purge_dead_letters = waits(_admin.Admin.purge_dead_letters)
    create_topic = waits(_admin.Admin.create_topic)
    put_topic = waits(_admin.Admin.put_topic)
    put_topics = waits(_admin.Admin.put_topics)
    topic_changes = waits(_admin.Admin.topic_changes)
    reading_changes = waits(_admin.Admin.reading_changes)
    copied_topic = waits(_admin.Admin.copied_topic)
    apply_topic_changes = waits(_admin.Admin.apply_topic_changes)
    check_attributes_kept = waits(_admin.Admin.check_attributes_kept)
    delete_topic = waits(_admin.Admin.delete_topic)
    topics = waits(_admin.Admin.topics)
    topic_config = waits(_admin.Admin.topic_config)
    topic_configs = waits(_admin.Admin.topic_configs)
    topic_table = waits(_admin.Admin.topic_table)
    topic_offsets = waits(_admin.Admin.topic_offsets)
    topic_statistics = waits(_admin.Admin.topic_statistics)
    groups_of_topic = waits(_admin.Admin.groups_of_topic)
    clean_unused_topics = waits(_admin.Admin.clean_unused_topics)
    queues = waits(_admin.Admin.queues)
    max_offset = waits(_admin.Admin.max_offset)
    min_offset = waits(_admin.Admin.min_offset)
    offset_at = waits(_admin.Admin.offset_at)
    earliest_time = waits(_admin.Admin.earliest_time)
    create_group = waits(_admin.Admin.create_group)
    put_groups = waits(_admin.Admin.put_groups)
    group_changes = waits(_admin.Admin.group_changes)
    apply_group_changes = waits(_admin.Admin.apply_group_changes)
    delete_group = waits(_admin.Admin.delete_group)
    groups = waits(_admin.Admin.groups)
    group_table = waits(_admin.Admin.group_table)
    group_configs = waits(_admin.Admin.group_configs)
    set_consume_mode = waits(_admin.Admin.set_consume_mode)
    forbid_reading = waits(_admin.Admin.forbid_reading)
    consumer_connections = waits(_admin.Admin.consumer_connections)
    producer_connections = waits(_admin.Admin.producer_connections)
    running_info = waits(_admin.Admin.running_info)
    topics_of_group = waits(_admin.Admin.topics_of_group)
    consumer_lag = waits(_admin.Admin.consumer_lag)
    group_progress = waits(_admin.Admin.group_progress)
    time_spans = waits(_admin.Admin.time_spans)
    waited_ms = waits(_admin.Admin.waited_ms)
    client_offsets = waits(_admin.Admin.client_offsets)
    committed = waits(_admin.Admin.committed)
    set_offset = waits(_admin.Admin.set_offset)
    move_queue = waits(_admin.Admin.move_queue)
    reset_offsets = waits(_admin.Admin.reset_offsets)
    reset_by_brokers = waits(_admin.Admin.reset_by_brokers)
    preview_reset = waits(_admin.Admin.preview_reset)
    preview_offset = waits(_admin.Admin.preview_offset)
    move_to_offset = waits(_admin.Admin.move_to_offset)
    clone_offsets = waits(_admin.Admin.clone_offsets)
    all_lag = waits(_admin.Admin.all_lag)
    message = waits(_admin.Admin.message)
    message_by_offset_id = waits(_admin.Admin.message_by_offset_id)
    message_at = waits(_admin.Admin.message_at)
    count_between = waits(_admin.Admin.count_between)
    spans_between = waits(_admin.Admin.spans_between)
    go_on_copying = waits(_admin.Admin.go_on_copying)
    send_again = waits(_admin.Admin.send_again)
    copy_messages = waits(_admin.Admin.copy_messages)
    queue_entries = waits(_admin.Admin.queue_entries)
    consume_directly = waits(_admin.Admin.consume_directly)
    query_by_key = waits(_admin.Admin.query_by_key)
    query_by_tag = waits(_admin.Admin.query_by_tag)
    query_by_unique_key = waits(_admin.Admin.query_by_unique_key)
    trace = waits(_admin.Admin.trace)
    message_track = waits(_admin.Admin.message_track)
    controller_addresses = waits(_admin.Admin.controller_addresses)
    controller_metadata = waits(_admin.Admin.controller_metadata)
    replica_set_names = waits(_admin.Admin.replica_set_names)
    replica_sets = waits(_admin.Admin.replica_sets)
    elect_master = waits(_admin.Admin.elect_master)
    forget_replicas = waits(_admin.Admin.forget_replicas)
    controller_settings = waits(_admin.Admin.controller_settings)
    change_controller_settings = waits(_admin.Admin.change_controller_settings)
    epochs = waits(_admin.Admin.epochs)
    export_pop_records = waits(_admin.Admin.export_pop_records)
    check_queue_stores = waits(_admin.Admin.check_queue_stores)
    export_key_value_configs = waits(_admin.Admin.export_key_value_configs)
    add_broker_to_container = waits(_admin.Admin.add_broker_to_container)
    remove_broker_from_container = waits(_admin.Admin.remove_broker_from_container)
    cluster_at = waits(_admin.Admin.cluster_at)
    plan_declared = waits(_admin.Admin.plan_declared)
    apply_plan = waits(_admin.Admin.apply_plan)
