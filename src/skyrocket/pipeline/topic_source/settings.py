"""The options of format("rocketmq") for reading, checked and typed; docs/guides/spark-source-and-sink.md lists them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from skyrocket.client.consumer.subscription import subscription_of
from skyrocket.columns.schema import PROPERTIES_FORMS, PropertiesForm
from skyrocket.errors import SkyrocketError
from skyrocket.filtering.sql92 import compile_filter
from skyrocket.filtering.sql92_words import SqlError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX, is_system_topic
from skyrocket.pipeline.options import Options
from skyrocket.pipeline.topic_source.cluster import CLUSTER_OPTIONS, Cluster, cluster_of
from skyrocket.pipeline.topic_source.offsets import BadOffsets, assigned_queues
from skyrocket.pipeline.topic_source.positions import Position, ending, starting

FORMAT: Final = "rocketmq"
OPTIONS: Final = (
    *CLUSTER_OPTIONS,
    *"""subscribe subscribePattern assign tags sqlFilter keys startingOffsets startingTimestamp
    startingOffsetsByTimestamp startingOffsetsByTimestampStrategy endingOffsets endingTimestamp
    endingOffsetsByTimestamp initialOffsetsLocation maxOffsetsPerTrigger minOffsetsPerTrigger maxTriggerDelay
    maxBytesPerTrigger minPartitions maxRecordsPerPartition failOnDataLoss includeProperties properties
    decompress consumerGroup commitOffsets pullBatchSize pullThreads pullTimeoutMs pollTimeoutMs brokerAbsenceMs
    fetchOffset.numRetries fetchOffset.retryIntervalMs metadataTtlMs""".split(),
)
_STREAM_ONLY: Final = tuple(
    """initialOffsetsLocation maxOffsetsPerTrigger minOffsetsPerTrigger maxTriggerDelay maxBytesPerTrigger
    pollTimeoutMs""".split()
)
_CONDITION_STEP: Final = "write one over properties and TAGS, as price > 10 AND region = 'eu'"
_TAGS_STEP: Final = "write TagA || TagB, or leave the option away to read all"
_BATCH_ONLY: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
ANONYMOUS_GROUP: Final = "TOOLS_CONSUMER"  # every broker has it, so that reading makes no group
_UNSPOKEN: Final = (RETRY_PREFIX, DLQ_PREFIX)  # a pattern means these only when it says so


@dataclass(frozen=True)
class Subscribed:
    """Which queues: of topics by name, of topics by pattern, or these queues alone.

    Names are those that brokers know; a pattern is for names without the namespace.
    """

    topics: tuple[str, ...] = ()
    pattern: str = ""
    queues: tuple[MessageQueue, ...] = ()

    def matching(self, names: list[str]) -> tuple[str, ...]:
        """The topics of a pattern; not the system's, nor retries and dead letters unless it begins like them."""
        wanted = re.compile(self.pattern)
        return tuple(
            name
            for name in sorted(names)
            if wanted.fullmatch(name)
            and not is_system_topic(name)
            and (self.pattern.startswith("%") or not name.startswith(_UNSPOKEN))
        )

    def __str__(self) -> str:
        return ", ".join(self.topics) or self.pattern or ", ".join(sorted({queue.topic for queue in self.queues}))


@dataclass(frozen=True)
class Wanted:
    """Which messages: as the broker filters, and what is compared here once more."""

    expression: str = "*"
    expression_type: str = "TAG"
    tags: tuple[str, ...] = ()  # brokers compare hashes of tags
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """How much per trigger; None: no limit."""

    most: int | None = None
    least: int | None = None
    longest_delay_ms: int = 900_000
    most_bytes: int | None = None


@dataclass(frozen=True)
class Transport:
    """How brokers are asked."""

    batch_size: int = 1024
    in_flight: int = 4
    timeout_ms: int = 10_000
    absence_ms: int = 60_000  # how long a broker may be away
    poll_ms: int = 500
    retries: int = 3
    retry_interval_ms: int = 10
    metadata_ttl_ms: int = 30_000


@dataclass(frozen=True)
class TopicSettings:
    """All options of one source."""

    cluster: Cluster
    subscribed: Subscribed
    wanted: Wanted
    start: Position
    end: Position
    initial_offsets: str
    limits: Limits
    least_tasks: int | None
    most_records: int | None
    fail_on_data_loss: bool
    properties: PropertiesForm
    decompress: bool
    group: str
    commits: bool
    transport: Transport


