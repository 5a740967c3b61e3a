"""A broker's pop without sockets: store, timer, tables, all parts of pop, and a clock that a test moves."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from skyrocket.broker.core.parts import build_parts
from skyrocket.broker.pop.feature import PopFeature
from skyrocket.broker.timer.feature import TimerFeature
from skyrocket.broker.timer.service import TimerService
from skyrocket.config.sections import BrokerConfig, StoreConfig
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
from skyrocket.remoting.serving import Answered
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.disk import Disk
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import UnforcedDisk, dispatch, small_config

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

    def acknowledgement(self) -> AckMessage:
        """What its consumer sends when it is done."""
        return AckMessage(
            consumer_group=self.group,
            topic=self.real_topic,
            queue_id=self.receipt.queue_id,
            extra_info=self.receipt.text(),
            offset=self.receipt.queue_offset,
        )


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


def _dispatched_by_hand() -> None: ...


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
        self.disk = disk or UnforcedDisk()
        config = replace(
            config or BrokerConfig(),
            broker_name=BROKER,
            store_root=str(root),
            listen_port=10_911,
            broker_ip="127.0.0.1",
            property_filter=True,
        )
        chosen = store_config or small_config(timer_log_file_size=4096)
        self.parts = build_parts(config, replace(chosen, message_delay_levels="1s"), self.clock, disk=self.disk)
        self.store, self.rules = self.parts.store, self.parts.rules
        self.store.intake.after_put = _dispatched_by_hand
        self.topics, self.groups = self.parts.tables.topics, self.parts.tables.groups
        self.offsets = self.parts.tables.offsets
        self.timers = TimerFeature(self.parts)
        self.popping = PopFeature(self.parts)
        self.draw = draw
        self.popping.processor.draw = lambda: self.draw
        self.topics.load()
        self.store.open()
        for table in (self.groups, self.offsets, self.popping, self.timers):
            table.load()
        self.topics.ensure(TOPIC, queues)

    @property
    def _timer(self) -> TimerService:
        assert self.timers.service is not None
        return self.timers.service

    @property
    def config(self) -> BrokerConfig:
        return self.parts.settings.broker

    @config.setter
    def config(self, config: BrokerConfig) -> None:
        self.parts.settings.broker = config

    # ── messages and time ────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, body: bytes, queue_id: int = 0, topic: str = TOPIC, **properties: str) -> int:
        message = PutMessage(topic, queue_id, body, encode_properties({"UNIQ_KEY": body.hex(), **properties}))
        result = self.store.put(message)
        assert result.ok
        dispatch(self.store)
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
        dispatch(self.store)
        while service.fire_due(self.clock.now_ms()):
            dispatch(self.store)
        dispatch(self.store)
        while self.popping.revive.revive_once(self.clock.now_ms()):
            dispatch(self.store)
        dispatch(self.store)
        self.popping.polling.pops.check()
        self.popping.polling.notifications.check()

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
        dispatch(self.store)
        assert isinstance(outcome, RemotingCommand | LaterAnswer)
        return outcome

    def pop(self, **changes: Any) -> list[Popped]:
        answer = self.ask_pop(**changes)
        assert isinstance(answer, RemotingCommand)
        assert answer.code in (ResponseCode.SUCCESS, ResponseCode.POLLING_TIMEOUT), answer.remark
        fields = PopMessageAnswer.from_fields(answer.ext_fields)
        return popped_messages(bytes(answer.body), fields, changes.get("consumer_group", GROUP))

    def ack(self, popped: Popped) -> None:
        self.popping.acks.ack(PEER, popped.acknowledgement(), b"")
        dispatch(self.store)

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
        answered = self.popping.acks.change_invisible_time(PEER, header, b"")
        assert isinstance(answered, Answered)
        fields = answered.header
        dispatch(self.store)
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
        for table in (self.topics, self.groups, self.offsets, self.popping.orders, self.popping.modes):
            if table.dirty:
                table.save()
        assert self.timers.service is not None
        self.timers.service.save()

    def stop(self) -> None:
        self.save()
        self._timer.close()
        self.store.close()

    def again(self, **changes: Any) -> "PopWorld":
        """A broker that starts on what this one left."""
        return PopWorld(self.root, self.clock, config=self.config, draw=self.draw, **changes)

    def killed(self, target: Path) -> "PopWorld":
        """A broker that starts on what is in the page cache now; this one was killed.

        Topics and groups are there: the broker saves them soon after a change.
        """
        self.topics.save()
        self.groups.save()
        shutil.copytree(self.root, target, copy_function=_copy_with_holes, ignore=shutil.ignore_patterns("*.tmp"))
        self.store.close()
        self._timer.close()
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
