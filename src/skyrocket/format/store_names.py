"""Names of directories and files in a store, as RocketMQ has them."""

from functools import lru_cache

COMMIT_LOG = "commitlog"
QUEUES = "consumequeue"
BATCH_QUEUES = "batchconsumequeue"
QUEUE_EXTENSIONS = "consumequeue_ext"
INDEX = "index"
CONFIG = "config"
ABORT = "abort"
CHECKPOINT = "checkpoint"
LOCK = "lock"
TIMER_LOG = "timerlog"
TIMER_WHEEL = "timerwheel"
TIMER_CHECKPOINT = "timercheck"  # in `config`
EPOCHS = "epochFileCheckpoint"  # of a broker whose role a controller decides
IDENTITY = "brokerIdentity"
MANIFEST = "skyrocket.manifest"  # ours; RocketMQ leaves it alone
CUT_LOG = "skyrocket.cut"  # ours: what recovery cut off the log
CONVERTED = "skyrocket.converted"  # ours: RocksDB directories after a conversion
REPAIRED = "skyrocket.repaired"  # ours: what a repair replaced

NAME_DIGITS = 20
_MOST_NAME_BYTES = 255  # of a directory, on all usual file systems
_SHORT = _MOST_NAME_BYTES // 4  # signs, which UTF-8 writes with four bytes at most


def offset_name(offset: int) -> str:
    """The name of a file that begins at an offset."""
    return f"{offset:0{NAME_DIGITS}d}"


def parse_offset_name(name: str) -> int | None:
    """The offset that a file name means; None for any other name."""
    return int(name) if len(name) == NAME_DIGITS and name.isascii() and name.isdigit() else None


@lru_cache(4096)
def topic_damage(topic: bytes) -> str:
    """What is wrong with the topic of a record; nothing where it can have a directory of its own."""
    return "" if is_directory_name(topic.decode("utf-8", "replace")) else f"a topic {topic!r}"


def is_directory_name(name: str) -> bool:
    """Whether a topic can have a directory of its own; a damaged name must not lead out of the store."""
    return (
        name not in ("", ".", "..")
        and "/" not in name
        and "\0" not in name
        and (len(name) <= _SHORT or len(name.encode("utf-8", "replace")) <= _MOST_NAME_BYTES)
    )
