"""Transactions: half messages, checks with their producers, and their end, by a producer's or an operator's word."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from skyrocket.broker.core.feature import Feature, Follow
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.transactions.end_transaction import EndTransactionProcessor
from skyrocket.broker.transactions.half_escape import HalfEscape
from skyrocket.broker.transactions.open_transactions import OpenTransactionProcessor
from skyrocket.broker.transactions.transaction_check import TransactionCheck
from skyrocket.broker.transactions.transaction_log import TransactionCountTable, TransactionLog
from skyrocket.format.config_files import TRANSACTIONS
from skyrocket.observability.exposition import Kind, Metric
from skyrocket.protocol.errors import NoPermission
from skyrocket.remoting.services import Work
from skyrocket.remoting.serving import Handlers
from skyrocket.store.config_file import ConfigFile

_KEYS: Final = (
    "transactionTimeOut",
    "transactionCheckInterval",
    "transactionCheckMax",
    "transactionOpMsgMaxSize",
    "transactionOpBatchInterval",
    "transactionMetricFlushInterval",
    "rejectTransactionMessage",
)


class TransactionsFeature(Feature):
    """The transactions of one broker, and the keeper of halves that senders' messages meet (`rules.put_rules`)."""

    def __init__(self, parts: Parts) -> None:
        store, tables, config, clock = parts.store, parts.tables, parts.config, parts.clock
        path = str(Path(store.paths.config) / "transactionMetrics")
        file = ConfigFile(parts.disk, path, TRANSACTIONS.decode, TRANSACTIONS.encode)
        self.counts = TransactionCountTable(file, clock)
        self.log = TransactionLog(store, tables, self.counts, parts.rules, config, parts.identity.store_host, clock)
        self.check = TransactionCheck(self.log, store, tables.producers, self.counts, config, parts.identity, clock)
        self.ends = EndTransactionProcessor(self.log, store, config, clock, is_master=parts.is_master)
        self._open = OpenTransactionProcessor(self.log, self.check, is_master=parts.is_master)
        self._settings = parts.settings
        self._when_online = parts.broker_set.when_online
        self._host = parts.identity.address.host
        self._checks = parts.is_master  # a slave asks nobody: its master does, or another one
        self._escape = HalfEscape(self.log, parts.special) if parts.may_act else None
        parts.rules.halves = self

    def accept(self, topic: str) -> None:
        """A half is about to be put; raises NoPermission where transactions are rejected."""
        if self._settings.broker.reject_transactions:
            raise NoPermission(f"the broker[{self._host}] sending transaction message is forbidden")
        self.counts.add(topic, 1)

    def handlers(self) -> Handlers:
        return (*self.ends.handlers(), *self._open.handlers())

    def services(self) -> tuple[Work, ...]:
        if self._checks:
            return (self._when_online(self._run_checks),)
        return (self._escape.run,) if self._escape is not None else ()

    async def _run_checks(self) -> None:
        self.log.take_back()  # the offsets may be those of a slave that acted meanwhile
        await self.check.run()

    def follows(self) -> tuple[Follow, ...]:
        return (Follow(self._settings_changed, _KEYS),)

    def _settings_changed(self) -> None:
        self.check.use(self._settings.broker)
        self.ends.use(self._settings.broker)

    async def open(self) -> None:
        self.log.load()

    async def close(self) -> None:
        await self.check.close()

    def metrics(self) -> Iterator[Metric]:
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
