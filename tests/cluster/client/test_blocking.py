"""The blocking API is the same one: same names, same arguments, same behaviour."""

import asyncio
import inspect
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.client import blocking
from skyrocket.client.admin import admin
from skyrocket.client.consumer import lite_pull_consumer, push_consumer
from skyrocket.client.core.errors import ForkedClient, IllegalName, NoNameServer, NotRunning
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.pop import simple_consumer
from skyrocket.client.producer import producer, transaction
from tests.cluster.servers import Cluster, cluster
from tests.waiting import wait_until


@pytest.fixture
def names(tmp_path: Path) -> Iterator[str]:
    """A cluster in a thread of its own."""
    ready, ending = threading.Event(), asyncio.Event()
    found: list[Cluster] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with cluster(tmp_path) as given:
            found.append(given)
            ready.set()
            await ending.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    yield found[0].names
    loops[0].call_soon_threadsafe(ending.set)
    thread.join(10)
    assert not thread.is_alive()


PAIRS = [
    (producer.Producer, blocking.Producer),
    (transaction.TransactionProducer, blocking.TransactionProducer),
    (push_consumer.PushConsumer, blocking.PushConsumer),
    (lite_pull_consumer.LitePullConsumer, blocking.LitePullConsumer),
    (simple_consumer.SimpleConsumer, blocking.SimpleConsumer),
    (admin.Admin, blocking.Admin),
]
NOT_FOR_PROGRAMS = frozenset(
    """arrived batches check_transaction consume_directly enqueue forked heartbeat_data is_paused offset_moved
    offsets_of rebalance_soon reset_offsets route_changed running_info subscription topic_restorer""".split()
)


@pytest.mark.parametrize(("original", "facade"), PAIRS)
def test_every_public_method_is_there_with_its_arguments(original: type, facade: type) -> None:
    for name, method in inspect.getmembers(original, inspect.isfunction):
        if name.startswith("_") and name != "__init__":
            continue
        if name in NOT_FOR_PROGRAMS and original is not admin.Admin:
            continue
        assert inspect.signature(getattr(facade, name)).parameters.keys() == inspect.signature(method).parameters.keys()
        assert not inspect.iscoroutinefunction(getattr(facade, name))


def test_send_and_consume_without_an_event_loop(names: str) -> None:
    got: list[bytes] = []
    with blocking.Producer("Shop", names) as sender:
        receipt = sender.send(Message("Orders", b"one"))
        assert receipt.queue_offset == 0
        assert sender.send_nowait(Message("Orders", b"two")).result(5).is_durable
        assert len(sender.send_batch([Message("Orders", b"three"), Message("Orders", b"four")])) == 2
        sender.send_oneway(Message("Orders", b"five"))
        consumer = blocking.PushConsumer("Billing", names)

        @consumer.on("Orders")
        def handle(message: ReceivedMessage) -> None:
            got.append(message.body)

        with consumer:
            wait_until(lambda: len(got) >= 5, seconds=10)
        assert sorted(got) == sorted([b"one", b"two", b"three", b"four", b"five"])
    with pytest.raises(NotRunning, match="stopped"):
        sender.send(Message("Orders", b"x"))


def test_poll_iterate_and_administer_without_an_event_loop(names: str) -> None:
    with blocking.Admin(names) as tool, blocking.Producer("Shop", names) as sender:
        tool.create_topic("Orders", 1)
        wait_until(lambda: "Orders" in tool.topics(), seconds=10)
        for i in range(3):
            sender.send(Message("Orders", b"%d" % i))
        with blocking.LitePullConsumer("Report", names) as reader:
            reader.subscribe("Orders")
            bodies = []
            for message in reader:
                bodies.append(message.body)
                if len(bodies) == 3:
                    break
            assert bodies == [b"0", b"1", b"2"]
            assert reader.poll(0.01) == []


def test_transactions_without_an_event_loop(names: str) -> None:
    got: list[bytes] = []
    producer = blocking.TransactionProducer("Shop", names)
    producer.checker(lambda message: transaction.TransactionState.UNKNOWN)
    consumer = blocking.PushConsumer("Billing", names)
    consumer.subscribe("Orders", lambda message: got.append(message.body))
    with producer, consumer:
        with producer.transaction(Message("Orders", b"committed")):
            assert got == []
        with pytest.raises(ValueError, match="local"), producer.transaction(Message("Orders", b"open")):
            raise ValueError("local")
        wait_until(lambda: got, seconds=10)
    assert got == [b"committed"]


def test_errors_come_through(names: str) -> None:
    with pytest.raises(IllegalName):
        blocking.Producer("a b", names)
    with blocking.Producer("Shop", "127.0.0.1:1") as sender, pytest.raises(NoNameServer):
        sender.send(Message("Orders", b"x"))


def test_a_child_process_can_use_it_anew(names: str) -> None:
    with blocking.Producer("Shop", names) as sender:
        sender.send(Message("Orders", b"parent"))
        child = os.fork()
        if child == 0:  # pragma: no cover - not seen by the parent
            code = 1
            try:
                with pytest.raises(ForkedClient, match="producer Shop was started before a fork: make and start a new"):
                    sender.send(Message("Orders", b"x"))
                with blocking.Producer("Shop", names) as own:
                    own.send(Message("Orders", b"child"))
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        sender.send(Message("Orders", b"parent still works"))
