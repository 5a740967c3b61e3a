"""Tokens for scripts; who changed what, with before and after, also for a webhook; may this user do that from there?"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from skyrocket.client.core.settings import Acl
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import Visitor, console_of
from tests.waiting import until

WITH_USERS = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": '{"username":"rocketmq","password":"12345678"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"rocketmq","secretKey":"12345678"}',
}
ROOT = Acl("rocketmq", "12345678")


def script(visitor: Visitor, token: str) -> httpx.AsyncClient:
    """Without cookies, as a script has none."""
    transport = httpx.ASGITransport(visitor.console.app)
    return httpx.AsyncClient(
        transport=transport, base_url="http://localhost", headers={"Authorization": f"Bearer {token}"}
    )


@contextlib.asynccontextmanager
async def webhook(told: list[dict[str, Any]]) -> AsyncIterator[str]:
    """Its address."""

    async def hook(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        told.append(json.loads(await reader.readexactly(int(head.split("content-length:")[1].split()[0]))))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(hook, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def test_a_script_uses_a_token_until_it_is_taken_back_and_one_for_reading_changes_nothing(tmp_path: Path) -> None:
    async with AsyncLocalCluster() as cluster:
        async with console_of(cluster, database=tmp_path / "c.db", anonymous_may_read=False) as visitor:
            await visitor.log_in()
            reading = await visitor.post("/api/access/tokens", {"name": "report"})
            changing = await visitor.post("/api/access/tokens", {"name": "deploy", "may_change": True})
            nameless = await visitor.post("/api/access/tokens", {"name": " "}, status=400)
        assert reading["token"].encode() not in (tmp_path / "c.db").read_bytes()
        async with console_of(cluster, database=tmp_path / "c.db", anonymous_may_read=False) as visitor:
            async with script(visitor, reading["token"]) as report, script(visitor, changing["token"]) as deploy:
                looked = await report.get("/api/topics")
                refused = await report.post("/api/topics", json={"name": "Orders"})
                made = await deploy.post("/api/topics", json={"name": "Orders"})
                more = await deploy.post("/api/access/tokens", json={"name": "mine"})
                await visitor.log_in()
                known = (await visitor.get("/api/access/tokens"))["tokens"]
                await visitor.change("DELETE", f"/api/access/tokens/{changing['id']}")
                gone = await deploy.post("/api/topics", json={"name": "More"})
            async with script(visitor, "sky_guess") as stranger:
                guesses = [(await stranger.get("/api/topics")).status_code for _ in range(6)]
            entries = (await visitor.get("/api/audit"))["rows"]
    assert nameless["error"].startswith("name has 1 to 100 signs")
    assert [each.status_code for each in (looked, refused, made, more, gone)] == [200, 403, 200, 403, 401]
    assert [(token["name"], token["may_change"], token["used_ms"] > 0) for token in known] == [
        ("deploy", True, True),
        ("report", False, True),
    ]
    assert guesses == [401] * 4 + [429] * 2  # the token that was taken back counts too
    assert "token deploy" in {entry["account"] for entry in entries}
    assert all(secret not in json.dumps(entries) for secret in (reading["token"], changing["token"]))


async def test_the_audit_has_before_and_after_and_a_webhook_is_told() -> None:
    told: list[dict[str, Any]] = []
    async with (
        webhook(told) as address,
        AsyncLocalCluster() as cluster,
        console_of(cluster, audit_webhook=address) as visitor,
    ):
        await cluster.create_topic("Orders", queues=4)
        await visitor.log_in()
        await visitor.change("PUT", "/api/topics/Orders", {"read_queues": 8})
        await visitor.change("DELETE", "/api/topics/Orders")
        await visitor.change("DELETE", "/api/topics/Nowhere", status=404)
        rows = (await visitor.get("/api/audit"))["rows"]
        await until(lambda: len(told) == 4)
    (refused, deleted, changed, login) = rows
    assert json.loads(changed["before"]) == {"broker-a read_queues": "4"}
    assert json.loads(changed["after"]) == {"broker-a read_queues": "8"}
    assert "read_queues=8" in deleted["before"]
    assert json.loads(deleted["after"]) == "topic Orders was deleted"
    assert (refused["after"], refused["outcome"] != "done") == ("", True)
    assert (login["action"], "a token for tests" in login["details"]) == ("POST /api/login", False)
    assert [each["audit"] for each in told] == [[row] for row in reversed(rows)]


async def test_the_tester_knows_addresses_disabled_users_and_which_right_decides() -> None:
    async with (
        AsyncLocalCluster(settings=WITH_USERS) as cluster,
        console_of(cluster, credentials=ROOT) as visitor,
    ):
        await visitor.log_in()
        await visitor.post("/api/access/users", {"name": "alice", "password": "secret-of-alice"})
        right = {"subject": "User:alice", "resource": "Topic:Ord*", "actions": ["Pub"], "source_ips": ["192.0.2.0/24"]}
        await visitor.post("/api/access/rights", right)
        await visitor.post("/api/access/rights", {**right, "resource": "Topic:Orders-old", "decision": "Deny"})

        async def may(resource: str, address: str = "", user: str = "alice") -> tuple[bool, str]:
            answer = await visitor.get("/api/access/may", user=user, resource=resource, action="Pub", address=address)
            return answer["allowed"], answer["because"]

        verdicts = [
            await may("Topic:Orders"),
            await may("Topic:Orders", "192.0.2.7"),
            await may("Topic:Orders", "198.51.100.1"),
            await may("Topic:Orders-old", "192.0.2.7"),
            await may("Topic:Orders", user="bob"),
            await may("Topic:Orders", user="rocketmq"),
        ]
        wrong = await visitor.http.get(
            "/api/access/may", params={"user": "alice", "resource": "Topic:A", "action": "Pub", "address": "here"}
        )
        await visitor.change("PUT", "/api/access/users/alice", {"status": "disable"})
        disabled = await may("Topic:Orders")
        entry = (await visitor.get("/api/audit"))["rows"][0]
        everything = json.dumps((await visitor.get("/api/access"), (await visitor.get("/api/audit"))))
    assert [allowed for allowed, _ in verdicts] == [True, True, False, False, False, True]
    assert verdicts[3][1] == "Deny Pub on Topic:Orders-old from 192.0.2.0/24"
    assert wrong.json()["error"] == "address is 'here': give one as 192.0.2.1 or 2001:db8::1"
    assert disabled == (False, "this user is disabled")
    assert [json.loads(entry[name])["status"] for name in ("before", "after")] == ["enable", "disable"]
    assert "secret-of-alice" not in everything
    assert "12345678" not in everything
