"""Builds what belongs to transactions, and says what operators may know and do about them.

open_transactions()      which wait for their end, how old they are, how often they were checked
end(offset, decision)    an operator's word in place of the producer's
metrics()                for /metrics
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from skyrocket.broker.rules.put_rules import PutRules
from skyrocket.broker.state.connected_producers import ConnectedProducers
from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.broker.state.topics import TopicTable
from skyrocket.broker.transactions.end_transaction import EndTransactionProcessor
from skyrocket.broker.transactions.transaction_check import TransactionCheck
from skyrocket.broker.transactions.transaction_counts import TransactionCountTable
from skyrocket.broker.transactions.transaction_log import (
    Decision,
    OpenPage,
    OpenTransaction,
    PutRefused,
    TransactionLog,
)
from skyrocket.clock import ServiceClock
from skyrocket.config.sections import BrokerConfig
from skyrocket.format.config_files import transaction_metrics
from skyrocket.observability.exposition import Kind, Metric
from skyrocket.protocol.errors import SystemFailure
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore

_KEYS: Final = (
    "transactionTimeOut",
    "transactionCheckInterval",
    "transactionCheckMax",
    "transactionOpMsgMaxSize",
    "transactionOpBatchInterval",
    "transactionMetricFlushInterval",
    "rejectTransactionMessage",
)


class Transactions:
    """The transactions of one broker."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        offsets: ConsumerOffsetTable,
        producers: ConnectedProducers[Peer],
        identity: BrokerIdentity,
        config: BrokerConfig,
        clock: ServiceClock,
        after_put: Callable[[], None],
        rules: PutRules,
    ) -> None:
        path = str(Path(store.paths.config) / "transactionMetrics")
        file = ConfigFile(Disk(), path, transaction_metrics.decode, transaction_metrics.encode)
        self.counts = TransactionCountTable(file, clock)
        self.log = TransactionLog(
            store, topics, offsets, self.counts, rules, config, identity.store_host, clock, after_put
        )
        self.check = TransactionCheck(self.log, store, producers, self.counts, config, identity, clock)
        self._processor = EndTransactionProcessor(self.log, store, config, clock, is_master=identity.broker_id == 0)
        self._rules = rules
        rules.rejects_transactions = config.reject_transactions
        rules.on_half = lambda topic: self.counts.add(topic, 1)

    def handlers(self) -> Handlers:
        return self._processor.handlers()

    def follow(self, settings: LiveSettings) -> None:
        """Take other settings at once."""

        def apply() -> None:
            self.check.use(settings.broker)
            self._processor.use(settings.broker)
            self._rules.rejects_transactions = settings.broker.reject_transactions

        settings.follow(apply, *_KEYS)

    # ── for operators ────────────────────────────────────────────────────────────────────────────────────────────────

    def open_transactions(self, limit: int = 1000) -> list[OpenTransaction]:
        """Those that wait for their end, oldest place first."""
        return self.log.open_transactions(limit)

    def open_page(self, begin: int, most_read: int) -> OpenPage:
        """The same among the next halves from an offset on."""
        return self.log.open_page(begin, most_read)

    def end(self, half_offset: int, decision: Decision, transaction_id: str = "") -> None:
        """End an open transaction, given by the queue offset of its half and its id; raises SystemFailure."""
        try:
            self.log.end_by_operator(half_offset, decision, transaction_id)
        except PutRefused as error:
            raise SystemFailure(
                f"the transaction is still open, the store did not take its message: {error}"
            ) from error

    def metrics(self) -> Iterator[Metric]:
        """Counted since the start, but for the number of open ones."""
        waiting = Metric("rocketmq_half_messages", Kind.GAUGE, "Transactions that have not ended, by topic")
        for topic, count in self.counts.counts().items():
            waiting.add(count, topic=topic)
        yield waiting
        for name, help_text, counter in (
            ("rocketmq_commit_messages_total", "Transactions committed, by topic", self.log.committed),
            ("rocketmq_rollback_messages_total", "Transactions rolled back, by topic", self.log.rolled_back),
            ("skyrocket_given_up_transactions_total", "Transactions checked too often, by topic", self.log.given_up),
        ):
            metric = Metric(name, Kind.COUNTER, help_text)
            for topic, count in counter.items():
                metric.add(count, topic=topic)
            yield metric
        checks = Metric("skyrocket_transaction_checks_total", Kind.COUNTER, "Checks, by whether a producer was there")
        checks.add(self.check.asked, asked="true")
        checks.add(self.check.without_producer, asked="false")
        yield checks
