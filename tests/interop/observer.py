"""What the server has, seen without the client under test: its log on disk, and its answers to our own client."""

import asyncio
import contextlib
import time
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from skyrocket.config.sections import TlsConfig
from skyrocket.format.compression import plain_body
from skyrocket.format.record import RecordWalk, decode_record
from skyrocket.model.message import StoredMessage
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.protocol.bodies.assignment import RequestMode
from skyrocket.protocol.bodies.connections import ConsumerList
from skyrocket.protocol.bodies.groups import SUBSCRIPTION_GROUP
from skyrocket.protocol.bodies.locks import LockedQueues, QueueLocks
from skyrocket.protocol.errors import QueryNotFound, RequestError
from skyrocket.protocol.requests.admin_groups import UpdateAndCreateSubscriptionGroup
from skyrocket.protocol.requests.admin_topics import UpdateAndCreateTopic
from skyrocket.protocol.requests.consumers import GetConsumerListByGroup, LockBatchMq
from skyrocket.protocol.requests.messaging import SendMessageV2
from skyrocket.protocol.requests.offsets import GetMaxOffset, QueryConsumerOffset, ResetOffset
from skyrocket.protocol.requests.pop import SetMessageRequestMode
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.tls import client_context
from tests.interop.standalone import Standalone
from tests.waiting import wait_until

T = TypeVar("T")
CALL_TIMEOUT_S = 20.0
READ_AND_WRITE = 6


class Observer:
    """Asks a running server, one question after the other."""

    def __init__(self, server: Standalone, runner: asyncio.Runner, client: RemotingClient) -> None:
        self.server = server
        self._runner = runner
        self._client = client

    # ── the log ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def stored(self, topic: str) -> list[StoredMessage]:
        """The topic's records in log order, with plain bodies."""
        return [
            replace(record, body=plain_body(record.body, record.sys_flag))
            for record in _records(self.server.store / "commitlog")
            if record.topic == topic
        ]

    # ── topics ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def create_topic(self, topic: str, queues: int) -> None:
        """As mqadmin does; returns when the name server knows it."""
        request = UpdateAndCreateTopic(
            topic=topic,
            default_topic="TBW102",
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=READ_AND_WRITE,
            topic_filter_type="SINGLE_TAG",
        )
        self._ask(self._client.call(self.server.broker, request))
        wait_until(lambda: self._has_route(topic), f"the name server has a route to {topic}")

    def _has_route(self, topic: str) -> bool:
        try:
            self._ask(self._client.call(self.server.name_server, GetRouteInfoByTopic(topic=topic)))
        except RequestError:
            return False
        return True

    def send(self, topic: str, queue_id: int, body: bytes) -> None:
        """To a queue of our choice."""
        request = SendMessageV2(
            producer_group="observers",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=queue_id,
            sys_flag=0,
            born_timestamp=int(time.time() * 1000),
            flag=0,
            properties="",
            reconsume_times=0,
        )
        self._ask(self._client.call(self.server.broker, request, body))

    # ── groups ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def max_offsets(self, topic: str, queues: int) -> list[int]:
        return [
            self._ask(self._client.call(self.server.broker, GetMaxOffset(topic=topic, queue_id=queue))).header.offset
            for queue in range(queues)
        ]

    def committed(self, group: str, topic: str, queues: int) -> list[int | None]:
        """How far the group is in each queue; None where the broker knows nothing."""
        return [self._committed_in(group, topic, queue) for queue in range(queues)]

    def _committed_in(self, group: str, topic: str, queue_id: int) -> int | None:
        request = QueryConsumerOffset(consumer_group=group, topic=topic, queue_id=queue_id, set_zero_if_not_found=False)
        try:
            return self._ask(self._client.call(self.server.broker, request)).header.offset
        except QueryNotFound:
            return None

    def members(self, group: str) -> list[str]:
        """Client ids, sorted as clients sort them before they share the queues."""
        try:
            reply = self._ask(self._client.call(self.server.broker, GetConsumerListByGroup(consumer_group=group)))
        except RequestError:
            return []
        return sorted(ConsumerList.decode(reply.body).client_ids)

    def lockable(self, group: str, topic: str, queues: int) -> set[int]:
        """Queues that a stranger in the group could lock: those that nobody holds."""
        wanted = tuple(MessageQueue(topic, "broker-a", queue) for queue in range(queues))
        body = QueueLocks(group, "observer", wanted).encode()
        reply = self._ask(self._client.call(self.server.broker, LockBatchMq(), body))
        return {queue.queue_id for queue in LockedQueues.decode(reply.body).queues}

    def reset(self, group: str, topic: str, timestamp_ms: int) -> None:
        """Move a group to a time, by way of its members, as mqadmin resetOffsetByTime does."""
        request = ResetOffset(topic=topic, group=group, timestamp=timestamp_ms, is_force=True)
        self._ask(self._client.call(self.server.broker, request, timeout_seconds=10))

    def let_pop(self, group: str, topic: str) -> None:
        """As mqadmin updateSubGroup and setConsumeMode do."""
        made = SUBSCRIPTION_GROUP.encode(SubscriptionGroup(group))
        self._ask(self._client.call(self.server.broker, UpdateAndCreateSubscriptionGroup(), made))
        mode = RequestMode(topic=topic, group=group, mode="POP", pop_share_queues=8)
        self._ask(self._client.call(self.server.broker, SetMessageRequestMode(), mode.encode()))

    def _ask(self, call: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(asyncio.wait_for(call, CALL_TIMEOUT_S))


@contextlib.contextmanager
def observing(server: Standalone) -> Iterator[Observer]:
    with asyncio.Runner() as runner:
        client = RemotingClient(tls=client_context(TlsConfig()) if server.is_tls_only else None)
        try:
            yield Observer(server, runner, client)
        finally:
            runner.run(client.close())


def _records(folder: Path) -> Iterator[StoredMessage]:
    for file in sorted(folder.iterdir()):
        content = _written_part(file)
        walk = RecordWalk(content, int(file.name))
        for head in walk:
            yield decode_record(content, head.physical_offset - int(file.name))


def _written_part(file: Path) -> bytes:
    """Up to the first page of zeros: files are as large as they may become."""
    with open(file, "rb") as log:
        parts = []
        while (part := log.read(1 << 20)) and any(part):
            parts.append(part)
        return b"".join(parts)
