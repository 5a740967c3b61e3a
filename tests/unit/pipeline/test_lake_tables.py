"""The lake's Parquet files: joined when small, and listed as a Delta or an Iceberg table."""

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from skyrocket.columns.schema import arrow_schema
from skyrocket.errors import DataError
from skyrocket.pipeline.lake import Change, Lake, LakeFile, lake_writer
from skyrocket.pipeline.lake.compaction import files_to_join, joined
from skyrocket.pipeline.lake.mirrors import ICEBERG_TABLE, iceberg_catalog, mirror_to_delta, mirror_to_iceberg
from skyrocket.pipeline.lake.parquet_files import file_path, parquet_writer

SCHEMA = arrow_schema(["topic", "queueOffset", "commitLogOffset", "body", "properties", "storeTimestamp"])
RETRY = "%RETRY%orders group"


def staged_file(staging: Path, topic: str, begin: int, rows: int = 3) -> LakeFile:
    """A small file of messages whose offsets count up from `begin`."""
    path = file_path(topic, "2026-11-16", "broker-a", begin, begin + rows - 1)
    (staging / path).parent.mkdir(parents=True, exist_ok=True)
    offsets = list(range(begin, begin + rows))
    bodies = [f"body {each}".encode() for each in offsets]
    columns = [[topic] * rows, offsets, offsets, bodies, [[("TAGS", "a")]] * rows, [1_700_000_000_000_000] * rows]
    with parquet_writer(staging / path, SCHEMA) as writer:
        writer.write_batch(
            pa.record_batch(
                [pa.array(each, kind.type) for each, kind in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
            )
        )
    size = (staging / path).stat().st_size
    return LakeFile(path, topic, "2026-11-16", "broker-a", rows, size, begin, begin + rows - 1, 1, 2)


def archive(lake: Lake, topic: str, begin: int) -> LakeFile:
    with lake_writer(lake, "broker-a") as books:
        new = staged_file(lake.root / books.staging, topic, begin)
        books.publish(Change("archive", "broker-a", begin, begin + 3, added=(new,)))
    return new


def compact(lake: Lake) -> None:
    with lake_writer(lake, "compaction") as books:
        for files in files_to_join(lake.state().files.values(), 1 << 20):
            new = joined(lake.files, books.staging, files)
            books.publish(Change("compact", "broker-a", added=(new,), removed=tuple(each.path for each in files)))


def a_file(begin: int, size: int, topic: str = "Orders", date: str = "2026-11-16", broker: str = "a") -> LakeFile:
    return LakeFile(f"{topic}{date}{broker}{begin}", topic, date, broker, 1, size, begin, begin, 1, 2)


def test_neighbours_of_one_topic_day_and_broker_are_joined_up_to_the_wished_size() -> None:
    small = [a_file(0, 40), a_file(1, 40), a_file(2, 40), a_file(3, 90), a_file(4, 5), a_file(5, 100), a_file(6, 1)]
    others = [a_file(7, 1, topic="Payments"), a_file(8, 1, date="2026-11-17"), a_file(9, 1, broker="b")]
    groups = files_to_join([*others, *reversed(small)], 100)
    assert [[each.first_offset for each in group] for group in groups] == [[0, 1], [3, 4]]
    assert files_to_join([], 100) == []


def test_joined_files_hold_the_same_rows_in_the_same_order(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for begin in (0, 3, 6):
        archive(lake, RETRY, begin)
    compact(lake)
    (only,) = lake.state().files.values()
    assert (only.rows, only.first_offset, only.last_offset) == (9, 0, 8)
    assert [str(each.relative_to(tmp_path)) for each in tmp_path.glob("topic=*/dt=*/*")] == [only.path]
    table = pq.read_table(tmp_path / only.path, partitioning=None)
    assert table["queueOffset"].to_pylist() == list(range(9))
    assert table["properties"].to_pylist() == [[("TAGS", "a")]] * 9
    assert table.schema.equals(SCHEMA)
    read_back = ds.dataset(tmp_path / "topic=%25RETRY%25orders group", partitioning=None).to_table()
    assert read_back["topic"].unique().to_pylist() == [RETRY]


def test_a_file_with_other_rows_than_its_books_say_is_not_joined(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    first, second = archive(lake, "Orders", 0), archive(lake, "Orders", 3)
    staged_file(tmp_path, "Orders", 3, rows=2)
    (tmp_path / second.path).write_bytes((tmp_path / file_path("Orders", "2026-11-16", "broker-a", 3, 4)).read_bytes())
    with pytest.raises(DataError, match="hold 5 rows, the lake's books say 6"):
        joined(lake.files, "_staging", [first, second])


def test_a_delta_table_lists_exactly_the_files_of_the_lake(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    lake = Lake(tmp_path)
    assert mirror_to_delta(lake) == (0, 0)
    archive(lake, RETRY, 0)
    archive(lake, "Orders", 3)
    assert mirror_to_delta(lake) == (2, 0)
    assert mirror_to_delta(lake) == (0, 0)
    archive(lake, "Orders", 6)
    compact(lake)
    assert mirror_to_delta(lake) == (1, 1)
    table = DeltaTable(str(tmp_path)).to_pyarrow_table()
    assert sorted(zip(table["topic"].to_pylist(), table["queueOffset"].to_pylist(), strict=True)) == [
        *((RETRY, each) for each in (0, 1, 2)),
        *(("Orders", each) for each in (3, 4, 5, 6, 7, 8)),
    ]
    assert table["dt"].unique().to_pylist() == ["2026-11-16"]
    assert DeltaTable(str(tmp_path)).version() == 1


def test_an_iceberg_table_lists_exactly_the_files_of_the_lake(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert mirror_to_iceberg(lake) == (0, 0)
    archive(lake, RETRY, 0)
    archive(lake, "Orders", 3)
    assert mirror_to_iceberg(lake) == (2, 0)
    assert mirror_to_iceberg(lake) == (0, 0)
    archive(lake, "Orders", 6)
    compact(lake)
    assert mirror_to_iceberg(lake) == (1, 1)
    table = iceberg_catalog(lake).load_table(ICEBERG_TABLE).scan().to_arrow()
    assert sorted(zip(table["topic"].to_pylist(), table["queueOffset"].to_pylist(), strict=True)) == [
        *((RETRY, each) for each in (0, 1, 2)),
        *(("Orders", each) for each in (3, 4, 5, 6, 7, 8)),
    ]
