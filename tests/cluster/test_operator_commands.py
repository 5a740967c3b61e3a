"""`skyrocket transactions`, `timers` and `reset`: what operators see and do from afar."""

import contextlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from skyrocket.cli import app
from skyrocket.client import ClientError, Message, TransactionState, WrongUse, blocking
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import rows as rows_of
from tests.waiting import wait_until


class Done(NamedTuple):
    """What a run came to."""

    code: int
    output: str
    errors: str


def skyrocket(rocketmq: LocalCluster, *arguments: str, answer: str = "") -> Done:
    result = CliRunner().invoke(app, arguments, env={"NAMESRV_ADDR": rocketmq.name_server_address}, input=answer)
    return Done(result.exit_code, result.stdout, result.stderr)


def well(rocketmq: LocalCluster, *arguments: str) -> str:
    done = skyrocket(rocketmq, *arguments)
    assert done.code == 0, done.errors
    return done.output


@contextlib.contextmanager
def undecided(rocketmq: LocalCluster) -> Iterator[blocking.TransactionProducer]:
    """A producer that never says how a transaction ends."""
    producer = blocking.TransactionProducer("Shop", client=rocketmq.client_settings)
    producer.checker(lambda _: TransactionState.UNKNOWN)
    with producer:
        yield producer


def leave_open(producer: blocking.TransactionProducer, body: bytes, keys: str = "") -> None:
    with producer.transaction(Message("Orders", body, keys=keys)) as transaction:
        transaction.leave_open()


def bodies(rocketmq: LocalCluster) -> list[bytes]:
    return sorted(message.body for message in rocketmq.messages("Orders"))


