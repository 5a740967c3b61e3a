"""Options of the sink, read once on the driver and handed to every task."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from skyrocket.client.exactly_once.read_back import READER_GROUP
from skyrocket.client.producer.producer_settings import ProducerSettings
from skyrocket.pipeline.options import Options
from skyrocket.pipeline.topic_source.cluster import CLUSTER_OPTIONS, Cluster, cluster_of

AT_LEAST_ONCE: Final = "at-least-once"
IDEMPOTENT: Final = "idempotent"
EXACTLY_ONCE: Final = "exactly-once"
GUARANTEES: Final = (IDEMPOTENT, AT_LEAST_ONCE, EXACTLY_ONCE)

OPTION_NAMES: Final = (
    *CLUSTER_OPTIONS,
    *"""topic deliveryGuarantee producerGroup consumerGroup maxMessageSize maxBatchBytes maxBytesInFlight
    sendTimeout reservedProperties checkpointLocation jobId""".split(),
)
_HALF_OF_THE_SMALLEST_LIMIT: Final = 2 << 20


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """What a write was told; plain values, as it travels to the executors."""

    cluster: Cluster
    topic: str | None  # for all rows, with its namespace; None: each row says
    guarantee: str = IDEMPOTENT
    producer_group: str = "skyrocket-spark-sink"
    consumer_group: str = READER_GROUP  # in whose name topics are read back
    max_message_size: int = 4 << 20
    max_batch_bytes: int = 256 << 10
    max_bytes_in_flight: int = 16 << 20
    send_timeout: float = 120.0  # for one request with all its attempts
    drops_reserved: bool = False
    location: str = ""  # where records of batches are kept
    job_id: str = ""

    @property
    def is_idempotent(self) -> bool:
        return self.guarantee == IDEMPOTENT

    @property
    def is_exactly_once(self) -> bool:
        return self.guarantee == EXACTLY_ONCE

    def producer(self) -> ProducerSettings:
        """One attempt per call: what failed is looked at before it is sent again."""
        return ProducerSettings(retries=0, max_message_size=self.max_message_size)


def sink_settings(given: Mapping[str, str], *, is_stream: bool) -> SinkSettings:
    """Typed and checked; raises OptionError."""
    options = Options(given, OPTION_NAMES, "rocketmq")
    guarantee = options.choice("deliveryGuarantee", GUARANTEES, IDEMPOTENT)
    location = options.text("checkpointLocation", "")
    job_id = options.text("jobId", "")
    if is_stream and job_id:
        raise options.error("jobId", "is for df.write; a stream's batches have numbers of their own")
    if is_stream and guarantee != AT_LEAST_ONCE and not location:
        raise options.error(
            "checkpointLocation",
            f"is missing: {guarantee} writing keeps its records there. Give it as an option of this writeStream (the "
            'session\'s default does not reach the sink), or write with "at-least-once"',
        )
    if not is_stream and guarantee == EXACTLY_ONCE and not (job_id and location):
        raise options.error(
            "deliveryGuarantee",
            'is "exactly-once", for which df.write needs the options "jobId" and "checkpointLocation": a job that dies '
            "in the middle is finished when it is run again under the same name",
        )
    if not is_stream and bool(job_id) != bool(location):
        raise options.error(
            "jobId", 'and "checkpointLocation" belong together: they let a job that is run again send only the rest'
        )
    if "/" in job_id:
        raise options.error("jobId", f'is "{job_id}"; it names a file, so it must not contain "/"')
    max_message_size = options.size_bytes("maxMessageSize", 4 << 20)
    max_batch_bytes = options.size_bytes("maxBatchBytes", 256 << 10)
    if max_batch_bytes > min(max_message_size, _HALF_OF_THE_SMALLEST_LIMIT):
        # Brokers measure a batch as they store it, with a head of 91 bytes and the topic for each message.
        raise options.error("maxBatchBytes", f"is {max_batch_bytes}; brokers take at most 2m and maxMessageSize")
    cluster = cluster_of(options)
    topic = options.text("topic", None)
    reader = options.text("consumerGroup", None)
    return SinkSettings(
        cluster,
        None if topic is None else cluster.full(topic),
        guarantee,
        options.text("producerGroup", "skyrocket-spark-sink"),
        READER_GROUP if reader is None else cluster.full(reader),
        max_message_size,
        max_batch_bytes,
        max(options.size_bytes("maxBytesInFlight", 16 << 20), max_batch_bytes),
        options.duration_ms("sendTimeout", 120_000) / 1000,
        options.choice("reservedProperties", ("refuse", "drop"), "refuse") == "drop",
        location,
        job_id,
    )
