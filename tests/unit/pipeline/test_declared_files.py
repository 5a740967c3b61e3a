"""Pipeline files as they are read: what they say, and what is told about those that are wrong. No Spark runs here."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from skyrocket.cli import app
from skyrocket.pipeline.declared import (
    Decode,
    Dedupe,
    Malformed,
    OnError,
    Pipeline,
    PipelineFileError,
    Restart,
    Sink,
    Source,
    Step,
    Trigger,
    Watermark,
    load,
)
from skyrocket.pipeline.declared.reading import read_yaml
from skyrocket.pipeline.declared.rules import check_rules
from skyrocket.pipeline.options import nearest

PAID_ORDERS = """\
name: paid-orders
source: {format: rocketmq, subscribe: order, startingOffsets: earliest, tags: paid}
decode: {format: json, schema: "order_id string, amount decimal(18,2), ts timestamp"}
steps:
  - sql: SELECT order_id, amount, ts FROM input WHERE amount > 0
  - dedupe: {keys: [order_id], watermark: {column: ts, delay: 1 hour}}
sink: {format: rocketmq, topic: order_paid, keys: order_id, deliveryGuarantee: idempotent}
onError: {malformed: dlq, topic: paid_orders_malformed}
trigger: {processingTime: 500 ms}
limits: {maxOffsetsPerTrigger: 200000}
restart: {attempts: 3, wait: 2 seconds, longestWait: 1 minute}
"""
SMALL = "name: small\nsource: {subscribe: a}\nsink: {format: console}\n"


def read(text: str, environment: Mapping[str, str] | None = None) -> Pipeline:
    located = read_yaml("p.yml", text, environment or {})
    check_rules(located.pipeline, located.locations)
    return located.pipeline


def problems(text: str) -> list[str]:
    with pytest.raises(PipelineFileError) as caught:
        read(text)
    return [str(problem) for problem in caught.value.problems]


def test_a_file_says_sources_steps_sinks_and_how_they_run() -> None:
    assert read(PAID_ORDERS) == Pipeline(
        name="paid-orders",
        sources={
            "source": Source(
                options={"subscribe": "order", "startingOffsets": "earliest", "tags": "paid"},
                decode=Decode("json", "order_id string, amount decimal(18,2), ts timestamp"),
            )
        },
        steps=[
            Step("step1", sql="SELECT order_id, amount, ts FROM input WHERE amount > 0"),
            Step("step2", dedupe=Dedupe(("order_id",), Watermark("ts", "1 hour"))),
        ],
        sinks=[
            Sink(
                "order_paid",
                options={"topic": "order_paid", "deliveryGuarantee": "idempotent"},
                message={"keys": "order_id"},
            )
        ],
        on_error=OnError(Malformed.DLQ, "paid_orders_malformed"),
        trigger=Trigger(0.5),
        limits={"maxOffsetsPerTrigger": "200000"},
        restart=Restart(3, 2.0, 60.0),
    )


def test_several_sources_and_sinks_have_names() -> None:
    found = read("""\
name: joined
sources:
  orders: {subscribe: [orders, returns], decode: {schema: id string}}
  customers: {format: parquet, path: /lake/customers, static: true}
  log: {format: rocketmq-commitlog, path: /store}
steps:
  - {name: rich, sql: SELECT * FROM orders}
sinks:
  - {topic: rich, from: rich}
  - {format: parquet, path: /lake/lake, partitionBy: dt}
  - {format: jdbc, url: "jdbc:derby:x", table: t, from: orders}
