"""Log records say which message was being handled."""

import logging
from pathlib import Path

from skyrocket.client import (
    Message,
    MessageContext,
    Producer,
    PushConsumer,
    PushConsumerSettings,
    ReceivedMessage,
)
from tests.cluster.servers import cluster
from tests.waiting import until

log = logging.getLogger("shop")


class Kept(logging.Handler):
    """Keeps formatted records."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.addFilter(MessageContext())
        self.setFormatter(logging.Formatter("%(message)s|%(topic)s|%(message_id)s|%(group)s|%(reconsume_times)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


async def test_records_of_handlers_carry_the_message_in_every_kind_of_handler(tmp_path: Path) -> None:
    kept = Kept()
    log.addHandler(kept)
    log.setLevel(logging.INFO)

    def plain(message: ReceivedMessage) -> None:
        log.info("plain")

    async def coroutine(message: ReceivedMessage) -> None:
        log.info("coroutine")

    async def batch(messages: list[ReceivedMessage]) -> None:
        log.info("batch")

    async def main() -> None:
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            sent = {topic: (await producer.send(Message(topic, b"x"))).message_id for topic in ("A", "B", "C", "D")}
            # One worker: what the one before it handled must not show.
            consumer = PushConsumer("Billing", given.names, PushConsumerSettings(max_concurrency=1))
            consumer.subscribe("A", plain)
            consumer.subscribe("B", coroutine)
            consumer.subscribe("C", batch, batch=True)
            in_order = PushConsumer("Ordered", given.names, PushConsumerSettings(orderly=True))
            in_order.subscribe("D", coroutine)
            async with consumer, in_order:
                await until(lambda: len(kept.lines) == 4)
            log.info("outside")
            assert sorted(kept.lines) == sorted(
                [
                    f"plain|A|{sent['A']}|Billing|0",
                    f"coroutine|B|{sent['B']}|Billing|0",
                    f"batch|C|{sent['C']}|Billing|0",
                    f"coroutine|D|{sent['D']}|Ordered|0",
                    "outside||||",
                ]
            )

    try:
        await main()
    finally:
        log.removeHandler(kept)


def test_what_a_log_call_says_itself_stays() -> None:
    kept = Kept()
    log.addHandler(kept)
    try:
        log.warning("mine", extra={"topic": "my own"})
    finally:
        log.removeHandler(kept)
    assert kept.lines == ["mine|my own|||"]
