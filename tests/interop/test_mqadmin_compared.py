"""`skyrocket mqadmin` beside RocketMQ's mqadmin, against Skyrocket, RocketMQ 5.4.0 and 4.9.7: the same rows.

What differs by nature is made equal first: times, rates, ports, ids, the order of Java's maps, and who asks.
"""

import contextlib
import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from skyrocket.cli.mqadmin.commands import COMMANDS
from skyrocket.client import Message, blocking
from skyrocket.config.sections import StoreConfig
from tests.cluster.command_line import at
from tests.interop.apache import Apache
from tests.interop.apache_admin import admin_outputs
from tests.interop.compared_verbs import ALL, COMPARED, ELSEWHERE, Compared
from tests.interop.matrix import FAIL, PASS, Cell, record
from tests.interop.rocketmq_broker import running_broker
from tests.interop.standalone import running_standalone
from tests.waiting import wait_until

RUN_TIMEOUT_S = 500
TOOL = "5.4.0"
SERVER_TESTS = [
    pytest.param(server, marks=[pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(700)]) for server in ALL
]
CASES = [(server, number) for number, verb in enumerate(COMPARED) for server in verb.servers]


def test_every_name_is_compared_or_has_its_reason() -> None:
    compared = {verb.name for verb in COMPARED}
    assert compared | ELSEWHERE.keys() == COMMANDS.keys()
    assert compared & ELSEWHERE.keys() == set()


@dataclass
class Session:
    """What both tools printed, by the number of the command."""

    java: dict[int, str]
    ours: dict[int, str]


@pytest.fixture(scope="module")
def session_of(
    apache_of_version: Callable[[str], Apache], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Session]:
    @functools.cache
    def outcome(server: str) -> Session | Exception:
        home = tmp_path_factory.mktemp(f"compared-{server}")
        try:
            tool = apache_of_version(TOOL)
            with contextlib.ExitStack() as stack:
                if server == "skyrocket":
                    names = stack.enter_context(running_standalone(home)).name_server
                else:
                    apache = apache_of_version(server)
                    broker = running_broker(apache, home / "store", StoreConfig(commit_log_file_size=4 << 20))
                    names = stack.enter_context(broker).name_server
                return _run(tool, server, names, home)
        except Exception as failure:  # noqa: BLE001 - raised below, for every verb, without another run
            return failure

    def session(server: str) -> Session:
        found = outcome(server)
        if isinstance(found, Exception):
            raise found
        return found

    return session


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("server", "number"), CASES, ids=[f"{s}-{n}-{COMPARED[n].name}" for s, n in CASES])
def test_our_tool_prints_the_rows_of_rocketmqs(session_of: Callable[[str], Session], server: str, number: int) -> None:
    session, verb = session_of(server), COMPARED[number]
    cell = Cell(FAIL)
    try:
        theirs, ours = rows(verb, session.java[number]), rows(verb, session.ours[number])
        if reason := verb.reason_at(server):
            assert session.ours[number].strip()
            assert "CODE: " not in session.ours[number]
            cell = Cell(PASS, reason)
        else:
            missing, added = theirs - ours, ours - theirs
            assert (sorted(missing), sorted(added)) == ([], [])
            cell = Cell(PASS)
    finally:
        record(f"skyrocket-mqadmin-{server}", f"{verb.name} {number}", cell)


def _run(tool: Apache, server: str, names: str, home: Path) -> Session:
    out = home / "out"
    out.mkdir()
    for mark in "JS":
        listed = {"topicName": f"Listed{mark}", "readQueueNums": 3, "writeQueueNums": 3, "perm": 6}
        (out / f"topics{mark}.json").write_text(json.dumps([listed]))
        (out / f"groups{mark}.json").write_text(json.dumps([{"groupName": f"Listed{mark}", "retryMaxTimes": 7}]))
    numbers = [number for number, verb in enumerate(COMPARED) if server in verb.servers]
    with contextlib.chdir(out), scene(names) as places:  # some verbs write where they stand
        places |= {"n": names, "out": str(out)}
        session = Session({}, {})
        for phase in range(3):
            chosen = [number for number in numbers if COMPARED[number].phase == phase]
            commands = [COMPARED[n].command.format(**places, x="J") for n in chosen]
            session.java.update(zip(chosen, admin_outputs(tool, commands, RUN_TIMEOUT_S), strict=True))
            for number in chosen:
                done = at(names, "mqadmin", *COMPARED[number].command.format(**places, x="S").split())
                session.ours[number] = done.output + done.errors
    return session


