"""What operators ask, on the wire: rights, wrong input, brokers that do not know it."""

from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.timer.feature import TimerFeature
from skyrocket.client import NotOffered
from skyrocket.config.sections import BrokerConfig
from skyrocket.protocol.bodies.waiting_messages import OpenTransactionList, PendingTimerList
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import (
    InvalidParameter,
    NoPermission,
    RequestError,
    RequestNotSupported,
    SlaveNotAvailable,
    SystemFailure,
)
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.protocol.requests.waiting_messages import EndOpenTransaction, ListOpenTransactions, ListPendingTimers
from skyrocket.remoting.peer import Peer
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.broker.access_fixture import (
    ADMIN_ACCOUNT,
    ALICE,
    ALICE_ACCOUNT,
    ROOT,
    allow,
    asking,
    broker_with_accounts,
    broker_with_users,
    make_alice,
)
from tests.cluster.broker.broker_fixture import SLAVE, SMALL, RunningBroker, message, running_broker
from tests.waiting import until

COMMIT, ROLLBACK = 8, 12
ALL: list[Request[Header]] = [
    ListOpenTransactions(),
    ListPendingTimers(),
    EndOpenTransaction(half_offset=0, transaction_id="T1", commit_or_rollback=COMMIT),
]


async def half(given: RunningBroker, key: str) -> None:
    properties = f"TRAN_MSG\x01true\x02PGROUP\x01Sellers\x02UNIQ_KEY\x01{key}\x02KEYS\x01k1 k2\x02"
    await given.client.call(given.address, replace(message(properties=properties), sys_flag=4), b"x")


async def refused(given: RunningBroker, request: Request[Header]) -> tuple[type[RequestError], str]:
    with pytest.raises(RequestError) as caught:
        await given.client.call(given.address, request)
    return type(caught.value), str(caught.value.remark)


