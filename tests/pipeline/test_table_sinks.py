"""Delta and Iceberg tables as sinks of pipeline files: every row once, also when a batch comes again."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from skyrocket.pipeline.declared import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(600)

SINKS = {"delta": "{format: delta, path: table}", "iceberg": "{format: iceberg, path: table, table: shop.numbers}"}


def delta_rows(home: Path) -> pa.Table:
    from deltalake import DeltaTable

    return DeltaTable(str(home / "table")).to_pyarrow_table()


def iceberg_rows(home: Path) -> pa.Table:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("skyrocket", uri=f"sqlite:///{home}/table/catalog.db")
    return catalog.load_table("shop.numbers").scan().to_arrow()


READ: dict[str, Callable[[Path], pa.Table]] = {"delta": delta_rows, "iceberg": iceberg_rows}
BOTH = pytest.mark.parametrize("kind", ["delta", pytest.param("iceberg", marks=pytest.mark.slow)])


def pipeline_file(home: Path, sink: str, source: str = "{format: parquet, path: in}") -> Path:
    file = home / "p.yml"
    file.write_text(f"name: x\nsource: {source}\nsink: {sink}\nrestart: {{attempts: 0}}\ntrigger: availableNow\n")
    return file


def run(file: Path) -> None:
    from skyrocket.pipeline.declared.frames import prepared
    from skyrocket.pipeline.declared.runner import Runner

    located = load(file)
    with prepared(located, "", "local[2]", {}) as outputs:
        Runner(located.pipeline, outputs, "", once=True).run()


def add_input(spark: "SparkSession", home: Path, first: int, last: int) -> None:
    numbers = spark.range(first, last, 1, 2).selectExpr(
        "id", "concat('n', id) AS name", "cast(id % 2 AS string) AS half", "timestamp_seconds(id) AS at"
    )
    numbers.write.mode("append").parquet(str(home / "in"))


def forget_the_last_batch(home: Path) -> None:
    """As a driver that died after the table's commit and before Spark's: the batch is planned, and not done."""
    commits = next((home / "checkpoints" / "x").glob("*/commits"))
    last = max(commits.glob("[0-9]*"), key=lambda each: int(each.name))
    last.unlink()
    (commits / f".{last.name}.crc").unlink(missing_ok=True)


@BOTH
def test_a_batch_that_comes_again_adds_no_rows(spark: "SparkSession", tmp_path: Path, kind: str) -> None:
    file = pipeline_file(tmp_path, SINKS[kind])
    add_input(spark, tmp_path, 0, 10)
    run(file)
    forget_the_last_batch(tmp_path)
    run(file)
    assert sorted(READ[kind](tmp_path)["id"].to_pylist()) == list(range(10))
    add_input(spark, tmp_path, 10, 15)
    run(file)
    found = READ[kind](tmp_path)
    assert sorted(found["id"].to_pylist()) == list(range(15))
    assert found.schema.field("at").type == pa.timestamp("us", tz="UTC")


@BOTH
@pytest.mark.slow
def test_a_new_checkpoint_begins_anew(spark: "SparkSession", tmp_path: Path, kind: str) -> None:
    """Its batches have the numbers of others that are in the table, and are not mistaken for them."""
    file = pipeline_file(tmp_path, SINKS[kind])
    add_input(spark, tmp_path, 0, 3)
    run(file)
    shutil.rmtree(tmp_path / "checkpoints")
    run(file)
    assert sorted(READ[kind](tmp_path)["id"].to_pylist()) == [0, 0, 1, 1, 2, 2]


@BOTH
@pytest.mark.slow
def test_a_commit_that_fails_leaves_the_table_as_it_was(
    spark: "SparkSession", tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skyrocket.pipeline.declared.runner import PipelineFailed
    from skyrocket.pipeline.table_sink.delta import DeltaSink
    from skyrocket.pipeline.table_sink.iceberg import IcebergSink

    def no_disk(*_: Any) -> None:
        raise OSError("no space left on device")

    file = pipeline_file(tmp_path, SINKS[kind])
    add_input(spark, tmp_path, 0, 3)
    run(file)
    add_input(spark, tmp_path, 3, 6)
    with monkeypatch.context() as patched:
        patched.setattr(DeltaSink if kind == "delta" else IcebergSink, "add", no_disk)
        with pytest.raises(PipelineFailed, match="no space left on device"):
            run(file)
    assert sorted(READ[kind](tmp_path)["id"].to_pylist()) == [0, 1, 2]
    run(file)
    assert sorted(READ[kind](tmp_path)["id"].to_pylist()) == [0, 1, 2, 3, 4, 5]


@pytest.mark.slow
def test_a_delta_table_is_partitioned_as_the_file_says(spark: "SparkSession", tmp_path: Path) -> None:
    from deltalake import DeltaTable

    rows = [(1, "a b/ä%"), (2, "c=d"), (3, None)]
    spark.createDataFrame(rows, "id bigint, part string").write.parquet(str(tmp_path / "in"))
    run(pipeline_file(tmp_path, "{format: delta, path: my täble, partitionBy: part}"))
    table = DeltaTable(str(tmp_path / "my täble"))
    assert table.metadata().partition_columns == ["part"]
    found = table.to_pyarrow_table()
    assert sorted(zip(found["id"].to_pylist(), found["part"].to_pylist(), strict=True)) == rows


@pytest.mark.parametrize(
    "columns",
    [["text"], pytest.param(["day", "at", "text", "count", "price", "yes", "a.b"], marks=pytest.mark.slow)],
    ids=["one", "every-type"],
)
def test_an_iceberg_table_is_partitioned_as_the_file_says(
    spark: "SparkSession", tmp_path: Path, columns: list[str]
) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    spark.sql(
        """SELECT id, element_at(array('a b/ä%', 'c=d', '', NULL, 'more than sixteen signs'), cast(id % 5 AS int) + 1)
        AS text, date_add(DATE'2026-11-17', cast(id % 2 AS int)) AS day, timestamp_micros(id % 3) AS at,
        id % 2 AS count, cast(id % 2 + 0.25 AS decimal(9, 2)) AS price, id % 2 = 0 AS yes, id % 2 AS `a.b`
        FROM range(0, 30, 1, 2)"""
    ).write.parquet(str(tmp_path / "in"))
    expected = sorted(tuple(row.values()) for row in spark_rows(spark, tmp_path))
    file = pipeline_file(tmp_path, f"{{format: iceberg, path: my täble, table: shop.numbers, partitionBy: {columns}}}")
    run(file)
    run(file)
    table = SqlCatalog("skyrocket", uri=f"sqlite:///{tmp_path}/my täble/catalog.db").load_table("shop.numbers")
    assert [each.name for each in table.spec().fields] == columns
    assert sorted(tuple(row.values()) for row in keyed(table.scan().to_arrow())) == expected
    found = table.scan("text = 'more than sixteen signs'")
    assert sorted(found.to_arrow()["id"].to_pylist()) == list(range(4, 30, 5))
    assert len(list(found.plan_files())) < len(list(table.scan().plan_files()))
    assert table.scan("text = ''").to_arrow().num_rows == table.scan("text is null").to_arrow().num_rows == 6


def spark_rows(spark: "SparkSession", home: Path) -> list[dict[str, Any]]:
    return keyed(spark.read.parquet(str(home / "in")).toArrow())


def keyed(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows that can be sorted: their ids come first, and no two are the same."""
    return [dict(sorted(row.items(), key=lambda item: item[0] != "id")) for row in rows.to_pylist()]


