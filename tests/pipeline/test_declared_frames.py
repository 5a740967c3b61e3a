"""What Spark finds wrong before anything starts, and the steps of a pipeline on a few rows."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skyrocket.pipeline.declared import Decode, Dedupe, Malformed, PipelineFileError, Watermark, load
from skyrocket.pipeline.declared.reading import Located, read_yaml
from skyrocket.pipeline.declared.rules import check_rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOBODY = "127.0.0.1:1"
pytestmark = pytest.mark.timeout(600)
ORDERS = """\
sources:
  orders: {subscribe: orders, startingOffsets: earliest, decode: {schema: "id string, amount double, ts timestamp"}}
"""


def located(text: str) -> Located:
    found = read_yaml("p.yml", text, {})
    check_rules(found.pipeline, found.locations)
    return found


def problems(spark: "SparkSession", text: str) -> list[str]:
    from skyrocket.pipeline.declared.frames import outputs

    found = located(text)
    with pytest.raises(PipelineFileError) as caught:
        outputs(spark.newSession(), found.pipeline, found.locations, NOBODY)
    return [str(problem) for problem in caught.value.problems]


def messages(spark: "SparkSession", *bodies: bytes) -> "DataFrame":
    rows = [("orders", number, f"k{number}", body) for number, body in enumerate(bodies)]
    return spark.createDataFrame(rows, "topic string, queueOffset bigint, keys string, body binary")


def rows_of(frame: "DataFrame") -> list[Any]:
    return [tuple(row) for row in frame.collect()]


def test_wrong_sql_is_told_with_the_line_and_column_in_the_file(spark: "SparkSession") -> None:
    """Also when a broker cannot be reached: schemas need none."""
    found = problems(
        spark,
        "name: x\n"
        + ORDERS
        + """\
steps:
  - name: paid
    sql: |
      SELECT id, amount
      FROM orders
      WHERE amout > 0
  - {name: after, sql: SELECT id FROM paid}
  - {sql: SELECT nofunction(id) FROM orders}
  - {sql: SELECT id FROM ordrs}
  - sql: >
      SELECT id
      FROM orders,,
  - {name: counted, sql: "SELECT window(ts, '1 minute') AS minute, count(*) AS n FROM orders GROUP BY 1"}
sinks:
  - {format: console, from: counted}
  - {topic: out, from: orders, keys: idd}
  - {topic: late, from: orders, deliverTimestamp: id}
  - {format: parquet, path: lake, from: orders, partitionBy: [dt]}
  - {format: iceberg, path: ice, table: a.b, from: orders, partitionBy: [id, amount, message]}
""",
    )
    assert [problem.split(": ", 1)[0] for problem in found] == [
        "p.yml:9:13",
        "p.yml:11:18",
        "p.yml:12:26",
        "p.yml:15:19",
        "p.yml:18:5",
        "p.yml:19:38",
        "p.yml:20:5",
        "p.yml:21:49",
        "p.yml:22:60",
        "p.yml:22:60",
    ]
    causes = [problem.split(": ", 1)[1] for problem in found]
    assert causes[0] == "there is no column amout; did you mean amount?"
    assert causes[1].startswith("there is no function nofunction; ")
    assert causes[2] == "there is no source or former step ordrs; did you mean orders?"
    assert causes[3].startswith("syntax error at ','; ")
    assert "aggregations without watermark" in causes[4]
    assert causes[5].startswith("there is no column idd; ")
    assert 'column "deliverTimestamp" is STRING' in causes[6]
    assert causes[7] == "orders has no column dt; it has id, amount, ts, message"
    assert causes[8] == "amount is a double, which parts no Iceberg table; add a column made of amount"
    assert causes[9].startswith("message is a struct, ")


def test_wrong_options_and_schemas_are_told_with_their_line(spark: "SparkSession") -> None:
    found = problems(
        spark,
        """\
name: x
sources:
  a: {subscribe: a, startingOffsets: sometimes}
  b: {subscribe: b, decode: {schema: "id strin"}}
  c: {format: parquet, path: /does/not/exist}
  d: {subscribe: d, columns: [body, kees]}
sinks:
  - {topic: t, from: a, deliveryGuarantee: perhaps}
