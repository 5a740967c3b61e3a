"""A master and a slave, of one maker or of two: 200,000 messages of all kinds while each is ended and comes back.

At the end both logs are the same byte by byte, both sides give the same messages to consumers, and none that was
acknowledged is missing. With `-o log_cli=true -o log_cli_level=INFO` it tells what happens.
"""

import asyncio
import contextlib
import logging
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from skyrocket.protocol.bodies.tables import KvTable
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.admin_broker import GetBrokerRuntimeInfo
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from tests.interop.apache import Apache
from tests.interop.pairs.load import TOPIC, Kind, Load, Unit, consume_on_the_second_try, parts, units
from tests.interop.pairs.members import ApacheMember, Member, NameServer, OurMember
from tests.interop.whole_queue import messages_at
from tests.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1800)]

_logger = logging.getLogger(__name__)

COUNT = 200_000
RETURNED = 300
OURS = "ours"
SECONDS = 240.0
QUEUES = range(8)


@dataclass(frozen=True)
class Pair:
    """Who makes the master and who the slave: OURS, or a version of Apache's."""

    master: str
    slave: str
    role: str = "ASYNC_MASTER"

    def __str__(self) -> str:
        return f"{self.master} master, {self.slave} slave"


PAIRS = [
    Pair("5.4.0", OURS),
    Pair(OURS, "5.4.0"),
    Pair("4.9.7", OURS),
    Pair(OURS, "4.9.7"),
    Pair(OURS, OURS, "SYNC_MASTER"),
]


def log_end(member: Member) -> int:
    """Where the newest record of a broker's log ends; -1 when it does not say so now."""

    async def ask() -> int:
        async with RemotingClient() as client:
            reply = await client.call(member.address, GetBrokerRuntimeInfo(), timeout_seconds=10)
            return int(KvTable.decode(bytes(reply.body)).table["commitLogMaxOffset"])

    try:
        return asyncio.run(ask())
    except (RequestError, RemotingError):  # Apache's has no sample of its rates in its first seconds
        return -1


def await_same_end(master: Member, slave: Member) -> None:
    """Nothing more is written at the master, and the slave has all of it; looked at three times."""
    deadline, seen = time.monotonic() + SECONDS, Counter[tuple[int, int]]()
    while True:
        ends = log_end(master), log_end(slave)
        seen = Counter({ends: seen[ends] + 1})
        if ends[0] == ends[1] >= 0 and seen[ends] == 3:
            return
        assert time.monotonic() < deadline, f"the slave's log ends at {ends[1]}, its master's at {ends[0]}"
        time.sleep(1.5)


async def keys_at(client: RemotingClient, broker: str) -> list[list[int]]:
    """The numbers of all messages that a broker gives to consumers, a list per queue."""
    return [
        [int(message.properties["KEYS"]) for message in await messages_at(client, broker, TOPIC, queue_id)]
        for queue_id in QUEUES
    ]


def read_all(member: Member, wanted: set[int]) -> list[list[int]]:
    """What a broker gives to consumers, once it gives all that is wanted: a slave must have heard of the topic."""

    async def read() -> list[list[int]]:
        async with RemotingClient() as client:
            deadline = time.monotonic() + SECONDS
            while True:
                found: list[list[int]] = []
                with contextlib.suppress(RemotingError):
                    found = await keys_at(client, member.address)
                missing = wanted.difference(*found)
                if not missing:
                    return found
                assert time.monotonic() < deadline, f"{member.address} lacks {len(missing)}: {sorted(missing)[:10]}"
                await asyncio.sleep(2)

    return asyncio.run(read())


def visible_of(sent: Iterable[Unit]) -> set[int]:
    """The numbers that consumers shall see."""
    return {number for unit in sent if not unit.is_rolled_back for number in unit.numbers}


def assert_in_order(found: list[list[int]], sent: Iterable[Unit]) -> None:
    """Messages of one sharding key are in one queue; one that was sent again counts where it stands first."""
    place = {number: (queue, at) for queue, numbers in enumerate(found) for at, number in _first_places(numbers)}
    for unit in sent:
        if unit.kind is Kind.ORDERED:
            places = [place[number] for number in unit.numbers]
            assert len({queue for queue, _ in places}) == 1
            assert places == sorted(places), unit


