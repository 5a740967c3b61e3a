"""Three brokers and a controller as processes, each of either maker, with our name server."""

import asyncio
import contextlib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skyrocket.protocol.bodies.controller import BROKER_NAMES, BrokerReplicasInfo, ReplicasInfo
from skyrocket.protocol.bodies.tables import KvTable
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.admin_broker import GetBrokerRuntimeInfo
from skyrocket.protocol.requests.admin_topics import GetTopicConfig, UpdateAndCreateTopic
from skyrocket.protocol.requests.controller import GetSyncStateData
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from tests.interop.apache import Apache
from tests.interop.controller_mode import our_controller
from tests.interop.failover.loads import BROKER, QUEUES, Load
from tests.interop.pairs.members import ApacheMember, Member, NameServer, OurMember
from tests.interop.rocketmq_broker import await_port, place_log_settings, process_of
from tests.interop.whole_queue import messages_at
from tests.ports import free_port

OURS, APACHE = "ours", "5.4.0"
SECONDS: Final = 180.0
# What both makers read: nothing acknowledged may be lost.
SAFE: Final = {"allAckInSyncStateSet": "true", "minInSyncReplicas": 2}
_PERMISSION = 6


@dataclass(frozen=True)
class Makers:
    """Who makes the brokers, and who the controller: OURS, or a version of Apache's."""

    brokers: tuple[str, ...]
    controller: str

    def __str__(self) -> str:
        """As `ours+ours+5.4.0-under-ours`."""
        return f"{'+'.join(self.brokers)}-under-{self.controller}"


@contextlib.contextmanager
def apaches_controller(apache: Apache, folder: Path, settings: Mapping[str, object] | None = None) -> Iterator[str]:
    """Its address; it is alone, and leads after some seconds."""
    home, port = folder / "controller-home", free_port()
    home.mkdir()
    place_log_settings(home)
    given = {
        "controllerDLegerGroup": "group1",
        "controllerDLegerPeers": f"n0-127.0.0.1:{port}",
        "controllerDLegerSelfId": "n0",
        "controllerStorePath": home / "dledger",
        "mappedFileSize": 1 << 20,
        **(settings or {}),
    }
    main_class = "org.apache.rocketmq.controller.ControllerStartup"
    with process_of(apache, home, "controller", main_class, given) as process:
        await_port(process, port, home / "controller.log")
        yield f"127.0.0.1:{port}"


class FailoverSet:
    """A running set; what it is asked goes over the wire."""

    def __init__(self, members: Sequence[Member], names: str, controller: str) -> None:
        self.members = members
        self.names = names
        self.controller = controller

    def info(self) -> ReplicasInfo:
        """As the controller knows it; an empty one while it does not answer."""

        async def ask() -> ReplicasInfo:
            async with RemotingClient() as client:
                reply = await client.call(self.controller, GetSyncStateData(), BROKER_NAMES.encode((BROKER,)))
                return BrokerReplicasInfo.decode(reply.body).replicas.get(BROKER, ReplicasInfo())

        try:
            return asyncio.run(ask())
        except (RequestError, RemotingError):
            return ReplicasInfo()

    def await_info(self, condition: Callable[[ReplicasInfo], object], what: str) -> ReplicasInfo:
        deadline = time.monotonic() + SECONDS
        while not condition(info := self.info()):
            assert time.monotonic() < deadline, f"not within {SECONDS:.0f} s: {what}; the set is {info}"
            time.sleep(0.1)
        return info

    def await_whole(self) -> ReplicasInfo:
        """All are in sync with a master."""
        wanted = len(self.members)
        return self.await_info(
            lambda info: info.master_address and len(info.in_sync_replicas) == wanted, f"{wanted} in sync"
        )

    def at(self, address: str | None) -> Member:
        (found,) = (member for member in self.members if member.address == address)
        return found

    def create_topics(self, *topics: str) -> None:
        """At the master; returns when the slaves have heard of them too, as one of them is master soon."""
        master = self.await_whole().master_address
        assert master is not None

        async def create() -> None:
            async with RemotingClient() as client, asyncio.timeout(SECONDS):
                for topic in topics:
                    await client.call(master, _new_topic(topic), timeout_seconds=20)
                for member in self.members:
                    while not await _know(client, member.address, topics):
                        await asyncio.sleep(0.2)

        asyncio.run(create())

    def kill_master(self) -> Member:
        """Returns the killed one when the controller has another master.

        It is killed when its set is whole: a master that is alone in sync has nobody who may take its place.
        """
        before = self.await_whole()
        victim = self.at(before.master_address)
        victim.kill()
        self.await_info(
            lambda info: info.master_address and (info.master_epoch or 0) > (before.master_epoch or 0),
            "another master",
        )
        return victim

    # ── at the end ───────────────────────────────────────────────────────────────────────────────────────────────────

    def await_same_end(self) -> None:
        """Nothing more is written, and all logs end at the same place; looked at three times."""
        deadline, seen = time.monotonic() + SECONDS, Counter[tuple[int, ...]]()
        while True:
            ends = tuple(map(_log_end, self.members))
            seen = Counter({ends: seen[ends] + 1})
            if len(set(ends)) == 1 and ends[0] >= 0 and seen[ends] == 3:
                return
            assert time.monotonic() < deadline, f"the logs end at {ends}"
            time.sleep(1.0)

    def rows(self, topic: str) -> dict[int, list[int]]:
        """The numbers that each queue has at the master."""
        master = self.info().master_address
        assert master is not None

        async def read() -> dict[int, list[int]]:
            async with RemotingClient() as client:
                return {
                    queue_id: [int(message.body) for message in await messages_at(client, master, topic, queue_id)]
                    for queue_id in range(QUEUES)
                }

        return asyncio.run(read())

    def check(self, loads: Sequence[Load]) -> None:
        """Nothing acknowledged is lost, each queue is in order, and all logs are the same when all have stopped."""
        self.await_whole()
        self.await_same_end()
        for load in loads:
            for queue_id, found in self.rows(load.topic).items():
                lost = sorted(set(load.acknowledged[queue_id]) - set(found))
                assert not lost, f"{load.topic}, queue {queue_id}: {len(lost)} lost, as {lost[:10]}"
                assert found == sorted(found), f"{load.topic}, queue {queue_id}: the order is not kept"
        for member in self.members:
            member.stop()
        first, *others = self.members
        for other in others:
            command = [sys.executable, "-m", "skyrocket", "inspect", str(first.store), "--compare", str(other.store)]
            done = subprocess.run([*command, "--strict"], capture_output=True, text=True, timeout=600, check=False)
            assert done.returncode == 0, done.stdout + done.stderr


