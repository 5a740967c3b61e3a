"""How much is measured: a full run, or a quick one that only shows that everything works."""

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of one run."""

    name: str
    rounds: int  # how often floor and subject take turns
    append_messages: int  # per round
    many_queues: int
    many_queue_messages: int  # per round
    read_log_bytes: int  # of the log that is read in slices
    random_messages: int  # 4 KiB each
    random_reads: int  # per round
    query_messages: int
    queries: int  # per round
    commit_rounds: int
    commit_seconds: float  # of group commit and of one fsync per message, per round
    recovery_log_bytes: int
    recovery_rounds: int
    idle_queues: int
    warm_bytes: int  # memory that is touched before anything is measured


FULL = Scale(
    name="full",
    rounds=25,
    append_messages=8_000,
    many_queues=10_000,
    many_queue_messages=20_000,
    read_log_bytes=64 * MIB,
    random_messages=16_384,
    random_reads=20_000,
    query_messages=200_000,
    queries=2_000,
    commit_rounds=7,
    commit_seconds=1.0,
    recovery_log_bytes=1024 * MIB,
    recovery_rounds=5,
    idle_queues=10_000,
    warm_bytes=2048 * MIB,
)

QUICK = Scale(
    name="quick",
    rounds=2,
    append_messages=4_000,
    many_queues=1_000,
    many_queue_messages=4_000,
    read_log_bytes=8 * MIB,
    random_messages=1_024,
    random_reads=2_000,
    query_messages=10_000,
    queries=200,
    commit_rounds=1,
    commit_seconds=0.5,
    recovery_log_bytes=64 * MIB,
    recovery_rounds=1,
    idle_queues=1_000,
    warm_bytes=64 * MIB,
)