trigger: availableNow
""")
    assert found.sources["orders"].options["subscribe"] == "orders,returns"
    assert [source.is_stream for source in found.sources.values()] == [True, False, False]
    assert [(sink.name, found.written_by(sink)) for sink in found.sinks] == [
        ("rich", "rich"),
        ("lake", "rich"),
        ("t", "orders"),
    ]
    assert found.trigger == Trigger(None)


def test_offsets_may_be_written_as_yaml_and_reach_spark_as_json() -> None:
    found = read("name: x\nsource: {subscribe: a, startingOffsets: {a: {b: {0: 5, 1: -2}}}}\nsink: {format: console}\n")
    assert found.sources["source"].options["startingOffsets"] == '{"a": {"b": {"0": 5, "1": -2}}}'


def test_variables_of_the_environment_are_replaced_in_values() -> None:
    text = "name: ${NAME:-small}\nsource: {subscribe: '${TOPIC}'}\nsink: {format: console}\ncheckpoint: $${HOME}\n"
    found = read(text, {"TOPIC": "orders", "NAME": ""})
    assert (found.name, found.sources["source"].options["subscribe"], found.checkpoint) == (
        "small",
        "orders",
        "${HOME}",
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", ["p.yml:1:1: the file is empty; docs/guides/pipeline-files.md has one"], id="empty"),
        pytest.param("name: [a\nsink: b", ["p.yml:2:5: not YAML: expected ',' or ']', but got ':'"], id="not-yaml"),
        pytest.param("- a", ["p.yml:1:1: a pipeline file is a mapping of keys; begin with `name: …`"], id="a-list"),
        pytest.param(
            SMALL + "sinks: []\ntriger: availableNow\n",
            [
                "p.yml:3:7: sink and sinks are both given; keep `sinks:` as a list",
                "p.yml:5:1: triger is not known at the top of a pipeline file; did you mean trigger?",
            ],
            id="unknown-key",
        ),
        pytest.param(
            SMALL + "name: again\n", ["p.yml:4:1: name is given twice; keep one of them"], id="key-given-twice"
        ),
        pytest.param(
            "source: {subscribe: a}\n",
            [
                "p.yml:1:1: name is missing; add `name: …`: checkpoints and the consumer group are called by it",
                "p.yml:1:1: sink is missing; as `sink: {format: parquet, path: lake/orders}`",
            ],
            id="missing-keys",
        ),
        pytest.param(
            SMALL + "restart: {attempts: many}\nlimits: [1]\ncreateTopics: maybe\n",
            [
                "p.yml:4:21: attempts must be a whole number of at least 0, not many; as `attempts: 1000`",
                "p.yml:5:9: limits must be a mapping, not a list; as `limits: {maxOffsetsPerTrigger: 200000}`",
                "p.yml:6:15: createTopics must be true or false, not maybe; as `createTopics: true`",
            ],
            id="wrong-types",
        ),
        pytest.param(
            SMALL + "trigger: {processingTime: soon}\n",
            [
                "p.yml:4:27: processingTime must be a length of time, not soon; "
                "as `processingTime: 10 seconds` or `processingTime: 1 hour`"
            ],
            id="no-length-of-time",
        ),
        pytest.param(
            SMALL + "checkpoint: a/${NOPE}\n",
            ["p.yml:4:15: ${NOPE} cannot be replaced; export NOPE, or write ${NOPE:-something}"],
            id="variable-not-set",
        ),
        pytest.param(
            "name: x\nsource: {subscribe: a, startingOfsets: latest}\nsink: {topic: t, key: id}\n",
            [
                "p.yml:2:24: startingOfsets is not known in format rocketmq; did you mean startingOffsets?",
                "p.yml:3:18: key is not known in format rocketmq; did you mean keys?",
            ],
            id="unknown-option",
        ),
        pytest.param(
            "name: x\nsource: {format: parqet, path: a}\nsink: {format: console}\n",
            ["p.yml:2:18: format cannot be parqet; did you mean parquet?"],
            id="unknown-format",
        ),
        pytest.param(
            "name: x\nsource: {subscribe: a, initialOffsetsLocation: /tmp}\nsink: {format: console}\n",
            ["p.yml:2:24: initialOffsetsLocation is not known in format rocketmq; known are "],
            id="the-runners-own-option",
        ),
        pytest.param(
            "name: x\nsource: {tags: a}\nsink: {format: parquet}\n",
            [
                "p.yml:2:9: source source needs exactly one of subscribe, subscribePattern, assign; "
                "as `subscribe: orders`",
                "p.yml:3:7: sink parquet needs path; as `path: lake/orders`",
            ],
            id="nothing-to-read-nowhere-to-write",
        ),
        pytest.param(
            "name: x\nsource: {subscribe: a}\nsinks:\n"
            "  - {format: iceberg, path: lake, table: orders, partitionBy: dt}\n"
            "  - {format: console, partitionBy: dt}\n"
            "  - {name: d, format: delta, path: 's3://lake/orders', outputMode: complete, mode: x}\n"
            "  - {format: delta}\n",
            [
                "p.yml:4:42: orders is no name of an Iceberg table; put a namespace before it, as `shop.orders`",
                "p.yml:5:23: partitionBy is for files and tables; take it away",
                "p.yml:6:37: delta tables are written to directories; name one that all tasks see",
                "p.yml:6:68: tables are only appended to, never in mode complete; write `append`",
                "p.yml:6:78: mode is not known in format delta; known are path",
                "p.yml:7:5: sink delta needs path; as `path: lake/orders`",
            ],
            id="tables",
        ),
        pytest.param(
            SMALL + "steps:\n  - {name: a, sql: SELECT 1, dedupe: {keys: [a]}}\n  - {name: b}\n",
            [
                "p.yml:5:5: step a needs either sql or dedupe; as `sql: SELECT … FROM input`",
                "p.yml:5:38: watermark is missing; without it all keys are remembered for ever; add `watermark: …`",
                "p.yml:6:5: step b needs either sql or dedupe; as `sql: SELECT … FROM input`",
            ],
            id="steps-that-do-nothing-or-too-much",
        ),
        pytest.param(
            "name: x\nsources: {orders: {subscribe: a}}\nsteps:\n  - {name: orders, sql: SELECT 1}\n"
            "sinks:\n  - {format: console, from: ordrs}\n  - {format: console}\n",
            [
                "p.yml:4:5: orders is the name of two results; names of sources and steps must differ",
                "p.yml:6:29: nothing is called ordrs; did you mean orders?",
                "p.yml:7:5: console is the name of two sinks; give one of them a `name:`: checkpoints are kept by it",
            ],
            id="names",
        ),
        pytest.param(
            "name: x\nsource: {subscribe: a}\ndecode: {format: json}\nsink: {format: console}\n"
            "onError: {malformed: dlq}\n",
            [
                'p.yml:3:9: decode of source has no schema; name the fields, as `schema: "id string, amount double"`',
                "p.yml:5:10: malformed: dlq needs a topic; as `topic: orders_malformed`",
            ],
            id="decode-and-dead-letters",
        ),
        pytest.param(
            "name: x\nsources:\n  a: {subscribe: a, decode: {format: avro, registry: http://r}}\n"
            "  b: {subscribe: b, decode: {format: protobuf, schemaFile: x}}\n"
            "  c: {subscribe: c, decode: {schema: id string, subject: s}}\n"
            "  d: {subscribe: d, decode: {format: json, registry: http://r}}\n"
            "  e: {subscribe: e, decode: {format: protobuf, registry: http://r}}\n"
            "  f: {subscribe: f, decode: {schema: id string, schemaFile: x}}\nsink: {format: console}\n",
            [
                "p.yml:3:29: registry and subject belong together; as `registry: http://host:8081`, "
                "`subject: orders-value`",
                "p.yml:4:29: decode of b needs schemaFile and message, or registry and subject; as `{format: protobuf, "
                "schemaFile: order.desc, message: shop.Order}`",
                "p.yml:5:58: a subject is one of a registry; add `registry: http://host:8081`",
                "p.yml:6:54: a registry needs a subject; as `subject: orders-value`",
                "p.yml:7:58: a registry needs a subject; as `subject: orders-value`",
                "p.yml:8:38: schema and schemaFile say the same; take one away",
            ],
            id="decode-by-schemas",
        ),
        pytest.param(
            SMALL + "steps:\n  - {name: x y, sql: SELECT 1}\n  - {name: input, sql: SELECT 1}\n",
            [
                "p.yml:5:5: 'x y' cannot be a table's name; use letters, digits and underscore",
                "p.yml:6:5: 'input' is what stands before a step; use letters, digits and underscore",
            ],
            id="names-that-sql-cannot-say",
        ),
    ],
)
def test_what_is_wrong_is_told_with_line_and_column(text: str, told: list[str]) -> None:
    found = problems(text)
    assert len(found) == len(told), found
    for problem, beginning in zip(found, told, strict=True):
        assert problem.startswith(beginning)


@pytest.mark.parametrize(("kind", "package"), [("delta", "deltalake"), ("iceberg", "pyiceberg")])
def test_a_table_without_its_package_is_told_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, kind: str, package: str
) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else there(name))
    table = ", table: shop.orders" if kind == "iceberg" else ""
    assert problems(f"name: x\nsource: {{subscribe: a}}\nsink: {{format: {kind}, path: lake{table}}}\n") == [
        f"p.yml:3:16: format {kind} needs one more package; pip install 'skyrocket[{kind}]'"
    ]


def test_the_place_inside_a_statement_is_that_in_the_file() -> None:
    """However the statement is written: as a block, folded, quoted over two lines, with a variable in it."""
    text = """\
