"""A log of millions of messages over a thousand queues, rebuilt in Spark and checked entry by entry."""

import filecmp
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from bench.pipeline.logs import LogShape, write_log

from skyrocket.config.sections import StoreConfig
from skyrocket.format.index_layout import decode_header
from skyrocket.format.java_hash import java_hash
from skyrocket.format.properties import encode_properties
from skyrocket.format.queue_entry import ENTRY_DTYPE, ENTRY_SIZE
from skyrocket.pipeline.jobs import rebuild
from skyrocket.pipeline.rebuild.rules import RebuildRules
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFIG = StoreConfig(
    commit_log_file_size=4 << 20, consume_queue_file_size=60_000, index_slots=500_000, index_entries=2_000_000
)
LIKE_CONFIG = RebuildRules(consume_queue_file_size=60_000, index_slots=500_000, index_entries=2_000_000)
RULES = RebuildRules(index_slots=500_000, index_entries=6_000_000)


def check_queues(directory: Path, shape: LogShape, record_size: int) -> None:
    """Every entry is where arithmetic says that it must be."""
    per_file = (shape.file_size - 8) // record_size
    codes = np.array([java_hash(chr(65 + number) + "ggg") for number in range(5)])
    for queue in range(shape.queues):
        topic, queue_id = f"topic-{queue % shape.topics:04X}", queue // shape.topics
        (path,) = (directory / topic / str(queue_id)).iterdir()
        numbers = np.arange(queue, shape.messages, shape.queues)
        assert path.stat().st_size == 300_000 * ENTRY_SIZE
        table = np.fromfile(path, dtype=ENTRY_DTYPE, count=len(numbers) + 100)
        assert not table[len(numbers) :].tobytes().strip(b"\0")
        places = numbers // per_file * shape.file_size + numbers % per_file * record_size
        assert (table["physical_offset"][: len(numbers)] == places).all(), (topic, queue_id)
        assert (table["size"][: len(numbers)] == record_size).all()
        assert (table["tags_code"][: len(numbers)] == codes[numbers % 5]).all()


def rebuild_and_check(spark: "SparkSession", directory: Path, shape: LogShape) -> None:
    log_bytes = write_log(directory / "store", shape)
    report = rebuild.run(spark, directory / "store", rules=RULES, split_bytes=64 << 20)
    assert report.findings == 0
    check_queues(directory / "store" / "consumequeue", shape, log_bytes // shape.messages)
    files = sorted((directory / "store" / "index").iterdir())
    headers = [decode_header(path.read_bytes()[:40]) for path in files]
    assert sum(header.next_number - 1 for header in headers) == 3 * shape.messages
    assert all(header.next_number == RULES.index_entries for header in headers[:-1])


def test_a_hundred_queues_over_several_files_and_splits(spark: "SparkSession", tmp_path: Path) -> None:
    rebuild_and_check(spark, tmp_path, LogShape(30_000, 40, topics=10, queues_per_topic=10, file_size=2 << 20))


def fill_broker_store(store: Path, messages: int, queues: int, config: StoreConfig = CONFIG) -> None:
    """What a broker's store writes: log, queues and index, closed cleanly."""
    with MessageStore(store, config) as ours:
        for first in range(0, messages, 500):
            ours.intake.put_group(
                [
                    PutMessage(
                        f"topic-{number % queues // 10:03d}",
                        number % 10,
                        b"x" * 100,
                        encode_properties(
                            {"UNIQ_KEY": f"{number:032X}", "KEYS": f"k{number}", "TAGS": f"T{number % 5}"}
                        ),
                    )
                    for number in range(first, min(first + 500, messages))
                ]
            )


def assert_same_files(ours: Path, theirs: Path) -> int:
    """Compared one by one, as they are large; index files are named by the time of their making."""
    pairs = []
    for name in ("consumequeue", "index"):
        mine, other = (sorted(path for path in (each / name).rglob("*") if path.is_file()) for each in (ours, theirs))
        if name == "consumequeue":
            assert [path.relative_to(ours) for path in mine] == [path.relative_to(theirs) for path in other]
        pairs += list(zip(mine, other, strict=True))
    for one, another in pairs:
        assert filecmp.cmp(one, another, shallow=False), f"{one} differs from {another}"
    return len(pairs)


def test_a_brokers_own_files_are_built_again_byte_for_byte(spark: "SparkSession", tmp_path: Path) -> None:
    fill_broker_store(tmp_path / "store", 20_000, 100)
    report = rebuild.run(spark, tmp_path / "store", target=tmp_path / "new", rules=LIKE_CONFIG, split_bytes=1 << 20)
    assert report.findings == 0
    assert assert_same_files(tmp_path / "store", tmp_path / "new") > 100


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_million_messages_of_a_broker_in_a_thousand_queues_are_built_again_byte_for_byte(
    spark: "SparkSession", tmp_path: Path
) -> None:
    fill_broker_store(tmp_path / "store", 5_000_000, 1000, replace(CONFIG, commit_log_file_size=1 << 30))
    report = rebuild.run(spark, tmp_path / "store", target=tmp_path / "new", rules=LIKE_CONFIG, split_bytes=64 << 20)
    assert report.findings == 0
    assert assert_same_files(tmp_path / "store", tmp_path / "new") > 1000


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_million_messages_in_a_thousand_queues(spark: "SparkSession", tmp_path: Path) -> None:
    shape = LogShape(5_000_000, 256, topics=100, queues_per_topic=10)
    rebuild_and_check(spark, tmp_path, shape)