""",
    )
    assert [problem.split(": ", 1)[0] for problem in found] == ["p.yml:3:38", "p.yml:4:29", "p.yml:5:6", "p.yml:6:6"]
    assert "sometimes" in found[0]
    assert "STRIN" in found[1].upper()
    assert "/does/not/exist" in found[2]
    assert "keys" in found[3]


def test_a_table_that_is_read_once_cannot_be_written_by_a_stream(spark: "SparkSession") -> None:
    text = "name: x\nsources: {a: {format: rate}, b: {subscribe: b, static: true}}\nsink: {format: console, from: b}\n"
    assert problems(spark, text) == [
        "p.yml:3:7: b is read once, not followed, so it cannot be written by a stream; "
        "join it with a stream, or make a pipeline of its own"
    ]


def test_bodies_become_columns_and_the_rest_is_the_column_message(spark: "SparkSession") -> None:
    from skyrocket.pipeline.declared.transforms import malformed_messages, well_formed

    decode = Decode("json", "id string, amount double")
    given = messages(spark, b'{"id":"a","amount":1.5}', b"{not json", b'{"id":"b","amount":"x"}', b"", b'{"id":"c"}')
    good = well_formed(given, decode, "orders", Malformed.COUNT)
    assert good.columns == ["id", "amount", "message"]
    chosen = good.selectExpr("id", "amount", "message.keys", "message.queueOffset")
    assert rows_of(chosen) == [("a", 1.5, "k0", 0), ("c", None, "k4", 4)]
    bad = malformed_messages(given, decode)
    assert [(bytes(row.body), row["keys"], row.properties["ORIGIN_QUEUEOFFSET"]) for row in bad.collect()] == [
        (b"{not json", "k1", "1"),
        (b'{"id":"b","amount":"x"}', "k2", "2"),
        (b"", "k3", "3"),
    ]


def test_a_body_that_is_no_text_is_malformed_text(spark: "SparkSession") -> None:
    from skyrocket.pipeline.declared.transforms import well_formed

    given = messages(spark, "grüß".encode(), b"\xff\xfe")
    assert rows_of(well_formed(given, Decode("text"), "orders", Malformed.COUNT).select("text")) == [("grüß",)]


def test_a_malformed_body_stops_a_pipeline_that_says_so(spark: "SparkSession") -> None:
    from pyspark.errors import PySparkException

    from skyrocket.pipeline.declared.transforms import well_formed

    given = messages(spark, b'{"id":"a"}', b"{not json")
    frame = well_formed(given, Decode("json", "id string"), "orders", Malformed.FAIL)
    with pytest.raises(PySparkException, match=r"source orders: a body cannot be decoded.*topic=orders queueOffset=1"):
        frame.collect()


def test_of_repeated_keys_one_row_goes_on(spark: "SparkSession") -> None:
    from skyrocket.pipeline.declared.transforms import deduplicated

    given = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "id string, n int")
    found = deduplicated(given, Dedupe(["id"], Watermark("ts", "1 hour")))
    assert sorted(row.id for row in found.collect()) == ["a", "b"]


def test_rows_become_messages(spark: "SparkSession") -> None:
    from skyrocket.pipeline.declared.transforms import as_messages

    rows = spark.createDataFrame([("a", 7)], "id string, n int")
    sent = as_messages(rows, {"keys": "n", "tags": "upper(id)"})
    assert [row.asDict() for row in sent.collect()] == [{"keys": "7", "tags": "A", "body": '{"id":"a","n":7}'}]
    passed_on = as_messages(messages(spark, b"x"), {"tags": "'t'"})
    assert [row.asDict() for row in passed_on.collect()] == [{"keys": "k0", "body": bytearray(b"x"), "tags": "t"}]


def test_a_table_is_joined_and_written_once(spark: "SparkSession", tmp_path: Path) -> None:
    """No stream among the sources: one batch, then the end."""
    from skyrocket.pipeline.declared.frames import outputs
    from skyrocket.pipeline.declared.runner import Runner

    spark.createDataFrame([("a", 2), ("b", 3)], "id string, n int").write.parquet(str(tmp_path / "in"))
    found = located(f"""\
name: once
sources:
  given: {{format: parquet, path: {tmp_path / "in"}, static: true}}
  names: {{format: parquet, path: {tmp_path / "in"}, static: true}}
