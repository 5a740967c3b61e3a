"""`skyrocket inspect` as a user calls it."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from skyrocket.cli import app
from skyrocket.config.sections import StoreConfig
from skyrocket.format.properties import encode_properties
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from tests import ROOT
from tests.golden_store import GoldenStore

CLEAN = GoldenStore("5.4.0", "clean")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return CLEAN.extract(tmp_path_factory.mktemp("clean"))


def inspect(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["inspect", *map(str, arguments)])


def lines(*arguments: object) -> list[dict[str, Any]]:
    result = inspect(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_the_summary_shows_state_files_and_topics(store: Path) -> None:
    result = inspect(store)
    assert result.exit_code == 0
    assert "closed in order" in result.stdout
    assert "6 files of 256 KiB" in result.stdout
    assert "TopicOrder" in result.stdout


def test_the_summary_agrees_with_rocketmq_about_every_queue(store: Path) -> None:
    expected: dict[str, int] = {}
    for queue in CLEAN.lines("queues"):
        expected[queue["topic"]] = expected.get(queue["topic"], 0) + queue["max"] - queue["min"]
    shown = {row["topic"]: row["messages"] for row in lines(store) if row["view"] == "topic"}
    assert shown == {topic: count for topic, count in expected.items() if topic in shown}
    assert sum(shown.values()) == sum(expected.values())


def test_records_as_json_lines_equal_what_rocketmq_reads(store: Path) -> None:
    expected = [line for line in CLEAN.messages() if line["kind"] == "message"]
    shown = lines(store, "--records", "--limit", 0)
    same = ["physicalOffset", "size", "topic", "queueId", "queueOffset", "storeTimestamp", "flag", "sysFlag", "bodyCRC"]
    assert [[row[key] for key in same] for row in shown] == [[line[key] for key in same] for line in expected]
    assert [row["properties"] for row in shown] == [line["properties"] for line in expected]
    assert [row["msgId"] for row in shown] == [line["msgId"] for line in expected]


@pytest.mark.parametrize(
    ("options", "check"),
    [
        (["--topic", "TopicOrder"], lambda row: row["topic"] == "TopicOrder"),
        (["--topic", "TopicBusy", "--queue", "1"], lambda row: row["queueId"] == 1),
        (["--tag", "TagOnly"], lambda row: row["tags"] == "TagOnly"),
        (["--from-offset", "1310720"], lambda row: row["physicalOffset"] >= 1310720),
    ],
)
def test_records_can_be_filtered(options: list[str], check: Any, store: Path) -> None:
    shown = lines(store, "--records", *options, "--limit", 5)
    assert 0 < len(shown) <= 5
    assert all(check(row) for row in shown)


def test_from_offset_counts_in_a_queue_when_one_is_given(store: Path) -> None:
    shown = lines(store, "--records", "--topic", "TopicBusy", "--queue", 0, "--from-offset", 900, "--limit", 2)
    assert [row["queueOffset"] for row in shown] == [900, 901]


def test_a_key_is_found_in_the_log_and_in_the_index(store: Path) -> None:
    message = next(line for line in CLEAN.messages() if line.get("topic") == "TopicOrder")
    key = message["uniqKey"]
    assert [row["physicalOffset"] for row in lines(store, "--records", "--key", key)] == [message["physicalOffset"]]
    hits = lines(store, "--index", "--topic", "TopicOrder", "--key", key)
    assert [row["physicalOffset"] for row in hits] == [message["physicalOffset"]]


def test_bodies_are_inflated(store: Path) -> None:
    compressed = [line for line in CLEAN.messages() if line["kind"] == "message" and line["sysFlag"] & 1]
    offset = compressed[0]["physicalOffset"]
    (row,) = lines(store, "--records", "--from-offset", offset, "--limit", 1, "--body")
    assert row["bodyLength"] == compressed[0]["storedBodyLength"]
    assert "body" in row or "bodyBase64" in row
    assert inspect(store, "--records", "--from-offset", offset, "--limit", 1, "--body").exit_code == 0


def test_queues_and_their_entries_equal_what_rocketmq_reads(store: Path) -> None:
    shown = {(row["topic"], row["queueId"]): row for row in lines(store, "--queues")}
    for queue in CLEAN.lines("queues"):
        row = shown.get((queue["topic"], queue["queueId"]))
        assert row is not None or queue["max"] == 0
        if row is not None:
            assert (row["min"], row["max"]) == (queue["min"], queue["max"])
    entries = lines(store, "--queues", "--topic", "TopicOrder", "--queue", 0, "--limit", 0)
    (queue,) = [q for q in CLEAN.lines("queues") if (q["topic"], q["queueId"]) == ("TopicOrder", 0)]
    assert [[row["physicalOffset"], row["size"], row["tagsCode"]] for row in entries] == queue["entries"]


def test_entries_of_an_extended_queue_show_the_real_tags_code(tmp_path: Path) -> None:
    golden = GoldenStore("5.4.0", "cqext")
    entries = lines(golden.extract(tmp_path), "--queues", "--topic", "TopicTiny", "--queue", 0, "--limit", 0)
    (queue,) = [q for q in golden.lines("queues") if (q["topic"], q["queueId"]) == ("TopicTiny", 0)]
    assert [[row["physicalOffset"], row["size"], row["tagsCode"]] for row in entries] == queue["entries"]


def test_index_files_checkpoint_config_and_timer_have_views(store: Path) -> None:
    views = [row["view"] for row in lines(store, "--index", "--checkpoint", "--config-files", "--timer", "--limit", 0)]
    assert views.count("index-file") == 20
    assert views.count("checkpoint") == 8
    assert views.count("timer-unit") == sum(line["kind"] == "unit" for line in CLEAN.lines("timer"))
    assert views.count("timer-slot") == sum(line["kind"] == "slot" for line in CLEAN.lines("timer"))
    tables = inspect(store, "--index", "--checkpoint", "--config-files", "--timer")
    assert tables.exit_code == 0
    assert "minTimestamp (derived)" in tables.stdout
    assert "47 topics" in tables.stdout


def test_a_clean_store_verifies_with_exit_code_0(store: Path) -> None:
    result = inspect(store, "--verify")
    assert result.exit_code == 0
    assert "verified: 2521 records" in result.stdout


def test_problems_give_exit_code_1_and_say_file_place_and_remedy(tmp_path: Path) -> None:
    root = GoldenStore("4.9.7", "clean").extract(tmp_path)
    log = root / "commitlog" / "00000000000000262144"
    damaged = bytearray(log.read_bytes())
    damaged[100] ^= 1
    log.write_bytes(damaged)
    result = inspect(root, "--verify")
    assert result.exit_code == 1
    assert "record-damaged  commitlog/00000000000000262144 @ byte 0" in result.stdout
    assert "→ Restore the file from a replica" in result.stdout
    found = [json.loads(line) for line in inspect(root, "--verify", "--json").stdout.splitlines()]
    assert [row["kind"] for row in found if row.get("severity") == "error"] == ["record-damaged"]
    assert found[-1] == found[-1] | {"view": "verification", "ok": False, "errors": 1}


def test_a_killed_store_is_fine_unless_strict(tmp_path: Path) -> None:
    root = GoldenStore("4.9.7", "killed").extract(tmp_path)
    assert inspect(root, "--verify").exit_code == 0
    assert inspect(root, "--verify", "--strict").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no/such/store"], "does not exist"),
        ([Path(__file__)], "is a file"),
        ([Path(__file__).parent], "it has no directory `commitlog`"),
        (["{store}/commitlog"], "Did you mean {store}?"),
        (["{store}", "--set", "maxHashSlotNun=5"], "did you mean 'maxHashSlotNum'?"),
        (["{store}", "--set", "maxHashSlotNum"], "key=value"),
        (["{store}", "--limit", "-1"], "--limit"),
    ],
)
def test_wrong_usage_gives_exit_code_2_and_the_next_step(arguments: list[object], says: str, store: Path) -> None:
    result = inspect(*(str(argument).format(store=store) for argument in arguments))
    assert result.exit_code == 2
    assert says.format(store=store).replace(" ", "") in "".join(result.output.split()).replace("│", "")


@pytest.mark.requirement("A024")
def test_nothing_in_the_store_changes(store: Path) -> None:
    def state() -> dict[str, tuple[int, str]]:
        files = [path for path in sorted(store.rglob("*")) if path.is_file()]
        return {str(f): (f.stat().st_mtime_ns, hashlib.sha256(f.read_bytes()).hexdigest()) for f in files}

    before = state()
    inspect(store, "--records", "--queues", "--index", "--checkpoint", "--config-files", "--timer", "--verify")
    assert state() == before


def test_a_store_that_cannot_be_written_can_be_inspected(tmp_path: Path) -> None:
    root = GoldenStore("4.9.7", "ipv6").extract(tmp_path)
    for path in [root, *root.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert inspect(root, "--verify").exit_code == 0


def test_the_module_runs_as_a_program(store: Path) -> None:
    command = [sys.executable, "-m", "skyrocket", "inspect", str(store), "--checkpoint"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "physicMsgTimestamp" in done.stdout
    assert done.stderr == ""


def test_the_inspector_does_not_load_the_store(store: Path) -> None:
    code = "import sys, skyrocket.inspector.verify; print([m for m in sys.modules if m.startswith('skyrocket.store')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_help_names_every_option() -> None:
    text = inspect("--help").output
    for option in (
        "--records",
        "--queues",
        "--index",
        "--checkpoint",
        "--config-files",
        "--timer",
        "--verify",
        "--json",
    ):
        assert option in text


@pytest.mark.requirement("A017")
def test_a_store_of_our_own_verifies_while_it_runs_and_when_it_is_closed(tmp_path: Path) -> None:
    config = StoreConfig(commit_log_file_size=65_536, consume_queue_file_size=400, index_slots=50, index_entries=300)
    with MessageStore(tmp_path, config) as ours:
        for number in range(600):
            properties = {"UNIQ_KEY": f"unique-{number}", "KEYS": f"key-{number} all", "TAGS": f"Tag{number % 3}"}
            ours.put(PutMessage("Orders", number % 4, b"x" * (number % 500), encode_properties(properties)))
        assert ours.query("Orders", "all")  # what was put is in the index; while it is written its file has no chains
        assert inspect(tmp_path, "--verify").exit_code == 0
    assert inspect(tmp_path, "--verify", "--strict").exit_code == 0
    assert len(lines(tmp_path, "--records", "--key", "all", "--limit", 0)) == 600


def test_every_option_is_documented() -> None:
    documented = (ROOT / "docs" / "reference" / "inspect.md").read_text()
    options = set(re.findall(r"--[a-z-]+", inspect("--help").output)) - {"--help"}
    assert {option for option in options if option not in documented} == set()


def test_the_sample_store_is_made_once(tmp_path: Path) -> None:
    target = tmp_path / "var" / "sample-store"
    command = [sys.executable, str(ROOT / "examples" / "sample_store.py"), str(target)]
    for _ in range(2):
        subprocess.run(command, check=True)
    assert inspect(target).exit_code == 0
    assert [path.name for path in target.parent.iterdir()] == ["sample-store"]
