"""What clients put: sends in all forms, replies, and what consumers send back."""

import asyncio
from collections.abc import Iterable

from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.send.duplicate_window import DuplicateWindow
from skyrocket.broker.send.replies import ReplyProcessor
from skyrocket.broker.send.send import SendProcessor
from skyrocket.broker.send.send_answers import SendAnswers
from skyrocket.broker.send.send_back import SendBackProcessor
from skyrocket.observability.exposition import Metric, histogram
from skyrocket.protocol.send_shapes import SendShapes
from skyrocket.remoting.serving import Handlers


class SendFeature(Feature):
    """Sends are kept until the end of a turn, and stored together."""

    def __init__(self, parts: Parts) -> None:
        self.duplicates = DuplicateWindow(parts.config.duplicate_window)
        self._store = parts.store
        self._identity = parts.identity
        self._answers = answers = SendAnswers(parts.store, parts.identity, parts.rules.copies)
        self._send = SendProcessor(
            parts.store, parts.tables, parts.identity, parts.clock, parts.rules, answers, self.duplicates
        )
        self._send_back = SendBackProcessor(
            parts.store, parts.tables, parts.rules, parts.identity.address.host, parts.settings, parts.counters
        )
        self._replies = ReplyProcessor(
            parts.store, parts.tables, parts.identity, parts.clock, stores_replies=parts.config.store_replies
        )
        parts.router.shapes = SendShapes()
        parts.router.take_runs(self._send.send, self._send.send_run)
        parts.server.on_turn_end(self._send.end_turn)

    def handlers(self) -> Handlers:
        return (*self._send.handlers(), *self._send_back.handlers(), *self._replies.handlers())

    def metrics(self) -> Iterable[Metric]:
        yield from self.duplicates.metrics()
        yield histogram(
            "skyrocket_send_latency_seconds", "From the arrival of sends to their answers", self._answers.latency
        )

    async def open(self) -> None:
        await asyncio.to_thread(self.duplicates.read_again, self._store.commit_log, self._identity.store_host)