def test_open_transactions_are_listed_and_end_by_an_operators_word(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with undecided(rocketmq) as producer:
        for body in (b"paid", b"not paid", b"who knows"):
            leave_open(producer, body, f"o-{body.split()[0].decode()} k")
        rocketmq.advance(minutes=3)  # some checks: the listed ones are copies now
        with rocketmq.admin() as admin:
            wait_until(lambda: [each.checks > 0 for each in admin.open_transactions()] == [True] * 3)
        rows = [json.loads(line) for line in well(rocketmq, "transactions", "list", "--json").splitlines()]
        assert len(rows) == 3
        assert all(row["ageMs"] >= 180_000 and row["checks"] >= 1 for row in rows)
        assert all((row["topic"], row["producerGroup"]) == ("Orders", "Shop") for row in rows)
        by_key = {row["keys"][0]: row["transactionId"] for row in rows}
        assert by_key.keys() == {"o-paid", "o-not", "o-who"}
        text = well(rocketmq, "transactions", "list", "--topic", "Orders", "--older", "2m")
        assert re.search(r"Orders +o-paid,k +Shop +\d\.\d min", text)
        assert well(rocketmq, "transactions", "list", "--older", "2h") == ""
        assert well(rocketmq, "transactions", "list", "--producer-group", "Other") == ""

        tried = well(rocketmq, "transactions", "commit", by_key["o-paid"], "--dry-run")
        assert f"transaction {by_key['o-paid']} of Orders at broker-a" in tried
        assert "nothing was changed: --dry-run" in tried
        assert bodies(rocketmq) == []
        assert well(rocketmq, "transactions", "commit", by_key["o-paid"]).endswith("1 transaction committed\n")
        unsure = skyrocket(rocketmq, "transactions", "rollback", by_key["o-not"])
        assert unsure.code == 2
        assert "1 transaction: what waits there will never be delivered" in unsure.errors
        assert "1 transaction rolled back" in well(rocketmq, "transactions", "rollback", by_key["o-not"], "--yes")
        assert bodies(rocketmq) == [b"paid"]
        again = skyrocket(rocketmq, "transactions", "rollback", by_key["o-paid"], "--yes")
        assert again.code == 4
        assert "no open transaction" in again.errors
        without = skyrocket(rocketmq, "transactions", "commit")
        assert without.code == 2
        assert "say which" in without.errors
        well(rocketmq, "transactions", "commit", "--all", "--older", "1m")
        rocketmq.advance(minutes=3)  # nobody is asked about what has ended
        assert bodies(rocketmq) == [b"paid", b"who knows"]
        assert well(rocketmq, "transactions", "list") == ""


def test_a_transaction_that_was_checked_since_it_was_listed_still_ends(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with undecided(rocketmq) as producer, rocketmq.admin() as admin:
        leave_open(producer, b"paid")
        (listed,) = admin.open_transactions("Orders")
        rocketmq.advance(minutes=3)
        wait_until(lambda: admin.open_transactions("Orders")[0].half_offset > listed.half_offset)
        (later,) = admin.open_transactions("Orders")
        assert later.transaction_id == listed.transaction_id
        admin.end_transaction(listed, commit=True)
        assert bodies(rocketmq) == [b"paid"]
        with pytest.raises(ClientError, match=f"no open transaction {listed.transaction_id} has its half"):
            admin.end_transaction(listed, commit=False)


@pytest.mark.rocketmq(brokers=2, settings={"recallMessageEnable": "true"})
def test_timers_are_listed_soonest_first_and_taken_back_by_id_or_handle(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=2)
    rocketmq.create_topic("Audit", queues=1)
    with rocketmq.producer() as producer:
        late = producer.send(Message("Orders", b"late", keys="o-1 o-2", delay=7200))
        soon = producer.send(Message("Orders", b"soon", delay=3600))
        producer.send(Message("Audit", b"other", delay=600))
    rocketmq.advance(seconds=1)
    with rocketmq.admin() as admin:
        wait_until(lambda: len(admin.pending_timers()) == 3)  # they are on the wheel
    rows = [json.loads(line) for line in well(rocketmq, "timers", "list", "--json").splitlines()]
    assert [row["topic"] for row in rows] == ["Audit", "Orders", "Orders"]
    assert [row["messageId"] for row in rows[1:]] == [soon.message_id, late.message_id]
    assert rows[2]["keys"] == ["o-1", "o-2"]
    assert 7_190_000 < rows[2]["dueMs"] - rocketmq.now_ms < 7_210_000
    text = well(rocketmq, "timers", "list", "--topic", "Orders", "--limit", "1").splitlines()
    assert f"{soon.message_id}  Orders" in text[1]
    assert text[2:] == ["the first 1: more with --limit, their numbers with --count"]
    moment = datetime.fromtimestamp(rocketmq.now_ms / 1000 + 5000, UTC).isoformat()
    assert late.message_id in well(rocketmq, "timers", "list", "--from", moment)
    assert soon.message_id not in well(rocketmq, "timers", "list", "--from", moment)
    assert rows_of(rocketmq, "timers", "list", "--count") == [
        {"topic": "Audit", "waiting": 1},
        {"topic": "Orders", "waiting": 2},
    ]
    assert rows_of(rocketmq, "timers", "list", "--count", "--topic", "Audit") == [{"topic": "Audit", "waiting": 1}]

    assert late.recall_handle
    unsure = skyrocket(rocketmq, "timers", "recall", late.recall_handle)
    assert (unsure.code, "1 message will never be delivered" in unsure.errors) == (2, True)
    assert "nothing was changed" in well(rocketmq, "timers", "recall", late.recall_handle, "--dry-run")
    assert f"{late.message_id} is taken back\n" in well(rocketmq, "timers", "recall", late.recall_handle, "--yes")
    assert f"{soon.message_id} is taken back\n" in well(rocketmq, "timers", "recall", soon.message_id, "--yes")
    rocketmq.advance(seconds=1)
    with rocketmq.admin() as admin:
        wait_until(lambda: len(admin.pending_timers()) == 1)
    left = [json.loads(line) for line in well(rocketmq, "timers", "list", "--json").splitlines()]
    assert [row["topic"] for row in left] == ["Audit"]
    rocketmq.advance(hours=3)
    assert rocketmq.messages("Orders") == []
    assert [message.body for message in rocketmq.messages("Audit")] == [b"other"]
    late_word = skyrocket(rocketmq, "timers", "recall", soon.message_id, "--yes")
    assert late_word.code == 1
    assert "timestamp invalid" in late_word.errors
    unknown = skyrocket(rocketmq, "timers", "recall", "0" * 32, "--yes")
    assert unknown.code == 4
    assert "no message 00000000000000000000000000000000 waits" in unknown.errors
    wrong = skyrocket(rocketmq, "timers", "recall", "nonsense", "--yes")
    assert wrong.code == 2
    assert "is not a recall handle" in wrong.errors


def test_what_pops_leave_with_the_timer_is_not_shown(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with (
        rocketmq.producer() as producer,
        rocketmq.simple_consumer("Mail", subscription={"Orders": "*"}) as consumer,
        rocketmq.admin() as admin,
    ):
        producer.send(Message("Orders", b"now"))
        assert len(consumer.receive(invisible_seconds=3600)) == 1
        waiting = producer.send(Message("Orders", b"later", delay=3600))
        rocketmq.advance(seconds=2)
        wait_until(lambda: admin.timer_counts() == {"Orders": 1})
        assert [timer.message_id for timer in admin.pending_timers()] == [waiting.message_id]
        (mark,) = {timer.topic for timer in admin.pending_timers("rmq_sys_REVIVE_LOG_DefaultCluster")}
        assert mark == "rmq_sys_REVIVE_LOG_DefaultCluster"


def test_a_broker_that_takes_nothing_back_is_told_what_to_set(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.producer() as producer, rocketmq.admin() as admin:
        receipt = producer.send(Message("Orders", b"late", delay=7200))
        rocketmq.advance(seconds=1)
        with pytest.raises(ClientError, match="set recallMessageEnable=true there"):
            admin.recall(receipt.message_id)
        with pytest.raises(WrongUse, match="is not a recall handle"):
            admin.recall("djEg")


def test_lists_longer_than_a_page_are_whole(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.producer() as producer, rocketmq.admin() as admin:
        moment = datetime.fromtimestamp(rocketmq.now_ms / 1000 + 3600, UTC)
        sent = [producer.send(Message("Orders", b"x", deliver_at=moment)).message_id for _ in range(1100)]
        sent += [producer.send(Message("Orders", b"x", delay=7200)).message_id for _ in range(3)]
        rocketmq.advance(seconds=2)
        wait_until(lambda: admin.timer_counts() == {"Orders": 1103})
        found = admin.pending_timers("Orders", most=5000)
        assert sorted(timer.message_id for timer in found) == sorted(sent)
        assert [timer.due_ms for timer in found] == sorted(timer.due_ms for timer in found)
        assert len(admin.pending_timers(most=7)) == 7


@pytest.mark.requirement("B006")
def test_a_reset_says_what_it_skips_and_repeats_and_then_does_it(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    rocketmq.create_group("Billing")
    with rocketmq.producer() as producer, rocketmq.admin() as admin:
        for number in range(5):
            producer.send(Message("Orders", b"%d" % number))
        rocketmq.advance(hours=2)
        moment = datetime.fromtimestamp(rocketmq.now_ms / 1000 - 3600, UTC).isoformat()
        for number in range(5, 8):
            producer.send(Message("Orders", b"%d" % number))
        (queue,) = admin.queues("Orders")
        admin.set_offset("Billing", queue, 6)
        which = ("--group", "Billing", "--topic", "Orders")
        preview = well(rocketmq, "reset", *which, "--to", moment, "--dry-run").splitlines()
        assert preview == [
            f"{queue.broker_name}:0 at 6, goes to 5 of 0 to 8: 0 skipped, 1 consumed again",
            "group Billing in topic Orders: 0 messages would be skipped, 1 consumed again; nothing was changed",
        ]
        assert admin.committed("Billing", queue) == 6
        done = well(rocketmq, "reset", *which, "--to", moment).splitlines()
        assert done[0] == preview[0]
        assert admin.committed("Billing", queue) == 5
        assert well(rocketmq, "reset", *which, "--to", "latest").endswith("3 skipped, 0 consumed again\n")
        assert admin.committed("Billing", queue) == 8
        assert well(rocketmq, "reset", *which, "--to", "earliest").endswith("0 skipped, 8 consumed again\n")
        assert admin.committed("Billing", queue) == 0
        assert well(rocketmq, "reset", *which, "--to", "3").startswith(
            f"{queue.broker_name}:0 at 0, goes to 3 of 0 to 8: 3 skipped, 0 consumed again\n"
        )
        assert admin.committed("Billing", queue) == 3
        well(rocketmq, "reset", *which, "--to", "1200")
        assert admin.committed("Billing", queue) == 8, "the end is nearer than what was asked for"
        wrong = skyrocket(rocketmq, "reset", *which, "--to", "-10")
        assert wrong.code == 2
        assert "is not a place" in wrong.errors
        nowhere = skyrocket(rocketmq, "reset", "--group", "Billing", "--topic", "Nowhere", "--to", "latest")
        assert nowhere.code == 4
        assert "no route for topic Nowhere" in nowhere.errors


def test_a_reset_asks_before_it_skips_thousands_of_messages(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    rocketmq.create_group("Billing")
    reset = ("reset", "--group", "Billing", "--topic", "Orders", "--to", "latest")
    with rocketmq.producer() as producer, rocketmq.admin() as admin:
        for _ in range(10):
            producer.send_batch([Message("Orders", b"x") for _ in range(100)])
        (queue,) = admin.queues("Orders")
        admin.set_offset("Billing", queue, 1)
        assert "999 messages would be skipped" in well(rocketmq, *reset, "--dry-run")
        admin.set_offset("Billing", queue, 0)
        for answer in ("", "n\n"):  # nobody is there; no
            refused = skyrocket(rocketmq, *reset, answer=answer)
            assert refused.code == 1
            assert "Group Billing will never get 1,000 messages of topic Orders. Skip them?" in refused.errors
            assert "nothing was changed; --yes skips without a question" in refused.errors
            assert admin.committed("Billing", queue) == 0
        assert skyrocket(rocketmq, *reset, answer="y\n").code == 0
        assert admin.committed("Billing", queue) == 1000
        admin.set_offset("Billing", queue, 0)
        well(rocketmq, *reset, "--yes")
        assert admin.committed("Billing", queue) == 1000


def test_a_reset_can_be_read_by_programs(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=2)
    rocketmq.create_group("Billing")
    with rocketmq.producer() as producer, rocketmq.admin() as admin:
        first, _ = sorted(admin.queues("Orders"), key=lambda queue: queue.queue_id)
        for _ in range(3):
            producer.send(Message("Orders", b"x"), queue=first)
        admin.set_offset("Billing", first, 2)
        reset = ("reset", "--group", "Billing", "--topic", "Orders", "--to", "earliest", "--json")
        shown = [json.loads(line) for line in well(rocketmq, *reset, "--dry-run").splitlines()]
        expected = {"broker": first.broker_name, "committed": 2, "target": 0, "first": 0, "end": 3, "skipped": 0}
        assert shown[0] == {**expected, "queueId": 0, "consumedAgain": 2, "done": False}
        assert shown[1]["committed"] is None
        assert admin.committed("Billing", first) == 2
        done = [json.loads(line) for line in well(rocketmq, *reset).splitlines()]
        assert [line["done"] for line in done] == [True, True]
        assert admin.committed("Billing", first) == 0


def test_a_reset_of_a_group_that_nobody_knows_is_an_error(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.admin() as admin:
        (queue,) = admin.queues("Orders")
        reset = ("reset", "--group", "Biling", "--topic", "Orders", "--to", "latest")
        for options in ((), ("--dry-run",), ("--yes",)):
            unknown = skyrocket(rocketmq, *reset, *options)
            assert unknown.code == 4
            assert "there is no group Biling: check its name" in unknown.errors
            assert admin.committed("Biling", queue) is None


def test_a_new_group_in_a_namespace_is_known_by_its_full_name(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("shop%Orders", queues=1)
    rocketmq.create_group("shop%Billing")
    reset = ("reset", "--namespace", "shop", "--group", "Billing", "--topic", "Orders", "--to", "latest")
    assert "nothing committed, goes to 0" in well(rocketmq, *reset)