async def test_wrong_words_about_transactions_are_refused_and_change_nothing(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await half(given, "T1")
        end = EndOpenTransaction(half_offset=0, transaction_id="T1", commit_or_rollback=COMMIT)
        for wrong, kind, remark in (
            (
                replace(end, commit_or_rollback=3),
                InvalidParameter,
                "commitOrRollback is 3: 8 commits, 12 rolls back, 0 has the producer asked",
            ),
            (replace(end, half_offset=7), SystemFailure, "no open transaction T1 has its half at offset 7"),
            (replace(end, half_offset=-1), SystemFailure, "no open transaction T1 has its half at offset -1"),
            (replace(end, transaction_id="T2"), SystemFailure, "no open transaction T2 has its half at offset 0"),
        ):
            said = await refused(given, wrong)
            assert said[0] is kind
            assert said[1].startswith(remark)
        (row,) = OpenTransactionList.decode(
            (await given.client.call(given.address, ListOpenTransactions())).body
        ).transactions
        assert (row.transaction_id, row.topic, row.producer_group, row.keys) == ("T1", "Orders", "Sellers", "k1 k2")
        for nobodys in (
            ListOpenTransactions(topic="Other"),
            ListOpenTransactions(producer_group="Other"),
            ListOpenTransactions(transaction_id="T2"),
            ListOpenTransactions(begin_offset=1),
        ):
            answer = await given.client.call(given.address, nobodys)
            assert OpenTransactionList.decode(answer.body).transactions == ()
        await given.client.call(given.address, replace(end, transaction_id="", commit_or_rollback=ROLLBACK))
        assert (await refused(given, end))[0] is SystemFailure
        assert given.broker.store.max_offset("Orders", 0) == 0


async def test_a_transaction_is_checked_at_an_operators_wish_and_nobody_to_ask_is_said(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await half(given, "T1")
        kind, remark = await refused(
            given, EndOpenTransaction(half_offset=0, transaction_id="T1", commit_or_rollback=0)
        )
        assert kind is SystemFailure
        assert remark.startswith(
            "no producer of group Sellers is connected: start one, or end the transaction yourself"
        )
        (row,) = OpenTransactionList.decode(
            (await given.client.call(given.address, ListOpenTransactions())).body
        ).transactions
        assert row.checks == 0  # it was not asked, and does not count


async def test_open_transactions_come_in_pages(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        for number in range(1005):
            await half(given, f"T{number}")
        found: list[str] = []
        begin: int | None = 0
        pages = 0
        while begin is not None:
            answer = await given.client.call(given.address, ListOpenTransactions(begin_offset=begin))
            page = OpenTransactionList.decode(answer.body)
            found += [row.transaction_id for row in page.transactions]
            begin = page.next_offset
            pages += 1
        assert found == [f"T{number}" for number in range(1005)]
        assert pages == 2


async def test_wrong_places_in_the_list_of_timers_are_refused(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        waiting = message(properties="TIMER_DELAY_SEC\x013600\x02UNIQ_KEY\x01U1\x02")
        await given.client.call(given.address, waiting, b"x")
        await until(lambda: len(given.broker.feature(TimerFeature).pending()) == 1)
        answer = await given.client.call(given.address, ListPendingTimers(topic="Orders"))
        (timer,) = PendingTimerList.decode(answer.body).timers
        assert (timer.message_id, timer.topic, timer.recalls) == ("U1", "Orders", False)
        step_ms = timer.due_ms
        assert (await refused(given, ListPendingTimers(limit=0)))[0] is InvalidParameter
        for position in (7, 1 << 40):
            kind, remark = await refused(given, ListPendingTimers(step_ms=step_ms, position=position))
            assert kind is InvalidParameter
            assert remark.startswith(f"position {position} begins no page")
    off = replace(SMALL, timer_wheel=False)
    async with running_broker(tmp_path / "off", store=off) as given:
        kind, remark = await refused(given, ListPendingTimers())
        assert (kind, remark) == (SystemFailure, "this broker has no timer: timerWheelEnable is false")


async def test_a_slave_ends_no_transactions(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BrokerConfig(broker_id=1), SLAVE) as given:
        assert (await refused(given, ALL[2]))[0] is SlaveNotAvailable
        await given.client.call(given.address, ListOpenTransactions())


async def test_only_who_administers_the_cluster_may_look_and_decide(tmp_path: Path) -> None:
    for folder in ("users", "accounts"):
        (tmp_path / folder).mkdir()
    async with (
        broker_with_users(tmp_path / "users") as running,
        asking(running, ROOT) as root,
        asking(running, ALICE) as alice,
    ):
        await make_alice(root, allow("Topic:*", "All"), allow("Group:*", "All"), allow("Cluster:*", "Get"))
        for request in ALL[:2]:
            await alice.call(request)
        with pytest.raises(NoPermission, match="has no permission to access Cluster:"):
            await alice.call(ALL[2])
        with pytest.raises(SystemFailure, match="no open transaction"):
            await root.call(ALL[2])
    async with (
        broker_with_accounts(tmp_path / "accounts") as running,
        asking(running, ADMIN_ACCOUNT) as admin,
        asking(running, ALICE_ACCOUNT) as alice,
    ):
        for request in ALL:
            with pytest.raises(SystemFailure, match="Need admin permission"):
                await alice.call(request)
        for request in ALL[:2]:
            await admin.call(request)


def knows_none_of_ours(_: Peer, request: RemotingCommand) -> None:
    if request.code in (RequestCode.LIST_OPEN_TRANSACTIONS, RequestCode.LIST_PENDING_TIMERS):
        raise RequestNotSupported.of(request.code)


async def test_a_broker_of_apache_is_named_with_what_it_does_not_know() -> None:
    """It answers so: captures of bad input show it for 9999."""

    async with AsyncLocalCluster() as mq, mq.admin() as admin:
        mq._running()[0].parts.router.check_with(knows_none_of_ours)
        with pytest.raises(NotOffered, match=r"request type 30001 not supported\): only Skyrocket's brokers know it"):
            await admin.open_transactions()
        with pytest.raises(
            NotOffered, match=r"their numbers by topic are told: `timers list --count`, Admin\.timer_counts"
        ):
            await admin.pending_timers()
        assert await admin.timer_counts() == {}