name: x
source: {subscribe: a}
steps:
  - sql: |
      SELECT a,
        wrong
      FROM input
  - sql: >-
      SELECT a,
      wrong FROM input
  - sql: "SELECT 'it''s \\"a\\"',
      wrong FROM input"
  - sql: SELECT ${COLUMN}, wrong FROM input
sink: {format: console}
"""
    located = read_yaml("p.yml", text, {"COLUMN": "a_long_name"})
    lines = text.splitlines()
    for step in located.pipeline.steps:
        assert step.sql is not None
        place = located.locations.of(("steps", step.name, "sql"), step.sql.index("wrong"))
        assert lines[place.line - 1][place.column - 1 :].startswith("wrong")


@given(
    words=st.lists(st.text("abcXYZ019_'(),.*$é", min_size=1, max_size=8), min_size=1, max_size=12),
    form=st.sampled_from(["|", ">", "|-", ">-"]),
)
def test_every_visible_character_of_a_block_has_its_place(words: list[str], form: str) -> None:
    block = "\n".join(f"      {word}" for word in words)
    text = f"name: x\nsource: {{subscribe: a}}\nsteps:\n  - sql: {form}\n{block}\nsink: {{format: console}}\n"
    located = read_yaml("p.yml", text, {})
    sql = located.pipeline.steps[0].sql
    assert sql is not None
    lines = text.splitlines()
    for index, character in enumerate(sql):
        if not character.isspace():
            place = located.locations.of(("steps", "step1", "sql"), index)
            assert lines[place.line - 1][place.column - 1] == character


def test_paths_are_meant_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "p.yml"
    file.write_text(
        "name: x\nsources: {a: {format: parquet, path: in}, b: {format: json, path: 's3a://b/c'}}\n"
        "sink: {format: csv, path: out, from: a}\n"
    )
    found = load(file).pipeline
    assert [source.options["path"] for source in found.sources.values()] == [str(tmp_path / "in"), "s3a://b/c"]
    assert found.sinks[0].options["path"] == str(tmp_path / "out")
    assert found.checkpoint_directory == str(tmp_path / "checkpoints/x")


def test_a_file_that_is_not_there_is_a_problem_too(tmp_path: Path) -> None:
    with pytest.raises(PipelineFileError, match=r"none\.yml:1:1: the file cannot be read: No such file or directory"):
        load(tmp_path / "none.yml")


PYTHON = '''\
from skyrocket.pipeline.declared import Pipeline, Sink, Source, Step

pipeline = Pipeline(
    name="small",
    sources={"orders": Source(options={"subscribe": "orders"})},
    steps=[Step("paid", sql="""
        SELECT *
        FROM orders""")],
    sinks=[Sink("console", format="console", source="paid")],
)
'''


def test_a_python_file_declares_the_same(tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    file.write_text(PYTHON)
    located = load(file)
    assert located.pipeline.steps[0].name == "paid"
    sql = located.pipeline.steps[0].sql
    assert sql is not None
    assert located.locations.of(("steps", "paid", "sql"), sql.index("FROM"))[1:] == (8, 9)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("pipeline = Pipeline(", "other = Pipeline("), r"p\.py:1:1: the file has no `pipeline`; end it with"),
        (('source="paid"', 'source="payed"'), r"p\.py:9:17: nothing is called payed; did you mean paid\?"),
        (
            ('"subscribe"', '"subscrib"'),
            r"p\.py:5:40: subscrib is not known in format rocketmq; did you mean subscribe",
        ),
        (("name=", "nam="), r"p\.py:3:1: TypeError: .*nam.*; the file must run by itself"),
        (("sinks=[", "sinks=["[:-1] + "]"), r"p\.py:9:11: not Python: "),
    ],
)
def test_what_is_wrong_in_a_python_file_is_told_with_its_line(
    tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    file = tmp_path / "p.py"
    file.write_text(PYTHON.replace(*change))
    with pytest.raises(PipelineFileError, match=told):
        load(file)


def test_the_command_tells_one_mistake_per_line_and_exits_with_1(tmp_path: Path) -> None:
    file = tmp_path / "p.yml"
    file.write_text("nam: x\nsource: {subscribe: a}\n")
    for command in (["check"], ["run", "--once"], ["run", "--check"]):
        ended = CliRunner().invoke(app, ["pipeline", *command, str(file)])
        assert ended.exit_code == 1
        assert ended.stderr.splitlines() == [
            f"{file}:1:1: name is missing; add `name: …`: checkpoints and the consumer group are called by it",
            f"{file}:1:1: sink is missing; as `sink: {{format: parquet, path: lake/orders}}`",
            f"{file}:1:1: nam is not known at the top of a pipeline file; did you mean name?",
        ]


def test_the_nearest_name_is_found_whatever_its_spelling() -> None:
    assert nearest("starting_offsets", ["startingOffsets", "startingTimestamp"]) == "startingOffsets"
    assert nearest("xyz", ["startingOffsets"]) is None


def test_a_decode_that_sources_share_stands_where_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "p.yml"
    own = "  b: {subscribe: b, decode: {schema: id int}}\n"
    file.write_text(
        f"name: x\nsources:\n  a: {{subscribe: a}}\n{own}decode: {{schema: id strin}}\nsink: {{format: console}}\n"
    )
    locations = load(file).locations
    shared, of_b = (locations.of(("sources", name, "decode", "schema")) for name in ("a", "b"))
    assert [(each.line, each.column) for each in (shared, of_b)] == [(5, 18), (4, 38)]
