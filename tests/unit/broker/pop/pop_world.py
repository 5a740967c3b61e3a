"""A broker's pop without sockets: store, timer, tables, all parts of pop, and a clock that a test moves."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from skyrocket.broker.pop.feature import Popping
from skyrocket.broker.pop.revive import timer_is_behind
from skyrocket.broker.rules.put_rules import PutRules
from skyrocket.broker.rules.subscriptions import Subscriptions
from skyrocket.broker.state.connected_consumers import ConnectedConsumers
from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.subscription_groups import SubscriptionGroupTable
from skyrocket.broker.state.system_topics import SystemTopics
from skyrocket.broker.state.topics import TopicTable
from skyrocket.broker.timer.feature import Timers
from skyrocket.config.sections import BrokerConfig, StoreConfig
from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import consumer_offsets, order_info, request_mode, subscription_groups, topics
from skyrocket.format.properties import encode_properties
from skyrocket.format.record import decode_records
from skyrocket.model.message import StoredMessage
from skyrocket.model.pop_retry import RetryMark, real_topic
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.receipt_handle import ReceiptHandle
from skyrocket.protocol.requests.pop import (
    AckMessage,
    ChangeInvisibleTime,
    ChangeInvisibleTimeAnswer,
    PopMessage,
    PopMessageAnswer,
)
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.answers import LaterAnswer, refusal
from skyrocket.remoting.exchange import command_of
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import UnforcedDisk, small_config

TOPIC, GROUP = "Orders", "Shop"
BROKER = "broker-a"
INVISIBLE_MS = 10_000

T = TypeVar("T")


class FakePeer:
    """As much of a connection as refusals mention."""

    remote_address = Address("127.0.0.1", 50_000)
    is_open = True


PEER: Any = FakePeer()


@dataclass(frozen=True)
class Popped:
    """A message in a consumer's hand."""

    message: StoredMessage
    receipt: ReceiptHandle
    group: str = GROUP

    @property
    def body(self) -> bytes:
        return self.message.body

    @property
    def real_topic(self) -> str:
        return real_topic(self.message.topic, self.group, self.receipt.retry_mark)


def popped_messages(body: bytes, answer: PopMessageAnswer, group: str = GROUP) -> list[Popped]:
    """What a client makes of a pop's answer: messages with their receipts."""
    starts: dict[tuple[str, int], int] = {}
    for part in filter(None, (answer.start_offset_info or "").split(";")):
        mark, queue, first = part.split(" ")
        starts[mark, int(queue)] = int(first)
    places = [
        (mark, int(queue), int(offset))
        for part in filter(None, (answer.msg_offset_info or "").split(";"))
        for mark, queue, offsets in [part.split(" ")]
        for offset in offsets.split(",")
    ]
    found = []
    for message, (mark, queue_id, offset) in zip(decode_records(body), places, strict=True):
        assert (message.queue_id, message.queue_offset) == (queue_id, offset), "the lists are in the order of the body"
        start = starts[mark, queue_id]
        receipt = ReceiptHandle(
            start, answer.pop_time, answer.invisible_time, answer.revive_qid, mark, BROKER, queue_id, offset
        )
        if mark != RetryMark.NORMAL.value:
            assert message.properties["POP_CK"] == receipt.text()
        found.append(Popped(message, receipt, group))
    return found