def _new_topic(topic: str) -> UpdateAndCreateTopic:
    return UpdateAndCreateTopic(
        topic=topic,
        default_topic="TBW102",
        read_queue_nums=QUEUES,
        write_queue_nums=QUEUES,
        perm=_PERMISSION,
        topic_filter_type="SINGLE_TAG",
        order=False,
    )


async def _know(client: RemotingClient, address: str, topics: Sequence[str]) -> bool:
    try:
        for topic in topics:
            await client.call(address, GetTopicConfig(topic=topic))
    except (RequestError, RemotingError):
        return False
    return True


def _log_end(member: Member) -> int:
    """Where the newest record of a broker's log ends; -1 when it does not say so now."""

    async def ask() -> int:
        async with RemotingClient() as client:
            reply = await client.call(member.address, GetBrokerRuntimeInfo(), timeout_seconds=10)
            return int(KvTable.decode(bytes(reply.body)).table["commitLogMaxOffset"])

    try:
        return asyncio.run(ask())
    except (RequestError, RemotingError):  # Apache's has no sample of its rates in its first seconds
        return -1


@contextlib.contextmanager
def failover_set(
    makers: Makers,
    folder: Path,
    apache: Apache | None = None,
    *,
    broker_settings: Mapping[str, object] | None = None,
    controller_settings: Mapping[str, object] | None = None,
) -> Iterator[FailoverSet]:
    """Started, and in sync."""
    with contextlib.ExitStack() as stack:
        names = stack.enter_context(NameServer(folder))
        if makers.controller == OURS:
            pairs = [f"{key}={value}" for key, value in (controller_settings or {}).items()]
            controller = stack.enter_context(our_controller(folder, *pairs))
        else:
            assert apache is not None
            controller = stack.enter_context(apaches_controller(apache, folder, controller_settings))
        settings = {"enableControllerMode": "true", "controllerAddr": controller, **SAFE, **(broker_settings or {})}
        members: list[Member] = []
        for number, maker in enumerate(makers.brokers):
            members.append(_member(maker, folder, f"broker-{number}", names.address, settings, apache))
            stack.callback(members[-1].kill)
            members[-1].start()
        found = FailoverSet(members, names.address, controller)
        found.await_whole()
        yield found


def _member(
    maker: str, folder: Path, name: str, names: str, settings: Mapping[str, object], apache: Apache | None
) -> Member:
    if maker == OURS:
        return OurMember(folder, name, "ASYNC_MASTER", names, settings)
    assert apache is not None
    return ApacheMember(apache, folder, name, "ASYNC_MASTER", names, settings)
