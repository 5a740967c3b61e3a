"""What operators do with single transactions, timers and queues."""

import pytest

from skyrocket.client import Message, TransactionState, blocking
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import rows, skyrocket, well
from tests.waiting import wait_until


@pytest.mark.rocketmq(settings={"transactionCheckMax": "2"})
def test_a_given_up_transaction_is_found_opened_again_and_its_producer_asked_at_once(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    said = TransactionState.UNKNOWN
    producer = blocking.TransactionProducer("Shop", client=rocketmq.client_settings)
    producer.checker(lambda _: said)
    assert well(rocketmq, "transactions", "given-up") == ""
    with producer:
        with producer.transaction(Message("Orders", b"paid", keys="o-1")) as transaction:
            transaction.leave_open()
        (opened,) = rows(rocketmq, "transactions", "list")
        name = opened["transactionId"]
        for _ in range(5):
            rocketmq.advance(minutes=3)
        wait_until(lambda: rows(rocketmq, "transactions", "given-up") != [])
        (given_up,) = rows(rocketmq, "transactions", "given-up")
        assert (given_up["transactionId"], given_up["topic"], given_up["keys"]) == (name, "Orders", ["o-1"])
        assert rows(rocketmq, "transactions", "list") == []
        assert skyrocket(rocketmq, "transactions", "check", name).code == 4

        unknown = skyrocket(rocketmq, "transactions", "resume", "A" * 32)
        assert (unknown.code, "nothing was done" in unknown.errors) == (4, True)
        assert "given up → open" in well(rocketmq, "transactions", "resume", name, "--dry-run")
        assert rows(rocketmq, "transactions", "list") == []
        assert well(rocketmq, "transactions", "resume", name).endswith("1 transaction is open again\n")
        wait_until(lambda: [each["transactionId"] for each in rows(rocketmq, "transactions", "list")] == [name])

        said = TransactionState.COMMIT
        assert "producers are asked about 1 transaction" in well(rocketmq, "transactions", "check", "--all")
        wait_until(lambda: [each.body for each in rocketmq.messages("Orders")] == [b"paid"])
        assert skyrocket(rocketmq, "transactions", "check").code == 2


def test_a_timer_is_found_by_its_key_and_by_its_id(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=2)
    with rocketmq.producer() as producer:
        sent = producer.send(Message("Orders", b"late", keys="o-1", delay=7200))
        producer.send(Message("Orders", b"other", keys="o-2", delay=7200))
    rocketmq.advance(seconds=1)
    wait_until(lambda: skyrocket(rocketmq, "timers", "find", "o-1").code == 0)
    for key in ("o-1", sent.message_id):
        (found,) = rows(rocketmq, "timers", "find", key)
        assert (found["messageId"], found["topic"], found["keys"]) == (sent.message_id, "Orders", ["o-1"])
    missing = skyrocket(rocketmq, "timers", "find", "o-3")
    assert (missing.code, missing.errors) == (4, "no timer has the key or id o-3\n")


def test_one_queue_of_a_group_is_moved_alone(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=2)
    rocketmq.create_group("Billing")
    with rocketmq.producer() as producer, rocketmq.admin() as admin:
        first, second = sorted(admin.queues("Orders"))
        for queue in (first, second):
            for _ in range(4):
                producer.send(Message("Orders", b"x"), queue=queue)
            admin.set_offset("Billing", queue, 2)
        reset = ("reset", "--group", "Billing", "--topic", "Orders", "--to", "earliest", "--queue")
        name = f"{second.broker_name}:{second.queue_id}"
        assert well(rocketmq, *reset, name).splitlines() == [
            f"{name} at 2, goes to 0 of 0 to 4: 0 skipped, 2 consumed again",
            "group Billing in topic Orders: 0 skipped, 2 consumed again",
        ]
        assert [admin.committed("Billing", queue) for queue in (first, second)] == [2, 0]
        nowhere = skyrocket(rocketmq, *reset, "broker-a:9")
        assert (nowhere.code, "has no queue broker-a:9: there are broker-a:0, broker-a:1" in nowhere.errors) == (
            4,
            True,
        )