class PopWorld:
    """Pop over a store directory."""

    def __init__(
        self,
        root: Path,
        clock: FakeClock | None = None,
        *,
        config: BrokerConfig | None = None,
        disk: Disk | None = None,
        queues: int = 2,
        draw: int = 50,
        store_config: StoreConfig | None = None,
    ) -> None:
        self.root = root
        self.clock = clock or FakeClock()
        self.config = replace(config or BrokerConfig(), broker_name=BROKER)
        self.disk = disk or UnforcedDisk()
        self.draw = draw
        identity = BrokerIdentity(Address("127.0.0.1", 10_911))
        chosen = store_config or small_config(timer_log_file_size=4096)
        self.store = MessageStore(root, chosen, store_host=identity.store_host, clock=self.clock, disk=self.disk)
        system = SystemTopics(revive_queues=self.config.revive_queues).configs()
        self.topics = TopicTable(self._file("topics.json", topics), self.clock, system)
        self.groups = SubscriptionGroupTable(self._file("subscriptionGroup.json", subscription_groups), self.clock)
        self.offsets = ConsumerOffsetTable(self._file("consumerOffset.json", consumer_offsets), self.clock)
        self.rules = PutRules((1000,), "127.0.0.1")
        self.timers = Timers(
            self.store, self.topics, identity, self.config, self.clock, lambda: None, self.rules, self.disk
        )
        self.popping = Popping(
            self.store,
            self.topics,
            self.groups,
            self.offsets,
            ConnectedConsumers(self.clock),
            Subscriptions(by_property=True),
            self.rules,
            identity,
            self.clock,
            self.clock,
            lambda: self.config,
            lambda: None,
            self._file("consumerOrderInfo.json", order_info),
            self._file("messageRequestMode.json", request_mode),
            is_timer_behind=partial(timer_is_behind, self.timers.service, self.clock, chosen.timer_precision_ms),
            draw=lambda: self.draw,
        )
        self.store.add_listener(self.popping.arrived)
        self.store.open()
        for table in (self.topics, self.groups, self.offsets, self.popping):
            table.load()
        self.timers.load()
        self.topics.ensure(TOPIC, queues)

    def _file(self, name: str, layout: ModuleType) -> ConfigFile[Any]:
        encode = partial(layout.encode, dialect=Dialect.V5_4)
        return ConfigFile(self.disk, str(self.root / "config" / name), layout.decode, encode)

    # ── messages and time ────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, body: bytes, queue_id: int = 0, topic: str = TOPIC, **properties: str) -> int:
        message = PutMessage(topic, queue_id, body, encode_properties({"UNIQ_KEY": body.hex(), **properties}))
        result = self.store.put(message)
        assert result.ok
        self.store.dispatch()
        return result.queue_offset

    def pass_time(self, ms: int, step_ms: int = 500) -> None:
        """Let the timer and revival work while time passes."""
        left = ms
        while True:
            self.work()
            if left <= 0:
                return
            self.clock.advance(ms=min(step_ms, left))
            left -= step_ms

    def work(self) -> None:
        """All that is to do at this time."""
        service = self.timers.service
        assert service is not None
        self.store.dispatch()
        while service.fire_due(self.clock.now_ms()):
            self.store.dispatch()
        self.store.dispatch()
        while self.popping.revive.revive_once(self.clock.now_ms()):
            self.store.dispatch()
        self.store.dispatch()
        self.popping.pops.check()
        self.popping.notifications.check()

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def pop_request(self, **changes: Any) -> PopMessage:
        header = PopMessage(
            consumer_group=GROUP,
            topic=TOPIC,
            queue_id=-1,
            max_msg_nums=32,
            invisible_time=INVISIBLE_MS,
            poll_time=0,
            born_time=self.clock.now_ms(),
            init_mode=0,
        )
        return replace(header, **changes)

    def ask_pop(self, **changes: Any) -> RemotingCommand | LaterAnswer:
        """The answer as it is: a refusal as an answer too, or one that comes later."""
        request = command_of(self.pop_request(**changes))
        try:
            outcome = self.popping.processor.pop(PEER, request)
        except RequestError as error:
            return refusal(request, error)
        self.store.dispatch()
        assert isinstance(outcome, RemotingCommand | LaterAnswer)
        return outcome

    def pop(self, **changes: Any) -> list[Popped]:
        answer = self.ask_pop(**changes)
        assert isinstance(answer, RemotingCommand)
        assert answer.code in (ResponseCode.SUCCESS, ResponseCode.POLLING_TIMEOUT), answer.remark
        fields = PopMessageAnswer.from_fields(answer.ext_fields)
        return popped_messages(bytes(answer.body), fields, changes.get("consumer_group", GROUP))

    def ack(self, popped: Popped) -> None:
        receipt = popped.receipt
        header = AckMessage(
            consumer_group=popped.group,
            topic=popped.real_topic,
            queue_id=receipt.queue_id,
            extra_info=receipt.text(),
            offset=receipt.queue_offset,
        )
        self.popping.acks.ack(PEER, header, b"")
        self.store.dispatch()

    def change(self, popped: Popped, invisible_ms: int) -> Popped:
        """Hide a message until another time; the message with its new receipt."""
        receipt = popped.receipt
        header = ChangeInvisibleTime(
            consumer_group=popped.group,
            topic=popped.real_topic,
            queue_id=receipt.queue_id,
            extra_info=receipt.text(),
            offset=receipt.queue_offset,
            invisible_time=invisible_ms,
        )
        fields = self.popping.acks.change_invisible_time(PEER, header, b"").header
        self.store.dispatch()
        assert isinstance(fields, ChangeInvisibleTimeAnswer)
        changed = replace(
            receipt,
            start_offset=receipt.queue_offset,
            pop_time=fields.pop_time,
            invisible_ms=fields.invisible_time,
            revive_queue=fields.revive_qid,
        )
        return replace(popped, receipt=changed)

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def save(self) -> None:
        """What the broker does every few seconds."""
        self.popping.revive_log.force_to_disk()
        for table in (self.offsets, self.popping.orders, self.popping.modes):
            if table.dirty:
                table.save()
        assert self.timers.service is not None
        self.timers.service.save()

    def stop(self) -> None:
        self.save()
        self.timers.close()
        self.store.close()

    def again(self, **changes: Any) -> "PopWorld":
        """A broker that starts on what this one left."""
        return PopWorld(self.root, self.clock, config=self.config, draw=self.draw, **changes)

    def killed(self, target: Path) -> "PopWorld":
        """A broker that starts on what is in the page cache now; this one was killed."""
        shutil.copytree(self.root, target, copy_function=_copy_with_holes)
        self.store.close()
        self.timers.close()
        return PopWorld(target, self.clock, config=self.config, draw=self.draw)


def _copy_with_holes(source: str, target: str) -> None:
    """The timer's wheel is 38 MB of nothing, mostly."""
    with open(source, "rb") as given, open(target, "wb") as made:
        size, at = os.fstat(given.fileno()).st_size, 0
        made.truncate(size)
        while at < size:
            try:
                at = os.lseek(given.fileno(), at, os.SEEK_DATA)
            except OSError:  # nothing but a hole is left
                return
            end = os.lseek(given.fileno(), at, os.SEEK_HOLE)
            os.pwrite(made.fileno(), os.pread(given.fileno(), end - at, at), at)
            at = end


def bodies(popped: Sequence[Popped]) -> list[bytes]:
    return [each.body for each in popped]
