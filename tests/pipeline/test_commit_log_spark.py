"""format("rocketmq-commitlog") in Spark: found by itself, parallel splits, pruned columns, damage beside the rows."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from tests.golden_store import GoldenStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT = "rocketmq-commitlog"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return GoldenStore("5.4.0", "timer-roll").extract(tmp_path / "store")


def test_a_store_is_a_table(spark: "SparkSession", store: Path) -> None:
    lines = [line for line in GoldenStore("5.4.0", "timer-roll").messages() if line["kind"] == "message"]
    frame = spark.read.format(FORMAT).option("splitBytes", "20k").option("brokerName", "a").load(str(store))
    assert frame.rdd.getNumPartitions() > 5
    rows = sorted(frame.collect(), key=lambda row: row.commitLogOffset)
    assert [(row.commitLogOffset, row.topic, row.queueId, row.queueOffset) for row in rows] == [
        (line["physicalOffset"], line["topic"], line["queueId"], line["queueOffset"]) for line in lines
    ]
    assert {row.brokerName for row in rows} == {"a"}
    assert [row.properties.get("KEYS") for row in rows] == [line["keys"] for line in lines]
    assert [row.keys for row in rows] == [line["keys"] for line in lines]


def test_a_schema_with_fewer_columns_is_honoured(spark: "SparkSession", store: Path) -> None:
    frame = spark.read.format(FORMAT).schema("queueOffset bigint, topic string").load(str(store))
    assert frame.columns == ["queueOffset", "topic"]
    counts = {row.topic: row["count"] for row in frame.groupBy("topic").count().collect()}
    assert sum(counts.values()) == frame.count() == 235
    with pytest.raises(PySparkException, match="'topic' is of type string"):
        spark.read.format(FORMAT).schema("topic int").load(str(store)).count()


def test_damage_fails_the_query_or_becomes_rows(spark: "SparkSession", store: Path, tmp_path: Path) -> None:
    (path,) = (store / "commitlog").iterdir()
    log = bytearray(path.read_bytes())
    size = int.from_bytes(log[:4], "big")
    log[4:8] = bytes(4)
    path.write_bytes(log)
    with pytest.raises(PySparkException, match=r"unknown magic 00000000.*onDamage"):
        spark.read.format(FORMAT).load(str(store)).count()
    (row,) = spark.read.format(FORMAT).option("view", "damage").load(str(store)).collect()
    assert (row.file, row.position, row.length, row.physicalOffset) == (path.name, 0, size, 0)
    reader = spark.read.format(FORMAT).option("onDamage", "report").option("damageLocation", str(tmp_path / "aside"))
    assert reader.load(str(store)).count() == 234
    assert spark.read.parquet(str(tmp_path / "aside")).collect() == [row]


def test_a_misspelt_option_is_named(spark: "SparkSession", store: Path) -> None:
    with pytest.raises(PySparkException, match='did you mean "splitBytes"'):
        spark.read.format(FORMAT).option("splitByte", "1m").load(str(store))