steps:
  - {{name: doubled, sql: "SELECT id, given.n * 2 AS n, 'x' AS dt FROM given JOIN names USING (id)"}}
sinks:
  - {{format: json, path: {tmp_path / "out"}, partitionBy: dt}}
  - {{format: jdbc, url: "jdbc:derby:{tmp_path / "derby"};create=true", table: doubled}}
""")
    made = outputs(spark.newSession(), found.pipeline, found.locations, NOBODY)
    Runner(found.pipeline, made, NOBODY).run()
    assert sorted(map(tuple, spark.read.json(str(tmp_path / "out")).select("id", "n", "dt").collect())) == [
        ("a", 4, "x"),
        ("b", 6, "x"),
    ]
    stored = spark.read.jdbc(f"jdbc:derby:{tmp_path / 'derby'}", "doubled")
    assert sorted(row.n for row in stored.collect()) == [4, 6]


def test_malformed_bodies_go_back_with_the_account_and_encryption_of_their_source(spark: "SparkSession") -> None:
    from skyrocket.pipeline.declared.frames import outputs

    found = located(
        """\
name: x
source: {subscribe: orders, accessKey: shop, secretKey: secret, tls: true, namespace: A, decode: {schema: id string}}
onError: {malformed: dlq, topic: bad}
sink: {format: console}
"""
    )
    bad = outputs(spark.newSession(), found.pipeline, found.locations, NOBODY)[-1].sink
    expected = {"topic": "bad", "accessKey": "shop", "secretKey": "secret", "tls": "true", "namespace": "A"}
    assert (bad.name, bad.options) == ("malformed-source", expected)


def test_avro_bodies_become_columns_and_others_are_kept_apart(spark: "SparkSession", tmp_path: Path) -> None:
    """From a file beside the pipeline's."""
    from skyrocket.pipeline.declared.transforms import malformed_messages, well_formed

    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}
    (tmp_path / "order.avsc").write_text(json.dumps(schema))
    source = "{subscribe: orders, decode: {format: avro, schemaFile: order.avsc}}"
    (tmp_path / "p.yml").write_text(f"name: x\nsource: {source}\nsink: {{format: console}}\n")
    decode = load(tmp_path / "p.yml").pipeline.sources["source"].decode
    assert decode is not None
    given = messages(spark, b"\x06abc", b"no Avro", b"\x02z")
    good = well_formed(given, decode, "orders", Malformed.COUNT)
    assert rows_of(good.selectExpr("id", "message.queueOffset")) == [("abc", 0), ("z", 2)]
    assert rows_of(malformed_messages(given, decode).select("body")) == [(b"no Avro",)]


def test_json_bodies_behind_the_number_of_their_schema_become_columns(spark: "SparkSession", tmp_path: Path) -> None:
    """A JSON Schema beside the pipeline's file says what the columns are, so no registry is asked."""
    from skyrocket.pipeline.bodies import from_json_body
    from skyrocket.pipeline.declared.transforms import malformed_messages, well_formed

    schema = {"type": "object", "properties": {"id": {"type": "string"}, "count": {"type": "integer"}}}
    (tmp_path / "order.json").write_text(json.dumps(schema))
    source = "{subscribe: orders, decode: {schemaFile: order.json, registry: 'http://127.0.0.1:1'}}"
    (tmp_path / "p.yml").write_text(f"name: x\nsource: {source}\nsink: {{format: console}}\n")
    decode = load(tmp_path / "p.yml").pipeline.sources["source"].decode
    assert decode is not None
    number = b"\0\0\0\0\7"
    given = messages(spark, number + b'{"id": "a", "count": 3}', b'{"id": "b"}', number + b"{", number + b'{"id": "c"}')
    good = well_formed(given, decode, "orders", Malformed.COUNT)
    assert rows_of(good.selectExpr("id", "count", "message.queueOffset")) == [("a", 3, 0), ("c", None, 3)]
    bad = malformed_messages(given, decode).select("body")
    assert rows_of(bad) == [(b'{"id": "b"}',), (number + b"{",)]
    column = from_json_body("body", schema_file=str(tmp_path / "order.json"), registry="http://127.0.0.1:1")
    found = given.select("queueOffset", column.alias("order")).selectExpr("queueOffset", "order.id")
    assert sorted(rows_of(found)) == [(0, "a"), (1, None), (2, None), (3, "c")]
