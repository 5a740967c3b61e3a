"""How producers send; times are in seconds, names are RocketMQ's in Python's spelling."""

from dataclasses import dataclass

from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.names import TEMPLATE_TOPIC
from skyrocket.client.sending.retrying_sender import RETRYABLE_CODES, SendRules
from skyrocket.format.compression import CompressionType


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """How a producer sends; times are in seconds."""

    send_timeout: float = 3.0  # for the whole of a send: route, all attempts
    timeout_per_attempt: float | None = None
    retries: int = 2
    async_retries: int = 2  # of sends that nobody waits for: `send_nowait` of the blocking producer
    retry_another_broker_when_not_store_ok: bool = False
    retryable_codes: frozenset[int] = RETRYABLE_CODES
    send_latency_fault_enable: bool = False  # brokers that were slow or failed rest for a while
    minimum_latency: bool = False  # prefer the broker that answers fastest
    compress_over: int = 4096
    compress_type: CompressionType = CompressionType.ZLIB
    compress_level: int = 5
    max_message_size: int = 4 << 20
    max_batch_bytes: int = 1_000_000  # longer batches are split
    max_in_flight: int = 1024
    max_in_flight_bytes: int = 100 << 20
    auto_batch: bool = False
    auto_batch_bytes: int = 32 << 10
    auto_batch_delay: float = 0.01
    auto_batch_total_bytes: int = 32 << 20
    template_topic: str = TEMPLATE_TOPIC  # topics that do not exist are made like this one, if brokers allow it
    template_queues: int = 4
    drain_timeout: float = 10.0  # how long `stop` waits for sends under way
    idempotent: bool = False  # number each message, so that our brokers store it once however often `send` tries

    def __post_init__(self) -> None:
        if self.send_timeout <= 0 or self.max_in_flight < 1 or min(self.retries, self.async_retries) < 0:
            raise WrongUse("send_timeout and max_in_flight must be positive, retries must not be negative")
        if self.idempotent and self.auto_batch:
            raise WrongUse("idempotent and auto_batch exclude each other: messages of a batch have no numbers")

    def send_rules(self) -> SendRules:
        """What of this concerns one send and its retries."""
        return SendRules(
            self.retries,
            self.timeout_per_attempt,
            self.retry_another_broker_when_not_store_ok,
            self.send_latency_fault_enable,
            self.minimum_latency,
            self.template_topic,
            self.template_queues,
            self.retryable_codes,
        )