@pytest.mark.slow
def test_an_iceberg_table_with_other_partitions_is_refused(spark: "SparkSession", tmp_path: Path) -> None:
    from skyrocket.pipeline.declared.runner import PipelineFailed

    sink = "{{format: iceberg, path: table, table: shop.numbers, partitionBy: [{}]}}"
    add_input(spark, tmp_path, 0, 4)
    run(pipeline_file(tmp_path, sink.format("half, id")))
    add_input(spark, tmp_path, 4, 6)
    with pytest.raises(
        PipelineFailed, match=r"shop\.numbers is partitioned by half, id; set partitionBy to these columns"
    ):
        run(pipeline_file(tmp_path, sink.format("half")))
    run(pipeline_file(tmp_path, sink.format("half, id")))
    assert sorted(iceberg_rows(tmp_path)["id"].to_pylist()) == list(range(6))


@BOTH
@pytest.mark.slow
def test_rows_with_other_columns_than_the_table_are_refused(spark: "SparkSession", tmp_path: Path, kind: str) -> None:
    from skyrocket.pipeline.declared.runner import PipelineFailed

    add_input(spark, tmp_path, 0, 3)
    run(pipeline_file(tmp_path, SINKS[kind]))
    spark.range(3).selectExpr("id AS other").write.parquet(str(tmp_path / "in2"))
    shutil.rmtree(tmp_path / "checkpoints")
    with pytest.raises(PipelineFailed, match=r"has other columns than the rows: .*other"):
        run(pipeline_file(tmp_path, SINKS[kind], "{format: parquet, path: in2}"))
    assert sorted(READ[kind](tmp_path)["id"].to_pylist()) == [0, 1, 2]


@BOTH
@pytest.mark.slow
def test_a_table_with_an_end_is_written_once(spark: "SparkSession", tmp_path: Path, kind: str) -> None:
    add_input(spark, tmp_path, 0, 5)
    run(pipeline_file(tmp_path, SINKS[kind], "{format: parquet, path: in, static: true}"))
    assert sorted(READ[kind](tmp_path)["id"].to_pylist()) == [0, 1, 2, 3, 4]
