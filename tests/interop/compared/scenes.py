"""The clusters that both tools are pointed at: one broker, one that keeps users, a controller with two replicas."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from skyrocket.client import Acl, ClientSettings, ConsumeFromWhere, Message, PushConsumerSettings, blocking
from skyrocket.config.sections import StoreConfig
from skyrocket.protocol.requests.controller import ApplyBrokerId
from skyrocket.remoting.client import RemotingClient
from tests.interop.apache import Apache
from tests.interop.compared.verb import OURS, V5
from tests.interop.failover.sets import OURS as MADE_BY_US
from tests.interop.failover.sets import Makers, failover_set
from tests.interop.rocketmq_broker import running_broker
from tests.interop.standalone import running_standalone
from tests.waiting import wait_until

ApacheOf = Callable[[str], Apache]

FILES = StoreConfig(commit_log_file_size=4 << 20)
FROM_FIRST = PushConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
ROOT = ("root", "secret-0")
_AUTH = "org.apache.rocketmq.auth"
# Users are kept, and nobody is asked who he is; topics, groups and offsets are in RocksDB.
_APACHE_KEEPS = {
    "authenticationMetadataProvider": f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider",
    "authorizationMetadataProvider": f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider",
    "storeType": "defaultRocksDB",
}
_OURS_KEEPS = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": json.dumps({"username": ROOT[0], "password": ROOT[1]}),
    "innerClientAuthenticationCredentials": json.dumps({"accessKey": "inner", "secretKey": "secret-9"}),
}


def _is_settled() -> None:
    pass


@dataclass(frozen=True)
class Scene:
    """A running cluster, what stands for the placeholders there, and as whom the tools ask."""

    names: str
    places: Mapping[str, str]
    account: tuple[str, str] | None = None
    settle: Callable[[], object] = _is_settled  # wait until nothing moves any more: before each tool


@contextlib.contextmanager
def plain(server: str, apache_of: ApacheOf, home: Path) -> Iterator[Scene]:
    """Orders with eight messages, all consumed by Readers, whose consumer runs, as does a producer of Senders."""
    with _broker(server, apache_of, home) as names, _consumed(names) as places:
        log = home / "records"
        first, *_ = sorted((home / "store" / "commitlog").iterdir())
        with open(first, "rb") as file:
            log.write_bytes(file.read(64 << 10))
        yield Scene(names, {**places, "log": str(log)})


@contextlib.contextmanager
def _broker(server: str, apache_of: ApacheOf, home: Path, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Its name server."""
    if server == OURS:
        with running_standalone(home, settings) as ours:
            yield ours.name_server
    else:
        with running_broker(apache_of(server), home / "store", FILES, settings) as theirs:
            yield theirs.name_server


@contextlib.contextmanager
def _consumed(names: str) -> Iterator[dict[str, str]]:
    seen: list[str] = []
    consumer = blocking.PushConsumer("Readers", names, FROM_FIRST)  # however slowly it begins
    consumer.on("Orders")(lambda message: seen.append(message.message_id))
    with blocking.Admin(names) as admin:
        wait_until(lambda: bool(admin.cluster().brokers))
        admin.create_topic("Orders", 4)
        admin.create_topic("Traced", 1)
        admin.create_group("Readers")
        wait_until(lambda: {"Orders", "Traced"} <= set(admin.topics()))
        traced = _traced(names, admin)
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
                "traced": traced,
                "client": member.client_id,
            }


def _traced(names: str, admin: blocking.Admin) -> str:
    """The id of a message whose producer and consumer have told of it; both are gone."""
    client = ClientSettings(names, trace=True, instance_name="tracing")
    seen: list[str] = []
    consumer = blocking.PushConsumer("Tracers", settings=FROM_FIRST, client=client)
    consumer.on("Traced")(lambda message: seen.append(message.message_id))
    with blocking.Producer("TracedSenders", client=client) as producer, consumer:
        sent = producer.send(Message("Traced", b"x")).message_id
        wait_until(lambda: sent in seen)
    wait_until(lambda: len(admin.trace(sent)) == 3)  # sent, call began, call ended
    return sent


@contextlib.contextmanager
def keeping_users(server: str, apache_of: ApacheOf, home: Path) -> Iterator[Scene]:
    """A broker that keeps users, with a topic and a group that has consumed of it."""
    settings = _OURS_KEEPS if server == OURS else {**_APACHE_KEEPS, "authConfigPath": str(home / "auth")}
    account = ROOT if server == OURS else None
    with _broker(server, apache_of, home, settings) as names:
        with blocking.Admin(names, credentials=None if account is None else Acl(*account)) as admin:
            wait_until(lambda: bool(admin.cluster().brokers))
            (place,) = admin.brokers()
            admin.create_topic("Orders", 2)
            admin.create_group("Readers")
            wait_until(lambda: "Orders" in admin.topics())
            for queue in admin.queues("Orders"):
                admin.set_offset("Readers", queue, 7)
        yield Scene(names, {"b": place.address, "store": str(home / "store")}, account)


@contextlib.contextmanager
def controlled(server: str, apache_of: ApacheOf, home: Path) -> Iterator[Scene]:
    """A controller and two replicas in sync; and the ids of a set for each tool whose brokers never came."""
    maker = MADE_BY_US if server == OURS else V5
    apache = None if server == OURS else apache_of(V5)
    with failover_set(Makers((maker, maker), maker), home, apache) as replicas:

        async def apply(tool: str) -> None:
            async with RemotingClient() as client:
                for number in (1, 2):
                    request = ApplyBrokerId(
                        cluster_name="DefaultCluster",
                        broker_name=f"ghost{tool}",
                        applied_broker_id=number,
                        register_check_code=f"127.0.0.1:{number};0",
                    )
                    await client.call(replicas.controller, request)

        for tool in "JS":
            asyncio.run(apply(tool))

        def settle() -> None:
            master = replicas.await_whole().master_address
            with blocking.Admin(replicas.names) as admin:
                wait_until(lambda: [each.address for each in admin.brokers(with_slaves=False)] == [master])
                wait_until(lambda: len(admin.brokers()) == 2)

        yield Scene(replicas.names, {"c": replicas.controller}, settle=settle)


SCENES = {"plain": plain, "users": keeping_users, "controllers": controlled}
