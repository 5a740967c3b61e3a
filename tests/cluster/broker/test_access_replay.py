"""Captured requests of people with and without rights: the same verdict, code and remark as RocketMQ's."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skyrocket.broker.access.feature import AccessFeature
from skyrocket.broker.broker import Broker
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.frames import FrameReader
from skyrocket.remoting.addresses import Address
from tests.cluster.broker.access_fixture import (
    ALICE_RIGHTS,
    ROOT,
    asking,
    broker_with_accounts,
    broker_with_users,
    make_alice,
)
from tests.cluster.broker.broker_fixture import running_broker
from tests.cluster.broker.broker_replay import differences, exchanges, play
from tests.cluster.namesrv.name_server_replay import Exchange
from tests.golden_wire import capture

PEER: Any = SimpleNamespace(remote_address=Address("127.0.0.1", 4711))
ALL_CODES = frozenset(map(int, RequestCode))

USERS = [f"acl2-54-{name}.jsonl.gz" for name in ("alice", "client49", "no-credentials", "super", "wrong-secret")]
ACCOUNTS = [f"acl1-49-{name}.jsonl.gz" for name in ("admin", "alice", "unknown-key", "wrong-secret")]


def verdict(broker: Broker, raw: bytes) -> tuple[int, str] | None:
    """The refusal of the checks; None when the handler would be asked."""
    (command,) = FrameReader().receive(raw)
    try:
        for check in broker.feature(AccessFeature).checks():
            check(PEER, command)
    except RequestError as error:
        return error.code, error.remark or ""
    return None


def expected(exchange: Exchange) -> tuple[int, str] | None:
    """What RocketMQ said, if it refused; of its exceptions without the place in its source."""
    header = {} if exchange.answer is None else exchange.answer.header
    remark = str(header.get("remark", ""))
    if header.get("code") == 16:
        return 16, remark
    return (1, remark.partition(", org.apache")[0]) if "AclException" in remark else None


def is_better_here(exchange: Exchange) -> bool:
    """4.9.7 takes its own clients' searches for wrongly signed: it leaves out a field that they have signed."""
    return exchange.code == RequestCode.QUERY_MESSAGE and "Check signature failed" in str(expected(exchange))


@pytest.mark.parametrize("name", USERS)
async def test_users_hear_what_rocketmq_tells_them(tmp_path: Path, name: str) -> None:
    async with broker_with_users(tmp_path) as running, asking(running, ROOT) as root:
        await make_alice(root, *ALICE_RIGHTS)
        conversation = exchanges(name, ALL_CODES)
        assert len(conversation) > 20
        for exchange in conversation:
            assert verdict(running.broker, exchange.request.raw) == expected(exchange), exchange.request
        refused = [exchange for exchange in conversation if expected(exchange) is not None]
        assert bool(refused) == (name != USERS[3])
        assert [line for pair in await play(running.broker, refused) for line in differences(*pair)] == []


@pytest.mark.parametrize("name", ACCOUNTS)
async def test_accounts_hear_what_rocketmq_tells_them(tmp_path: Path, name: str) -> None:
    async with broker_with_accounts(tmp_path) as running:
        conversation = [exchange for exchange in exchanges(name, ALL_CODES) if not is_better_here(exchange)]
        assert len(conversation) > 20
        for exchange in conversation:
            assert verdict(running.broker, exchange.request.raw) == expected(exchange), exchange.request
        refused = [exchange for exchange in conversation if expected(exchange) is not None]
        for exchange, answer in await play(running.broker, refused):
            assert (answer.code, answer.remark) == expected(exchange)
            assert answer.ext_fields is None


async def test_operators_manage_users_and_policies_as_with_rocketmq(tmp_path: Path) -> None:
    """The admin54 captures are one session; two of its commands are missing from it, the topics among them."""
    async with broker_with_users(tmp_path) as running:
        session = [
            *exchanges("admin54-createUser.jsonl", ALL_CODES),
            *exchanges("admin54-createUser-exists.jsonl", ALL_CODES),
            *exchanges("admin54-createAcl.jsonl", ALL_CODES),
            *exchanges("admin54-updateAcl.jsonl", ALL_CODES),
            *exchanges("admin54-listAcl.jsonl", ALL_CODES),
            *exchanges("admin54-deleteAcl.jsonl", ALL_CODES),
            *exchanges("admin54-deleteUser.jsonl", ALL_CODES),
            *exchanges("admin54-listUser.jsonl", ALL_CODES),
        ]
        assert len(session) == 8
        answers = [pair for exchange in session for pair in await play(running.broker, [exchange])]
        assert [line for pair in answers for line in differences(*pair)] == []


async def test_the_session_that_prepared_the_captures_gives_the_same_lists(tmp_path: Path) -> None:
    async with broker_with_users(tmp_path) as running:
        session = exchanges("acl2-54-admin.jsonl", ALL_CODES)
        assert len(session) == 6
        answers = [pair for exchange in session for pair in await play(running.broker, [exchange])]
        assert [line for pair in answers for line in differences(*pair)] == []


async def test_without_acl_users_are_refused_as_by_rocketmq(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as running:
        assert running.broker.feature(AccessFeature).checks() == ()
        answers = await play(running.broker, exchanges("admin54-createUser-auth-off.jsonl", ALL_CODES))
        assert [line for pair in answers for line in differences(*pair)] == []


def test_the_captures_are_there() -> None:
    assert all(capture(name) for name in (*USERS, *ACCOUNTS))