def read_settings(given: Mapping[str, str], *, streaming: bool) -> TopicSettings:
    """Raises OptionError with the option, its fault, and what would be right."""
    options = Options(given, OPTIONS, FORMAT)
    for name in _BATCH_ONLY if streaming else _STREAM_ONLY:
        if options.has(name):
            raise options.error(name, f"is for {'spark.read' if streaming else 'spark.readStream'} only; leave it out")
    cluster = cluster_of(options)
    group = cluster.full(options.text("consumerGroup", ""))
    return TopicSettings(
        cluster=cluster,
        subscribed=_subscribed(options, cluster),
        wanted=_wanted(options),
        start=starting(options, streaming=streaming).renamed(cluster.full),
        end=ending(options).renamed(cluster.full),
        initial_offsets=options.text("initialOffsetsLocation", ""),
        limits=_limits(options),
        least_tasks=options.whole("minPartitions", None, least=1),
        most_records=options.whole("maxRecordsPerPartition", None, least=1),
        fail_on_data_loss=options.flag("failOnDataLoss", True),
        properties=properties_form(options),
        decompress=options.flag("decompress", True),
        group=group,
        commits=bool(group) and options.flag("commitOffsets", True),
        transport=_transport(options),
    )


def properties_form(options: Options) -> PropertiesForm:
    """What becomes of the properties; `includeProperties` is the short way to say map or none."""
    if options.has("includeProperties") and options.has("properties"):
        raise options.error("includeProperties", 'says the same as "properties": give one of them')
    default = "map" if options.flag("includeProperties", True) else "none"
    return cast(PropertiesForm, options.choice("properties", PROPERTIES_FORMS, default))


def _subscribed(options: Options, cluster: Cluster) -> Subscribed:
    name = options.one_of("subscribe", "subscribePattern", "assign")
    if name == "subscribe":
        return Subscribed(topics=tuple(dict.fromkeys(map(cluster.full, options.words(name)))))
    if name == "assign":
        try:
            queues = assigned_queues(options.json_object(name))
        except BadOffsets as error:
            raise options.error(name, f"is wrong: {error}") from None
        if not queues:
            raise options.error(name, "names no queue")
        return Subscribed(queues=tuple(queue._replace(topic=cluster.full(queue.topic)) for queue in queues))
    pattern = options.text(name, "")
    try:
        re.compile(pattern)
    except re.error as error:
        raise options.error(name, f'is "{pattern}", which is not a regular expression: {error}') from None
    return Subscribed(pattern=pattern)


def _wanted(options: Options) -> Wanted:
    if options.has("tags") and options.has("sqlFilter"):
        step = "keep one of them, or compare TAGS in the condition: TAGS = 'paid' AND price > 10"
        raise options.error("tags", f'and option "sqlFilter" exclude each other; {step}')
    keys = options.words("keys")
    if options.has("sqlFilter"):
        condition = options.text("sqlFilter", "")
        try:
            compile_filter(condition)  # brokers take a condition that they do not understand for none
        except SqlError as error:
            problem = (
                f'is "{condition}", which is not an SQL92 condition: {str(error).splitlines()[0]}; {_CONDITION_STEP}'
            )
            raise options.error("sqlFilter", problem) from None
        return Wanted(condition, "SQL92", (), keys)
    text = options.text("tags", "*").replace(",", "||")
    try:
        subscription = subscription_of("", text, 0)
    except SkyrocketError as error:
        raise options.error("tags", f'is "{options.text("tags", "")}", which names no tag; {_TAGS_STEP}') from error
    return Wanted("||".join(subscription.tags) or "*", "TAG", tuple(subscription.tags), keys)


def _limits(options: Options) -> Limits:
    most = options.whole("maxOffsetsPerTrigger", None, least=1)
    least = options.whole("minOffsetsPerTrigger", None, least=1)
    if most is not None and least is not None and least > most:
        raise options.error("minOffsetsPerTrigger", f"is {least}, which is more than maxOffsetsPerTrigger, {most}")
    return Limits(
        most, least, options.duration_ms("maxTriggerDelay", 900_000), options.size_bytes("maxBytesPerTrigger", None)
    )


def _transport(options: Options) -> Transport:
    usual = Transport()
    return Transport(
        options.whole("pullBatchSize", usual.batch_size, least=1),
        options.whole("pullThreads", usual.in_flight, least=1),
        options.duration_ms("pullTimeoutMs", usual.timeout_ms),
        options.duration_ms("brokerAbsenceMs", usual.absence_ms),
        options.duration_ms("pollTimeoutMs", usual.poll_ms),
        options.whole("fetchOffset.numRetries", usual.retries),
        options.duration_ms("fetchOffset.retryIntervalMs", usual.retry_interval_ms),
        options.duration_ms("metadataTtlMs", usual.metadata_ttl_ms),
    )
