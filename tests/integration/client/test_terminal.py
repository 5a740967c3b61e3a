"""`skyrocket produce` and `skyrocket consume` as programs, against Skyrocket and (long mode) Apache RocketMQ."""

import asyncio
import contextlib
import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from skyrocket.cli import app
from skyrocket.client import Admin, NoRoute
from skyrocket.config.sections import StoreConfig
from tests.cluster.broker.access_fixture import ACCOUNTS, ADMIN_ACCOUNT
from tests.integration.client.servers import OURS, SERVER_PARAMETERS, apache_or_skip, registered
from tests.interop.rocketmq_broker import running_broker
from tests.interop.standalone import SQL_FILTERS, running_standalone
from tests.loops import run_bounded
from tests.waiting import wait_until


@pytest.fixture(scope="module", params=SERVER_PARAMETERS)
def names(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name server of a running cluster."""
    folder: Path = tmp_path_factory.mktemp("store")
    with contextlib.ExitStack() as stack:
        if request.param == OURS:
            yield stack.enter_context(running_standalone(folder, SQL_FILTERS)).name_server
            return
        apache = apache_or_skip(request.param)
        address = stack.enter_context(running_broker(apache, folder, StoreConfig(), SQL_FILTERS)).name_server
        run_bounded(registered(address))
        yield address


class Done(NamedTuple):
    """What a run came to."""

    code: int
    output: str
    errors: str


def skyrocket(names: str, *arguments: str, **environment: str) -> Done:
    """Run a command in this process, which is much quicker than a program of its own."""
    result = CliRunner().invoke(app, arguments, env={"NAMESRV_ADDR": names, **environment})
    return Done(result.exit_code, result.stdout, result.stderr)


def fed(names: str, stdin: bytes, *arguments: str) -> Done:
    """A program of its own that reads its standard input."""
    done = subprocess.run(
        [sys.executable, "-m", "skyrocket", *arguments],
        input=stdin,
        capture_output=True,
        timeout=60,
        env={**os.environ, "NAMESRV_ADDR": names},
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def well(names: str, *arguments: str) -> str:
    """What a run prints that must succeed."""
    done = skyrocket(names, *arguments)
    assert done.code == 0, done.errors
    return done.output


@contextlib.contextmanager
def started(names: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    process = subprocess.Popen(
        [sys.executable, "-m", "skyrocket", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NAMESRV_ADDR": names},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def fresh(names: str, queues: int = 2) -> str:
    """A topic that no other test has used."""
    topic = f"Terminal_{uuid.uuid4().hex[:8]}"

    async def make() -> None:
        async with Admin(names) as admin:
            await admin.create_topic(topic, queues)
            while True:
                with contextlib.suppress(NoRoute):
                    if len(await admin.queues(topic)) == queues:
                        return
                await asyncio.sleep(0.05)

    run_bounded(make())
    return topic


def test_arguments_are_sent_with_receipts_and_read_back_in_every_format(names: str) -> None:
    topic = fresh(names)
    options = ["--tags", "TagA", "--key", "k1", "--key", "k2", "--property", "price=12"]
    receipts = well(names, "produce", topic, "hello", "wörld", *options).splitlines()
    assert len(receipts) == 2
    assert all(re.fullmatch(r"SEND_OK [0-9A-F]{32} broker-a:\d@\d", line) for line in receipts)
    text = well(names, "consume", topic).splitlines()
    assert sorted(line.split(" ", 2)[2] for line in text) == ["[TagA] (k1 k2) hello", "[TagA] (k1 k2) wörld"]
    shown = [json.loads(line) for line in well(names, "consume", topic, "--format", "json").splitlines()]
    assert {each["message_id"] for each in shown} == {line.split()[1] for line in receipts}
    assert all(each["keys"] == ["k1", "k2"] and each["properties"] == {"price": "12"} for each in shown)
    assert sorted(well(names, "consume", topic, "-o", "body").splitlines()) == ["hello", "wörld"]
    table = well(names, "consume", topic, "-o", "table").splitlines()
    assert table[0].split() == ["stored", "at", "queue", "offset", "tags", "keys", "bytes", "body"]
    assert len(table) == 3


def test_messages_and_receipts_know_the_outputs_of_all_commands(names: str) -> None:
    topic = fresh(names)
    bodies = ['says "no", twice', "x" * 300]
    sent = list(csv.DictReader(well(names, "msg", "send", topic, *bodies, "--output", "csv").splitlines()))
    assert [each["status"] for each in sent] == ["SEND_OK", "SEND_OK"]
    (more,) = well(names, "msg", "send", topic, "last", "--output", "jsonl").splitlines()
    assert json.loads(more)["broker"] == "broker-a"
    rows = list(csv.DictReader(well(names, "msg", "print", topic, "--output", "csv").splitlines()))
    assert sorted(row["body"] for row in rows) == sorted([*bodies, "last"])
    lines = well(names, "msg", "print", topic, "--output", "jsonl").splitlines()
    assert {each["message_id"] for each in sent} < {json.loads(line)["message_id"] for line in lines}
    wide = well(names, "msg", "print", topic, "--output", "wide").splitlines()
    assert wide[0].split()[-1] == "body"
    assert any(line.endswith("x" * 300) for line in wide)


def test_lines_are_filtered_by_tags_and_properties_and_counted(names: str) -> None:
    topic = fresh(names)
    lines = [json.dumps({"body": str(i), "tags": f"T{i % 3}", "properties": {"price": i}}) for i in range(30)]
    done = fed(names, "\n".join([*lines[:15], "", *lines[15:]]).encode(), "produce", topic, "--json")
    assert (done.code, done.output) == (0, "")
    assert "30 messages were sent in" in done.errors
    tagged = well(names, "consume", topic, "--tags", "T0 || T1", "-o", "body").split()
    assert sorted(map(int, tagged)) == [i for i in range(30) if i % 3 < 2]
    priced = well(names, "consume", topic, "--where", "price > 24 AND TAGS = 'T1'", "-o", "body").split()
    assert sorted(map(int, priced)) == [25, 28]
    assert len(well(names, "consume", topic, "--limit", "7", "-o", "body").split()) == 7
    refused = skyrocket(names, "consume", topic, "--where", "price >")
    assert refused.code == 1
    assert "the filter 'price >' was refused" in refused.errors


def test_json_goes_from_topic_to_topic_and_one_key_stays_in_order(names: str, tmp_path: Path) -> None:
    first, second = fresh(names), fresh(names, 4)
    lines = [json.dumps({"body": f"{i}", "sharding_key": f"s{i % 2}", "keys": [f"k{i}"]}) for i in range(40)]
    (tmp_path / "lines").write_text("\n".join(lines))
    (tmp_path / "bytes").write_bytes(bytes(range(256)))
    well(names, "produce", first, "--json", "--file", str(tmp_path / "lines"))
    well(names, "produce", first, "--whole", "--file", str(tmp_path / "bytes"))
    (tmp_path / "read").write_text(well(names, "consume", first, "-o", "json"))
    well(names, "produce", second, "--json", "--file", str(tmp_path / "read"))
    shown = [json.loads(line) for line in well(names, "consume", second, "-o", "json").splitlines()]
    assert len(shown) == 41
    for key in ("s0", "s1"):
        mine = [each for each in shown if each.get("sharding_key") == key]
        assert len({each["queue_id"] for each in mine}) == 1
        ordered = [int(each["body"]) for each in sorted(mine, key=lambda each: int(each["queue_offset"]))]
        assert ordered == sorted(ordered)
    assert [each["body_base64"] for each in shown if "body_base64" in each]


def test_reading_begins_where_one_says(names: str, tmp_path: Path) -> None:
    topic = fresh(names, 1)
    (tmp_path / "lines").write_text("".join(f"{i}\n" for i in range(500)))
    well(names, "produce", topic, "--file", str(tmp_path / "lines"), "--batch")
    time.sleep(1.1)
    middle = time.time()
    time.sleep(0.1)
    well(names, "produce", topic, "late")
    stored = well(names, "consume", topic, "-o", "body").split()  # batches under way at once may overtake each other
    assert (len(stored), stored[-1]) == (501, "late")
    assert well(names, "consume", topic, "--from", "498", "-o", "body").split() == stored[498:]
    assert well(names, "consume", topic, "--from=-2", "-o", "body").split() == stored[-2:]
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(middle)) + f"{middle % 1:.3f}"[1:]
    assert well(names, "consume", topic, "--from", moment, "-o", "body").split() == ["late"]
    assert well(names, "consume", topic, "--from", "latest", "-o", "body") == ""
    assert len(well(names, "consume", topic, "--from", "1h", "-o", "body").split()) == 501


def test_a_group_goes_on_where_it_was_and_an_anonymous_reader_leaves_no_trace(names: str) -> None:
    topic, group = fresh(names), f"Group_{uuid.uuid4().hex[:8]}"
    well(names, "produce", topic, *map(str, range(10)))
    well(names, "consume", topic)
    assert len(well(names, "consume", topic, "--group", group, "--no-commit", "-o", "body").split()) == 10
    first = skyrocket(names, "consume", topic, "--group", group, "--limit", "4", "-o", "body")
    rest = skyrocket(names, "consume", topic, "--group", group, "-o", "body")
    assert (first.code, rest.code) == (0, 0), first.errors + rest.errors
    found = [int(body) for body in (first.output + rest.output).split()]
    assert sorted(found) == list(range(10)), first.errors + rest.errors  # they say what was not saved
    assert well(names, "consume", topic, "--group", group, "-o", "body") == ""

    async def offsets() -> list[int]:
        async with Admin(names) as admin:
            queues = await admin.queues(topic)
            return [await admin.committed("TOOLS_CONSUMER", queue) or 0 for queue in queues]

    assert run_bounded(offsets()) == [0, 0]


def test_following_shows_what_comes_until_ctrl_c(names: str) -> None:
    topic = fresh(names)
    well(names, "produce", topic, "before")
    with started(names, "consume", topic, "--follow", "-o", "body") as tail, started(names, "produce", topic) as source:
        assert tail.stdout is not None
        assert source.stdin is not None
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(iter(tail.stdout.readline, "")))  # type: ignore[union-attr]
        reader.start()
        deadline = time.monotonic() + 60
        number = 0
        while len(lines) < 3:
            assert time.monotonic() < deadline
            source.stdin.write(f"line {number}\n")
            source.stdin.flush()
            number += 1
            time.sleep(0.2)
        tail.send_signal(signal.SIGINT)
        assert tail.wait(60) == 0
        reader.join(60)
        assert "before\n" not in lines
        assert "Traceback" not in (tail.stderr.read() if tail.stderr else "")
        source.send_signal(signal.SIGINT)  # while it waits for its input
        assert source.wait(20) == 130
        assert source.stderr is not None
        assert re.search(rf"{number} messages were sent", source.stderr.read())


def test_a_rate_is_kept(names: str) -> None:
    topic = fresh(names)
    done = skyrocket(names, "produce", topic, "x", "--repeat", "11", "--rate", "10")
    assert done.code == 0
    seconds = re.search(r"11 messages were sent in (\d+\.\d) s", done.errors)
    assert seconds is not None
    assert 0.9 <= float(seconds[1]) < 5


def test_output_that_nobody_reads_any_more_ends_quietly(names: str) -> None:
    topic = fresh(names)
    well(names, "produce", topic, "x" * 1000, "--repeat", "300", "--receipts", "none")
    with started(names, "consume", topic, "--follow", "--from", "earliest") as tail:
        assert tail.stdout is not None
        tail.stdout.readline()
        tail.stdout.close()
        well(names, "produce", topic, "one more")
        assert tail.wait(60) == 0
        assert tail.stderr is not None
        assert tail.stderr.read() == ""
        tail.stdout = None  # closed; communicate would read it


def test_progress_is_shown_on_a_terminal_only(names: str) -> None:
    topic = fresh(names)
    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "skyrocket", "produce", topic, "x", "--repeat", "250", "--rate", "100"],
        stdout=subprocess.DEVNULL,
        stderr=other,
        env={**os.environ, "NAMESRV_ADDR": names, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(other)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other end was closed
        while block := os.read(main, 4096):
            shown += block
    os.close(main)
    assert process.wait(20) == 0
    assert b"messages, " in shown


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["consume", "NoSuchTopic"], 4, "no route for topic NoSuchTopic: the name server"),
        (["consume", "a b"], 2, "contains ' '"),
        (["produce", "a b", "x"], 2, "argument 1: topic 'a b' contains ' '"),
        (["produce", "Orders", ""], 2, "argument 1: the body of a message for topic Orders is empty"),
        (["produce", "Orders", "x", "--property", "oops"], 2, "--property 'oops' is not of the form name=value"),
        (["produce", "Orders", "x", "--property", "KEYS=k"], 2, "property KEYS is reserved"),
        (["produce", "Orders", "--file", "/no/such/file"], 2, "/no/such/file cannot be read: No such file"),
        (["produce", "Orders", "x", "--file", "y"], 2, "from arguments or from --file, not from both"),
        (["produce", "Orders", "{", "--json"], 2, "argument 1: it is not JSON"),
        (["consume", "Orders", "--from", "soon"], 2, "--from 'soon' is not a place to begin"),
        (["consume", "Orders", "--from", "5", "--group", "G"], 2, "--from with an offset is for readers without"),
        (["consume", "Orders", "--tags", "a", "--where", "b"], 2, "--tags and --where exclude each other"),
        (["consume", "Orders", "--no-commit"], 2, "--no-commit is for --group"),
        (["consume", "Orders", "--access-key", "me"], 2, "--access-key needs --secret-key"),
        (["consume", "Orders", "-n", "nowhere"], 2, "an example is 127.0.0.1:9876"),
        (["consume", "Orders", "--tls-ca", "x.pem"], 2, "--tls-ca is for encrypted connections: add --tls"),
        (["consume", "Orders", "--tls-cert", "x.pem"], 2, "--tls-cert is for encrypted connections: add --tls"),
        (["consume", "Orders", "--tls", "--tls-ca", "x.pem"], 2, "--tls-ca x.pem: there is no such file"),
        (["consume", "Orders", "--tls", "--tls-key", "x.pem"], 2, "add --tls-cert"),
        (["consume", "Orders", "--tls", "--tls-ca", __file__], 2, "it has no certificate (PEM"),
        (["consume", "Orders", "--tls", "--tls-cert", __file__], 2, "needs a certificate and the key that belongs"),
    ],
)
def test_wrong_usage_is_told_from_failures(names: str, arguments: list[str], code: int, text: str) -> None:
    done = skyrocket(names, *arguments)
    assert text in done.errors
    assert done.code == code


def test_without_a_name_server_both_say_so() -> None:
    for arguments in (["produce", "Orders", "x"], ["consume", "Orders"]):
        done = skyrocket("127.0.0.1:1", *arguments)
        assert done.code == 1
        assert "no name server answered" in done.errors
        assert "check the addresses (-n or NAMESRV_ADDR in the terminal" in done.errors


def test_a_failed_send_ends_it_unless_it_shall_keep_going(names: str, tmp_path: Path) -> None:
    topic, path = fresh(names), tmp_path / "lines"
    path.write_text('{"body": "a"}\n{"body": "b", "properties": {"KEYS": "x"}}\n{"body": "c"}\n')
    ended = skyrocket(names, "produce", topic, "--json", "--in-flight", "1", "--file", str(path))
    assert ended.code == 2
    assert f"{path}, line 2: property KEYS is reserved" in ended.errors
    assert "1 message had been sent" in ended.errors
    kept = skyrocket(names, "produce", topic, "--json", "--keep-going", "--file", str(path))
    assert kept.code == 1
    assert "2 messages were sent, 1 failed" in kept.errors


def test_credentials_come_from_options_or_the_environment(tmp_path: Path) -> None:
    (tmp_path / "plain_acl.yml").write_text(ACCOUNTS)
    with running_standalone(tmp_path, {"aclEnable": "true", "aclConfigPath": str(tmp_path)}) as server:
        names, secret = server.name_server, ADMIN_ACCOUNT.secret_key
        refused = skyrocket(names, "produce", "Orders", "x")
        assert refused.code == 1
        assert "check the permission" in refused.errors or "accessKey" in refused.errors
        account = {"ROCKETMQ_ACCESS_KEY": ADMIN_ACCOUNT.access_key, "ROCKETMQ_SECRET_KEY": secret}
        sent = skyrocket(names, "produce", "Orders", "x", **account)
        assert sent.code == 0, sent.errors
        options = ["--access-key", ADMIN_ACCOUNT.access_key, "--secret-key", secret]
        read = ("consume", "Orders", "-o", "body", *options)
        wait_until(lambda: skyrocket(names, *read).code == 0, "name servers have heard of the new topic")
        assert well(names, *read) == "x\n"
        assert skyrocket(names, "consume", "Orders").code == 1
