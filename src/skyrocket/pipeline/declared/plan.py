"""A pipeline as data: sources ▸ steps ▸ sinks. YAML files are read into these; Python files build them themselves.

pipeline = Pipeline(
    name="paid-orders",
    sources={"orders": Source(options={"subscribe": "order"}, decode=Decode(schema="id string, amount double"))},
    steps=[Step("paid", sql="SELECT id, amount FROM orders WHERE amount > 0")],
    sinks=[Sink("order_paid", options={"topic": "order_paid"}, message={"keys": "id"})],
)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

ROCKETMQ: Final = "rocketmq"
COMMIT_LOG: Final = "rocketmq-commitlog"
FILE_FORMATS: Final = ("parquet", "json", "csv", "orc")
SOURCE_FORMATS: Final = (ROCKETMQ, COMMIT_LOG, *FILE_FORMATS, "rate")
TABLE_FORMATS: Final = ("delta", "iceberg")
"""Each is an extra of its own: `pip install 'skyrocket[delta]'`."""
SINK_FORMATS: Final = (ROCKETMQ, *FILE_FORMATS, *TABLE_FORMATS, "console", "jdbc", "memory")
DECODINGS: Final = ("json", "avro", "protobuf", "text", "binary")
OUTPUT_MODES: Final = ("append", "update", "complete")
MESSAGE_COLUMNS: Final = tuple(
    """body keys tags properties shardingKey queueId delayLevel deliverTimestamp messageId""".split()
)
"""What a sink of messages can be given; each is an SQL expression over the columns of what it writes."""
INPUT: Final = "input"
"""The name, in a step's SQL, of what stands before it."""
DURATION: Final = "duration"
"""The kind of a text that is a length of time, as "10 minutes"."""

# What `reading` needs to know of a field is its metadata: `key` if the file calls it otherwise, `choices`, `kind`, and
# `missing`, the next step when a file has to have it.


@dataclass(frozen=True)
class Decode:
    """How bodies become columns; the message's other columns are then fields of the column `message`."""

    format: str = field(default="json", metadata={"choices": DECODINGS})
    schema: str | None = None  # of json: DDL, as "id string, amount decimal(18,2)"; of avro: its JSON
    schema_file: str | None = None  # avro: .avsc; protobuf: descriptors, by protoc --descriptor_set_out; json: a Schema
    registry: str | None = None  # with the subject whose newest schema the columns have
    subject: str | None = None
    message: str | None = None  # of protobuf, as shop.Order


@dataclass(frozen=True)
class Watermark:
    """How late an event may come."""

    column: str = field(metadata={"missing": "name the column with the time of the event"})
    delay: str = field(metadata={"kind": DURATION, "missing": "say how late an event may come, as `delay: 10 minutes`"})


@dataclass(frozen=True, kw_only=True)
class Source:
    """Something that rows come from: a Spark format and its options."""

    format: str = field(default=ROCKETMQ, metadata={"choices": SOURCE_FORMATS})
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None  # of files; read from the first of them when missing
    columns: Sequence[str] = ()  # of messages: only these are read; all when empty
    decode: Decode | None = None
    watermark: Watermark | None = None
    static: bool = False  # read once, at the start: a table to join with, as customers or prices

    @property
    def is_stream(self) -> bool:
        """Whether it is followed; store files are not, they are read as they are."""
        return not self.static and self.format != COMMIT_LOG


@dataclass(frozen=True)
class Dedupe:
    """Of rows with the same keys within the watermark's delay only the first goes on."""

    keys: Sequence[str] = field(metadata={"missing": "name the columns that are the same in a repetition"})
    watermark: Watermark = field(
        metadata={"missing": "without it all keys are remembered for ever; add `watermark: …`"}
    )


@dataclass(frozen=True)
class Step:
    """A named result: SQL over sources and former steps, or one of them without its repetitions."""

    name: str
    sql: str | None = None
    dedupe: Dedupe | None = None
    source: str | None = field(default=None, metadata={"key": "from"})  # of dedupe; what stands before it when missing
    watermark: Watermark | None = None


@dataclass(frozen=True)
class Sink:
    """Where rows go; `source` is what is written, the last step when missing."""

    name: str
    format: str = ROCKETMQ
    source: str | None = field(default=None, metadata={"key": "from"})
    options: Mapping[str, str] = field(default_factory=dict)
    message: Mapping[str, str] = field(default_factory=dict)  # of topics: MESSAGE_COLUMNS ▸ SQL expression
    partition_by: Sequence[str] = ()  # of files and tables
    output_mode: str = field(default="append", metadata={"choices": OUTPUT_MODES})


@dataclass(frozen=True)
class Trigger:
    """When the next batch begins: after this many seconds; None: once, with all that is there now."""

    seconds: float | None = 1.0


class Malformed(StrEnum):
    """What happens to a body that cannot be decoded."""

    COUNT = "count"  # it is left out, and counted
    DLQ = "dlq"  # it goes to a topic as it came
    FAIL = "fail"  # the pipeline stops before it


@dataclass(frozen=True)
class OnError:
    malformed: Malformed = Malformed.COUNT
    topic: str | None = None


@dataclass(frozen=True)
class Restart:
    """How often a sink that fails is started again without a batch in between, and after which wait (it doubles)."""

    attempts: int = 5
    first_seconds: float = field(default=1.0, metadata={"key": "wait"})
    longest_seconds: float = field(default=60.0, metadata={"key": "longestWait"})


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    name: str = field(metadata={"missing": "add `name: …`: checkpoints and the consumer group are called by it"})
    sources: Mapping[str, Source]
    sinks: Sequence[Sink]
    steps: Sequence[Step] = ()
    on_error: OnError = OnError()
    trigger: Trigger = Trigger()
    limits: Mapping[str, str] = field(default_factory=dict)  # options of every topic source
    restart: Restart = Restart()
    namesrv: str | None = field(default=None, metadata={"key": "namesrvAddr"})  # NAMESRV_ADDR when missing
    checkpoint: str | None = None  # a directory that outlives the pipeline; checkpoints/NAME when missing
    create_topics: bool = False  # topics of sinks that do not exist
    conf: Mapping[str, str] = field(default_factory=dict)  # of the Spark session

    def results(self) -> list[str]:
        """Names that a sink can write, in the order in which they come about."""
        return [*self.sources, *(step.name for step in self.steps)]

    def written_by(self, sink: Sink) -> str:
        """What the sink writes."""
        return sink.source or self.results()[-1]

    @property
    def is_stream(self) -> bool:
        """Whether it goes on when it has read what there is; else it is one batch, written once."""
        return any(source.is_stream for source in self.sources.values())

    def malformed_sources(self) -> list[str]:
        """Those whose malformed bodies go to a topic."""
        if self.on_error.malformed is not Malformed.DLQ:
            return []
        return [
            name
            for name, source in self.sources.items()
            if source.decode is not None and source.decode.format != "binary" and source.is_stream == self.is_stream
        ]

    @property
    def checkpoint_directory(self) -> str:
        return self.checkpoint or f"checkpoints/{self.name}"
