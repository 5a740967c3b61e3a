"""A store with the transactions of a broker, a producer that only listens, and time that stands still."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from skyrocket.broker.core.parts import build_parts
from skyrocket.broker.state.connected_clients import Client
from skyrocket.broker.transactions.feature import TransactionsFeature
from skyrocket.broker.transactions.half_message import HalfMessage, read_half
from skyrocket.broker.transactions.transaction_check import CheckRound
from skyrocket.config.sections import BrokerConfig, StoreConfig
from skyrocket.format.properties import encode_properties
from skyrocket.format.record import decode_record, decode_records
from skyrocket.model.message import StoredMessage
from skyrocket.model.topic import ENDED_TOPIC, GIVEN_UP_TOPIC, HALF_TOPIC
from skyrocket.protocol.requests.server_to_client import CheckTransactionState
from skyrocket.protocol.requests.transaction import EndTransaction
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Answered
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.disk import Disk
from skyrocket.store.results import PutResult
from skyrocket.testing.clock import FakeClock
from tests.loops import run_bounded
from tests.unit.store.stores import UnforcedDisk, dispatch, small_config

TOPIC, GROUP = "Orders", "Sellers"
QUEUE = 2


@dataclass(frozen=True)
class Question:
    """What a producer was asked."""

    header: CheckTransactionState
    message: StoredMessage


class Listener:
    """The network: a connection of a producer that takes everything."""

    def __init__(self) -> None:
        self.is_open = self.is_writable = True
        self.questions: list[Question] = []

    def send_oneway(self, request: CheckTransactionState, body: bytes) -> bool:
        self.questions.append(Question(request, decode_record(memoryview(body), check_crc=True)))
        return self.is_writable


class Transacting:
    """Transactions on a store directory."""

    def __init__(
        self,
        root: Path,
        clock: FakeClock,
        config: BrokerConfig | None = None,
        store_config: StoreConfig | None = None,
        disk: Disk | None = None,
    ) -> None:
        self.root, self.clock = root, clock
        self.disk = disk or UnforcedDisk()
        config = replace(config or BrokerConfig(), store_root=str(root), listen_port=10911, broker_ip="127.0.0.1")
        levels = "1s 5s"
        small = replace(store_config or small_config(), message_delay_levels=levels)
        self.parts = build_parts(config, small, clock, disk=self.disk)
        self.store, self.rules = self.parts.store, self.parts.rules
        self.store.intake.after_put = self._dispatch
        self.topics, self.offsets = self.parts.tables.topics, self.parts.tables.offsets
        self.producers = self.parts.tables.producers
        self.topics.load()
        self.store.open()
        self.offsets.load()
        self.producer = Listener()
        self.join(self.producer)
        self.transactions = TransactionsFeature(self.parts)
        self.transactions.log.load()

    def _dispatch(self) -> None:
        dispatch(self.store)

    def join(self, listener: Listener, group: str = GROUP) -> None:
        connection = cast(Peer, listener)
        self.producers.register(group, Client(connection, f"client-{id(listener)}"))

    def stop(self) -> None:
        """As a broker that is stopped."""
        run_bounded(self.transactions.check.close())
        self.offsets.save()
        self.store.close()

    # ── a producer ───────────────────────────────────────────────────────────────────────────────────────────────────

    def begin(
        self, body: bytes, *, group: str = GROUP, flag: int = 0, born_ms: int | None = None, **properties: str
    ) -> PutResult:
        """Send a half message."""
        given = {"TRAN_MSG": "true", "PGROUP": group, "UNIQ_KEY": f"U{body.decode()}", "TAGS": "red", **properties}
        message = PutMessage(
            TOPIC,
            QUEUE,
            body,
            encode_properties(given),
            flag=flag,
            sys_flag=4,
            born_timestamp=self.clock.now_ms() if born_ms is None else born_ms,
        )
        self.rules.apply(message)
        result = self.store.put(message)
        dispatch(self.store)
        return result

    def end(self, physical_offset: int, word: int, *, from_check: bool = False, **changes: Any) -> Answered:
        """Say how a transaction ends, as a producer does; raises what it would be answered."""
        record = self.store.by_physical_offset(physical_offset)
        queue_offset = decode_record(record).queue_offset if record is not None else 0
        header = EndTransaction(
            topic=TOPIC,
            producer_group=GROUP,
            tran_state_table_offset=queue_offset,
            commit_log_offset=physical_offset,
            commit_or_rollback=word,
            from_transaction_check=from_check,
            msg_id="",
        )
        answer = self.transactions.ends.end(cast(Peer, self.producer), replace(header, **changes), b"")
        dispatch(self.store)
        return answer

    def check(self) -> CheckRound:
        """One round now."""
        work = self.transactions.check.check_once(self.clock.now_ms())
        dispatch(self.store)
        return work

    # ── what is in the store ─────────────────────────────────────────────────────────────────────────────────────────

    def messages(self, topic: str, queue_id: int = 0) -> list[StoredMessage]:
        return list(self._messages(topic, queue_id))

    def _messages(self, topic: str, queue_id: int) -> Iterator[StoredMessage]:
        dispatch(self.store)
        offset = max(self.store.min_offset(topic, queue_id), 0)
        while found := list(decode_records(self.store.get(topic, queue_id, offset).join())):
            yield from found
            offset += len(found)

    def delivered(self) -> list[bytes]:
        return [message.body for message in self.messages(TOPIC, QUEUE)]

    def given_up(self) -> list[bytes]:
        return [message.body for message in self.messages(GIVEN_UP_TOPIC)]

    def halves(self) -> list[StoredMessage]:
        return self.messages(HALF_TOPIC)

    def ends(self) -> list[bytes]:
        return [message.body for message in self.messages(ENDED_TOPIC)]

    def half(self, queue_offset: int) -> HalfMessage:
        record = self.store.by_physical_offset(self.halves()[queue_offset].physical_offset)
        assert record is not None
        return read_half(record)
