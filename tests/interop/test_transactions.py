"""RocketMQ's own producer of transactions against our broker, and either broker on the store of the other."""

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from skyrocket.config.sections import StoreConfig
from skyrocket.format.record import decode_records
from skyrocket.model.message import StoredMessage
from skyrocket.store.message_store import MessageStore
from tests.integration.client.servers import registered
from tests.interop.apache import VERSIONS, Apache, Unavailable, obtain
from tests.interop.client_program import ClientProgram, running_client
from tests.interop.observer import Observer, observing
from tests.interop.rocketmq_broker import running_broker
from tests.interop.standalone import running_standalone
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

GROUP, TOPIC = "TransactionGroup", "TransactionTopic"
COMMIT, ROLLBACK, UNKNOWN = "COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW"
SOON = {"transactionTimeOut": "1000", "transactionCheckInterval": "1000", "transactionOpBatchInterval": "500"}


def rocketmq(version: str) -> Apache:
    try:
        return obtain(version)
    except Unavailable as reason:
        pytest.skip(str(reason))


def begin(client: ClientProgram, body: str, state: str, **wishes: Any) -> None:
    sent = client.do("begin", topic=TOPIC, body=body, state=state, **wishes)
    assert (sent["status"], sent["state"]) == ("SEND_OK", state)


def asked(client: ClientProgram) -> list[str]:
    return [check["body"] for check in client.do("checks")]


def delivered(observer: Observer) -> list[bytes]:
    return sorted(message.body for message in observer.stored(TOPIC))


@pytest.mark.parametrize("version", VERSIONS)
def test_rocketmqs_producer_commits_rolls_back_and_answers_checks(tmp_path: Path, version: str) -> None:
    apache = rocketmq(version)
    with running_standalone(tmp_path, SOON) as server, observing(server) as observer:
        observer.create_topic(TOPIC, 4)
        command = apache.command("TransactionClient", server.name_server, GROUP, home=tmp_path)
        with running_client(command, {}, tmp_path) as client:
            begin(client, "committed", COMMIT)
            begin(client, "rolled back", ROLLBACK)
            begin(client, "committed later", UNKNOWN)
            begin(client, "rolled back later", UNKNOWN)
            begin(client, "immune", UNKNOWN, immunity="4")
            began = time.monotonic()
            wait_until(lambda: Counter(asked(client))["committed later"] >= 2, "it is asked twice")
            check = client.do("checks")[0]
            assert (check["topic"], check["times"]) == (TOPIC, "1")
            assert "immune" not in asked(client) or time.monotonic() - began >= 4
            client.do("decide", body="committed later", state=COMMIT)
            client.do("decide", body="rolled back later", state=ROLLBACK)
            client.do("decide", body="immune", state=COMMIT)
            wait_until(lambda: len(delivered(observer)) == 3, "all that was committed is delivered")
            assert time.monotonic() - began >= 4
            settled = len(asked(client))
            time.sleep(3)
            assert len(asked(client)) == settled
            assert not {"committed", "rolled back"} & set(asked(client))
            assert delivered(observer) == [b"committed", b"committed later", b"immune"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_producer_that_comes_back_is_asked_and_so_is_another_one(tmp_path: Path, version: str) -> None:
    """The first dies with its transaction open; the broker is stopped and started; the second knows the answer."""
    apache = rocketmq(version)
    patient = {**SOON, "transactionCheckMax": "1000"}  # a 4.9 client beats its heart every 30 s, whatever happens
    with running_standalone(tmp_path, patient) as server, observing(server) as observer:
        observer.create_topic(TOPIC, 4)
        command = apache.command("TransactionClient", server.name_server, GROUP, home=tmp_path)
        with running_client(command, {}, tmp_path) as client:
            begin(client, "orphan", UNKNOWN)
            begin(client, "ended", COMMIT)
            # The end of a transaction is told without waiting for an answer, and the client is killed now.
            wait_until(lambda: delivered(observer) == [b"ended"], "the ended one is delivered")
    with running_standalone(tmp_path, patient) as server, observing(server) as observer:
        command = apache.command("TransactionClient", server.name_server, GROUP, home=tmp_path)
        with running_client(command, {}, tmp_path) as client:
            client.do("decide", body="orphan", state=COMMIT)
            # A producer that has sent nothing yet knows no broker: RocketMQ's client learns of them by its topics.
            begin(client, "first of its own", COMMIT)
            wait_until(lambda: len(delivered(observer)) == 3, "the orphan is delivered", seconds=60)
            assert set(asked(client)) == {"orphan"}
            assert delivered(observer) == [b"ended", b"first of its own", b"orphan"]


def test_rocketmqs_broker_goes_on_with_our_transactions(tmp_path: Path) -> None:
    apache = rocketmq("5.4.0")
    with running_standalone(tmp_path, {**SOON, "transactionCheckInterval": "100000"}) as server:
        with observing(server) as observer:
            observer.create_topic(TOPIC, 4)
        command = apache.command("TransactionClient", server.name_server, GROUP, home=tmp_path)
        with running_client(command, {}, tmp_path) as client:
            begin(client, "open", UNKNOWN)
            begin(client, "committed", COMMIT)
            begin(client, "rolled back", ROLLBACK)
            time.sleep(1)
    store, config = server.store, StoreConfig()
    with running_broker(apache, store, config, {**SOON, "transactionTimeOut": "5000"}) as broker:
        asyncio.run(registered(broker.name_server))  # its port answers a moment before
        command = apache.command("TransactionClient", broker.name_server, GROUP, home=tmp_path)
        with running_client(command, {}, tmp_path) as client:
            for body in ("open", "committed", "rolled back"):
                client.do("decide", body=body, state=COMMIT)
            begin(client, "theirs", COMMIT)
            wait_until(lambda: bool(asked(client)), "the open one is asked about", seconds=60)
            time.sleep(5)
            assert set(asked(client)) == {"open"}
    assert sorted(bodies_in(store, config)) == [b"committed", b"open", b"theirs"]


def bodies_in(store: Path, config: StoreConfig) -> list[bytes]:
    with MessageStore(store, config) as opened:
        found: list[StoredMessage] = []
        for queue_id in range(4):
            found += decode_records(opened.get(TOPIC, queue_id, 0).join())
        return [message.body for message in found]
