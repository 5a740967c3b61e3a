"""dramatiq and Celery with RocketMQ as their broker: once, later, again, given up, given back."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import dramatiq
import kombu.connection
import pytest
from dramatiq.errors import ConnectionClosed, QueueNotFound

import skyrocket.integrations.celery  # noqa: F401 - makes rocketmq:// known
from skyrocket.integrations.dramatiq import RocketmqBroker
from skyrocket.integrations.work_queues import WorkQueues, topic_of
from skyrocket.testing import LocalCluster
from tests.waiting import wait_until


@pytest.fixture
def broker(rocketmq: LocalCluster) -> Iterator[RocketmqBroker]:
    made = RocketmqBroker(rocketmq.name_server_address)
    dramatiq.set_broker(made)
    yield made
    made.close()


def test_dramatiq_runs_each_task_once_retries_and_gives_up(broker: RocketmqBroker, rocketmq: LocalCluster) -> None:
    done: list[int] = []
    failed: list[int] = []

    @dramatiq.actor
    def fine(number: int) -> None:
        done.append(number)

    @dramatiq.actor(max_retries=1, min_backoff=1, max_backoff=1)
    def hopeless(number: int) -> None:
        failed.append(number)
        raise ValueError("never")

    for number in range(10):
        fine.send(number)
    fine.send_with_options(args=(10,), delay=1500)
    hopeless.send(7)
    worker = dramatiq.Worker(broker, worker_threads=2, worker_timeout=100)
    worker.start()
    try:
        wait_until(lambda: len(failed) == 2, "a retry, which is a delayed message")
        wait_until(lambda: rocketmq.messages("%DLQ%dramatiq-default"), "then a dead letter")
        wait_until(lambda: 10 in done, "the delayed one")
    finally:
        worker.stop()
    assert sorted(done) == list(range(11))


def test_dramatiq_gives_unfinished_messages_back_when_it_stops(broker: RocketmqBroker) -> None:
    broker.declare_queue("mail")
    message: Any = dramatiq.Message("mail", "send", (), {}, {})
    broker.enqueue(message)
    first = broker.consume("mail", prefetch=5, timeout=60_000)
    taken = next(first)
    assert taken is not None
    first.requeue([taken])
    first.ack(taken)  # it is not its any more
    second = broker.consume("mail", timeout=60_000)
    again = next(second)
    assert again is not None
    assert again.message_id == message.message_id
    first.close()
    second.close()
    third = broker.consume("mail", timeout=60_000)
    assert next(third) is not None, "a consumer that is closed gives back what it had"
    third.close()


def test_dramatiq_hears_of_unknown_queues_and_absent_servers(broker: RocketmqBroker) -> None:
    message: Any = dramatiq.Message("nowhere", "send", (), {}, {})
    for call in (lambda: broker.enqueue(message), lambda: broker.consume("nowhere")):
        with pytest.raises(QueueNotFound):
            call()
    absent = RocketmqBroker("127.0.0.1:1")
    absent.declare_queue("nowhere")
    for call in (lambda: absent.enqueue(message), lambda: absent.consume("nowhere")):
        with pytest.raises(ConnectionClosed, match="no name server answered"):
            call()
    absent.close()


def test_a_task_in_hand_stays_hidden_for_as_long_as_it_takes(rocketmq: LocalCluster) -> None:
    queues = WorkQueues(rocketmq.name_server_address, "tasks", invisible_seconds=1.5)
    queues.put("a.b", b"long work")
    assert topic_of("tasks", "a.b") == "tasks-a_b"
    worker, other = queues.worker("a.b"), queues.worker("a.b")
    try:
        (task,) = worker.take(1, 30)
        first_receipt = task.receipt
        wait_until(lambda: task.receipt.pop_time - first_receipt.pop_time > 2000, "hidden again, and again")
        assert other.take(1, 0) == []
        worker.done(task)
        queues.put("a.b", b"next")
        (following,) = other.take(32, 30)
        assert following.body == b"next"
    finally:
        worker.close()
        other.close()
        queues.close()


def test_a_transport_of_kombu_delivers_gives_back_rejects_and_purges(rocketmq: LocalCluster) -> None:
    connect: Any = kombu.connection.Connection
    url = f"rocketmq://{rocketmq.name_server_address}"
    with connect(url) as connection, connect(url) as other:
        queue = connection.SimpleQueue("mail.fast")
        for number in range(3):
            queue.put({"number": number})
        wait_until(lambda: queue.qsize() == 3)
        taken = [queue.get(timeout=60) for _ in range(3)]
        done, back, rejected = taken
        done.ack()
        back.requeue()
        rejected.reject()
        again = other.SimpleQueue("mail.fast").get(timeout=60)
        assert again.payload == back.payload
        again.ack()
        wait_until(lambda: rocketmq.messages("%DLQ%celery-mail_fast"))
        (letter,) = rocketmq.messages("%DLQ%celery-mail_fast")
        assert json.loads(letter.body)["properties"]["delivery_tag"] == rejected.delivery_tag
        queue.put({"number": 3})
        assert queue.clear() == 1


def test_celery_runs_retries_and_rejects(rocketmq: LocalCluster) -> None:
    celery: Any = pytest.importorskip("celery")
    start_worker = pytest.importorskip("celery.contrib.testing.worker").start_worker
    rejected = pytest.importorskip("celery.exceptions").Reject
    app = celery.Celery("shop", broker=f"rocketmq://{rocketmq.name_server_address}", set_as_current=False)
    app.conf.update(worker_enable_remote_control=False, task_acks_late=True, task_publish_retry=False)
    attempts: list[int] = []
    done = threading.Event()

    def pay(self: Any, number: int) -> None:
        attempts.append(number)
        if len(attempts) < 3:
            raise ConnectionError("closed")
        done.set()

    def refuse() -> None:
        raise rejected("never", requeue=False)

    options = {"autoretry_for": (ConnectionError,), "default_retry_delay": 0.1, "max_retries": 2}
    app.task(bind=True, name="pay", **options)(pay).apply_async((8,))
    app.task(name="refuse")(refuse).apply_async()
    with start_worker(app, pool="solo", perform_ping_check=False, loglevel="CRITICAL", shutdown_timeout=60):
        wait_until(done.is_set)
        wait_until(lambda: rocketmq.messages("%DLQ%celery-celery"), "what was rejected")
    assert attempts == [8, 8, 8]
