"""Accounts and certificates of real engines: who has them decides, who has not is told why."""

from functools import partial
from pathlib import Path

import httpx
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from skyrocket.config.sections import ControllerConfig
from tests.integration.controller.joined import Joined, joined
from tests.integration.controller.real_engines import (
    Certificates,
    ZooKeeperEnsemble,
    certificates,
    running,
    running_engine,
    why_not,
)
from tests.waiting import until

NAME = "broker-a"


def needs(kind: str) -> pytest.MarkDecorator:
    reason = why_not(kind)
    return pytest.mark.skipif(reason is not None, reason=reason or "")


@needs("etcd")
async def test_etcd_with_accounts_is_used_by_who_has_one(tmp_path: Path) -> None:
    with running_engine("etcd", tmp_path) as engine:
        url = f"http://127.0.0.1:{engine.servers[0].port}/v3/auth"
        for path, body in (
            ("role/add", {"name": "root"}),
            ("user/add", {"name": "root", "password": "secret"}),
            ("user/grant", {"user": "root", "role": "root"}),
            ("enable", {}),
        ):
            httpx.post(f"{url}/{path}", json=body).raise_for_status()
        known = ControllerConfig(store_user="root", store_password="secret", session_ms=2000)
        wrong = ControllerConfig(store_user="root", store_password="guessed", session_ms=2000)
        async with joined(engine, "x", 0, wrong) as stranger, joined(engine, "x", 1, known) as member:
            await until(lambda: member.leads)
            await until(lambda: "authentication failed" in str(stranger.standing.trouble))
            assert member.standing.leadership is not None
            await member.engine.write(member.standing.leadership, NAME, b"one", None)
            # All tokens are forgotten, as after five minutes: it logs in again.
            engine.servers[0].kill()
            engine.servers[0].start()
            engine.servers[0].await_answer()
            assert (await member.documents()).keys() == {NAME}


@needs("zookeeper")
async def test_what_an_account_writes_into_zookeeper_is_its_own(tmp_path: Path) -> None:
    with running_engine("zookeeper", tmp_path) as engine:
        known = ControllerConfig(store_user="keeper", store_password="secret", session_ms=2000)
        async with joined(engine, "x", 0, known) as member:
            await until(lambda: member.leads)
            assert member.standing.leadership is not None
            await member.engine.write(member.standing.leadership, NAME, b"one", None)
            stranger = KazooClient(f"127.0.0.1:{engine.servers[0].port}")
            stranger.start()
            with pytest.raises(NoAuthError):
                stranger.get(f"/x/sets/{NAME}")
            stranger.stop()
            stranger.close()
            wrong = ControllerConfig(store_user="keeper", store_password="guessed", session_ms=2000)
            async with joined(engine, "x", 1) as nobody, joined(engine, "x", 2, wrong) as guesser:
                for other in (nobody, guesser):
                    await until(partial(_is_refused, other))
                    assert not other.leads
            async with joined(engine, "x", 3, known) as second:
                await until(lambda: second.standing.leader is not None)
                assert (await second.documents()).keys() == {NAME}


def enforcing(folder: Path, scheme: str) -> ZooKeeperEnsemble:
    """It serves nobody who has not shown an account of this kind."""
    provider = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
    wanted = f"enforce.auth.enabled=true\nenforce.auth.schemes={scheme}\n"
    return ZooKeeperEnsemble(folder, 1, settings=provider + wanted)


@needs("zookeeper")
async def test_a_zookeeper_that_enforces_digest_accounts_is_used_by_who_has_one(tmp_path: Path) -> None:
    known = ControllerConfig(store_user="keeper", store_password="secret", session_ms=2000)
    with running(enforcing(tmp_path, "digest")) as engine:
        async with joined(engine, "x", 0) as nobody, joined(engine, "x", 1, known) as member:
            await until(lambda: member.leads)
            await until(lambda: "give controllerStoreUser" in str(nobody.standing.trouble))
            assert not nobody.leads


@needs("zookeeper")
@pytest.mark.slow
async def test_a_zookeeper_that_enforces_sasl_is_named_as_one_that_is_not_supported(tmp_path: Path) -> None:
    known = ControllerConfig(store_user="keeper", store_password="secret", session_ms=2000)
    with running(enforcing(tmp_path, "sasl")) as engine:
        async with joined(engine, "x", 0) as nobody, joined(engine, "x", 1, known) as member:
            for other in (nobody, member):
                await until(partial(_hears_of_sasl, other))
                assert not other.leads


def _hears_of_sasl(other: Joined) -> bool:
    return "SASL is not supported" in str(other.standing.trouble)


def _is_refused(other: Joined) -> bool:
    return "NoAuthError" in str(other.standing.trouble)


def with_tls(files: Certificates) -> ControllerConfig:
    return ControllerConfig(
        store_tls=True,
        store_tls_ca=str(files.certificate),
        store_tls_cert=str(files.certificate),
        store_tls_key=str(files.private_key),
        session_ms=2000,
    )


@pytest.mark.parametrize(
    "kind", [pytest.param("etcd", marks=needs("etcd")), pytest.param("zookeeper", marks=needs("zookeeper"))]
)
async def test_engines_behind_tls_are_reached_with_the_certificates(tmp_path: Path, kind: str) -> None:
    files = certificates(tmp_path)
    with running_engine(kind, tmp_path, tls=files) as engine:
        async with joined(engine, "x", 0, with_tls(files)) as member:
            await until(lambda: member.leads)
            assert member.standing.leadership is not None
            await member.engine.write(member.standing.leadership, NAME, b"one", None)
            (tmp_path / "others").mkdir()
            others = certificates(tmp_path / "others")
            async with joined(engine, "x", 1, with_tls(others)) as stranger:
                await until(lambda: "cannot be used" in str(stranger.standing.trouble))
                assert not stranger.leads