@contextlib.contextmanager
def scene(names: str) -> Iterator[dict[str, str]]:
    """Orders with eight messages, all consumed by Readers, whose consumer runs, as does a producer of Senders."""
    seen: list[str] = []
    consumer = blocking.PushConsumer("Readers", names)
    consumer.on("Orders")(lambda message: seen.append(message.message_id))
    with blocking.Admin(names) as admin:
        wait_until(lambda: bool(admin.cluster().brokers))
        admin.create_topic("Orders", 4)
        admin.create_group("Readers")
        wait_until(lambda: "Orders" in admin.topics())
        with blocking.Producer("Senders", names) as producer, consumer:
            queues = admin.queues("Orders")
            sent = [
                producer.send(Message("Orders", b"body-%d" % i, "t", [f"key-{i}"]), queue=queues[i % 4])
                for i in range(8)
            ]
            wait_until(lambda: len(seen) == 8)
            wait_until(lambda: [each.lag for each in admin.consumer_lag("Readers", "Orders")] == [0] * 4)
            # Its retry topic is committed a moment later; one tool must not see less than the other.
            wait_until(lambda: any(each.queue.topic == "%RETRY%Readers" for each in admin.consumer_lag("Readers")))
            wait_until(lambda: len(admin.consumer_connections("Readers").connections) == 1)
            (member,) = admin.consumer_connections("Readers").connections
            (place,) = admin.brokers()
            yield {
                "b": place.address,
                "id": sent[3].offset_message_id,
                "unique": sent[3].message_id,
                "client": member.client_id,
            }


# ── making both equal ────────────────────────────────────────────────────────────────────────────────────────────────

_EQUAL = [
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(,\d+)?", "<time>"),
    (r"\b(20\d{12,15}|1970\d{10,13})\b", "<digits>"),
    (r"\b1[78]\d{11}\b", "<ms>"),
    (r"127\.0\.0\.1:\d+", "<address>"),
    (r"\b\d+\.\d+\b", "<rate>"),
    (r"\b[0-9A-F]{32,56}\b", "<id>"),
    (r"true \d+$", "true <ms>"),
    (r"(Orders Readers \d+ <rate> <rate>) \d+ \d+$", r"\1 <day> <day>"),
    (r"broker-a \d SEND_OK", "broker-a <queue> SEND_OK"),
    (r"queueId=\d+\], queueOffset", "queueId=<queue>], queueOffset"),
    (r"\b(New|Fifo|Bad|Group|Space|Listed|topics|groups)[JS]\b", r"\1"),
    (r"(spentTimeMills|rt|storeSize|queueOffset|bodyCRC|commitLogOffset)=\d+", r"\1=<n>"),
    (r"\brt=\d+ms", "rt=<n>ms"),
    (r"recallHandle=\w+", "recallHandle=<h>"),
    (r"OK, \d+", "OK, <n>"),
]
# Rows that tell of the moment of the call, or of who calls.
_OF_THE_MOMENT = re.compile(
    r"CLIENT_INNER_PRODUCER|RMQ_SYS_TRANS|"
    r"mqadmin-\d+|producer group \(\d+\)|putMessageEntireTimeMax|Tps|TPS|\bHour\b|runtime|"
    r"[dD]iskRatio|DirCapacity|Latency|^at |^\.\.\. |Exception|^See https|^For more info|HeadWait|LOAD|"
    r"putMessageDistributeTime|dispatchBehind|^skyrocket mqadmin|InTotal|TotalTodayNow|DefaultCluster broker-a [<\d]|"
    r"QueueSize|getMessageEntireTimeMax|TOOLS_CONSUMER|remain|^\d+ \S+@|last(Pull|Consume)Timestamp|^Avg RT|"
    r"putMessage|scheduleMessageOffset|%RETRY%(TOOLS|GroupJ|GroupS|Group)|commitLogMaxOffset|timer|"
    r"bootTimestamp|earliestMessage|consumeTimestamp|MasterCommitLogMaxOffset|msgGetTotal|msgPutTotal|"
    r"^Message Body Path"
)


def rows(verb: Compared, printed: str) -> Counter[str]:
    """The lines that count, with what differs by nature made equal."""
    if verb.name in ("topicRoute", "getColdDataFlowCtrInfo") and "{" in printed:
        printed = _json_lines(printed)
    found: Counter[str] = Counter()
    for line in printed.splitlines():
        text = " ".join(line.split())
        for pattern, word in _EQUAL:
            text = re.sub(pattern, word, text)
        text = re.sub(r"\{([^{}]*=[^{}]*)\}", lambda match: _sorted_map(match[1]), text)
        if code := re.search(r"CODE: (\d+)", text):  # what else is said of a failure is each tool's own
            return Counter({f"CODE: {code[1]}": 1})
        if text and not _OF_THE_MOMENT.search(text):
            found[text] = 1
    return found


def _sorted_map(text: str) -> str:
    return "{" + ", ".join(sorted(text.split(", "))) + "}"


def _json_lines(text: str) -> str:
    """JSON, also with Java's bare number keys, one line for each member; what stands before it stays."""
    head, brace, rest = text.partition("{")
    body = re.sub(r"([{,]\s*)(\d+)(\s*:)", r'\1"\2"\3', brace + rest)
    try:
        content, _ = json.JSONDecoder().raw_decode(body)
    except ValueError:
        return text
    return head + "\n" + "\n".join(f"{key}={json.dumps(value, sort_keys=True)}" for key, value in content.items())