def _first_places(numbers: list[int]) -> Iterator[tuple[int, int]]:
    seen: set[int] = set()
    for at, number in enumerate(numbers):
        if number not in seen:
            seen.add(number)
            yield at, number


def assert_identical_logs(master: Member, slave: Member) -> str:
    """Both have stopped; the command's own words are the reason of a failure."""
    command = [sys.executable, "-m", "skyrocket", "inspect", str(master.store), "--compare", str(slave.store)]
    done = subprocess.run([*command, "--strict"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def member(maker: str, place: tuple[Path, str], role: str, names: str, apache: Callable[[str], Apache]) -> Member:
    folder, name = place
    if maker == OURS:
        return OurMember(folder, name, role, names)
    return ApacheMember(apache(maker), folder, name, role, names)


async def _send_through(load: Load, wanted: list[Unit], trouble: Callable[[], None]) -> None:
    """Half of the messages, then trouble while the other half is sent."""
    half = load.acknowledged + sum(len(unit.numbers) for unit in wanted) // 2
    sending = asyncio.create_task(load.send(wanted))
    await until(lambda: load.acknowledged >= half or sending.done(), "messages are sent", seconds=SECONDS)
    await asyncio.to_thread(trouble)
    await sending


async def run_load(names: str, master: Member, slave: Member, wanted: list[Unit], log: "Story") -> None:
    def again(end: Callable[[], None], start: Callable[[], None]) -> Callable[[], None]:
        def trouble() -> None:
            end()
            start()

        return trouble

    troubles: list[tuple[str, Callable[[], None]]] = [
        ("nothing happens", lambda: None),
        ("the slave is killed", again(slave.kill, slave.start)),
        ("the master is killed", again(master.kill, master.start)),
        ("the slave is restarted", again(slave.stop, slave.start)),
        ("the master is restarted", again(master.stop, master.start)),
    ]
    async with Load(names) as load:
        for part, (name, trouble) in zip(parts(wanted, len(troubles)), troubles, strict=True):
            await _send_through(load, list(part), trouble)
            log.tell(f"{name}: {load.acknowledged:,} acknowledged, {load.sent_again:,} attempts failed so far")
        await consume_on_the_second_try(names, RETURNED)
        log.tell(f"{RETURNED} messages were sent back and consumed again")
        # The producer stays: it is asked for transactions whose end was lost with a master.
        await asyncio.to_thread(read_all, master, visible_of(wanted))


class Story:
    """What happened when; shown when the test fails."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._began = time.monotonic()

    def tell(self, text: str) -> None:
        _logger.info("%s, %.0f s: %s", self._title, time.monotonic() - self._began, text)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_a_pair_ends_with_the_same_log_and_serves_every_acknowledged_message_from_either_side(
    tmp_path: Path, apache_of_version: Callable[[str], Apache], pair: Pair
) -> None:
    story, wanted = Story(str(pair)), units(COUNT, seed=14)
    with NameServer(tmp_path) as names, contextlib.ExitStack() as stack:
        master = member(pair.master, (tmp_path, "master"), pair.role, names.address, apache_of_version)
        slave = member(pair.slave, (tmp_path, "slave"), "SLAVE", names.address, apache_of_version)
        for each in (master, slave):
            stack.callback(each.kill)
            each.start()
        await_same_end(master, slave)
        story.tell("both have started")
        asyncio.run(run_load(names.address, master, slave, wanted, story))
        visible = visible_of(wanted)
        await_same_end(master, slave)
        story.tell("all is delivered, and both logs have the same end")
        at_slave = read_all(slave, visible)
        at_master = read_all(master, visible)
        story.tell(f"either side gives {sum(map(len, at_slave)):,} messages to consumers")
        slave.stop()
        master.stop()
    assert at_master == at_slave
    assert {number for queue in at_master for number in queue} == visible, "what was rolled back is not seen"
    assert_in_order(at_master, wanted)
    story.tell(assert_identical_logs(master, slave).strip())
