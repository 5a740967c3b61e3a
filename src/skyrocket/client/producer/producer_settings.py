"""How producers send; times are in seconds, names are RocketMQ's in Python's spelling."""

from dataclasses import dataclass

from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.names import TEMPLATE_TOPIC
from skyrocket.client.core.setting_types import check_types
from skyrocket.client.sending.retrying_sender import RETRYABLE_CODES, SendRules
from skyrocket.format.compression import CompressionType


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """How a producer sends; times are in seconds."""

    send_timeout: float = 3.0
    """Seconds for the whole of a send: finding the route and all attempts."""
    timeout_per_attempt: float | None = None
    """Seconds for each attempt; None: what is left of send_timeout."""
    retries: int = 2
    """How many further attempts a send may have, at another broker if there is one."""
    async_retries: int = 2
    """The same for sends that nobody waits for: `send_nowait` of the blocking producer."""
    retry_another_broker_when_not_store_ok: bool = False
    """Send again elsewhere when a broker stored the message but not as safely as configured."""
    retryable_codes: frozenset[int] = RETRYABLE_CODES
    """Error codes of brokers after which another attempt makes sense."""
    send_latency_fault_enable: bool = False
    """Let brokers that were slow or failed rest for a while."""
    minimum_latency: bool = False
    """Prefer the broker that answers fastest."""
    compress_over: int = 4096
    """Bodies of this many bytes or more are compressed."""
    compress_type: CompressionType = CompressionType.ZLIB
    """How: ZLIB, LZ4 or ZSTD; consumers must know it too."""
    compress_level: int = 5
    """The level of that compression."""
    max_message_size: int = 4 << 20
    """Larger bodies are refused here; brokers have a limit of their own (maxMessageSize)."""
    max_batch_bytes: int = 1_000_000
    """Longer batches are split."""
    max_in_flight: int = 1024
    """Sends at once; further ones wait for their time-out at most."""
    max_in_flight_bytes: int = 100 << 20
    """The same in bytes of their bodies."""
    gather_sends: bool = True
    """Whether awaited sends that meet travel in one request; none waits for another."""
    auto_batch: bool = False
    """Let `send` put messages that come together into one request."""
    auto_batch_bytes: int = 32 << 10
    """A batch leaves when it has so many bytes."""
    auto_batch_delay: float = 0.01
    """Or after so many seconds."""
    auto_batch_total_bytes: int = 32 << 20
    """Bytes of all batches that are being filled or under way; then senders wait."""
    template_topic: str = TEMPLATE_TOPIC
    """Topics that do not exist are made like this one, if brokers allow it."""
    template_queues: int = 4
    """With at most so many queues."""
    drain_timeout: float = 10.0
    """Seconds that `stop` waits for sends under way."""
    idempotent: bool = False
    """Number each message, so that our brokers store it once however often `send` tries."""

    def __post_init__(self) -> None:
        check_types(self)
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
