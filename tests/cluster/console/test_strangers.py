"""What strangers, and accounts that may do little, cannot do to a console: guess faster, flood, see secrets."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from skyrocket.clock import SystemClock
from skyrocket.console.core.settings import ConsoleSettings
from skyrocket.console.history.database import Database
from skyrocket.console.live.gate import Gate, TooManyStreams
from skyrocket.console.login import audit as audits
from skyrocket.console.login.audit import Audit
from skyrocket.console.server import Console
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import TOKEN, Visitor, console_of
from tests.cluster.console.test_tokens_and_audit import ROOT, WITH_USERS, script
from tests.waiting import SECONDS

HEADERS = {"X-Skyrocket-Csrf": "login"}


async def test_guesses_that_come_at_once_are_no_more_than_those_one_after_the_other() -> None:
    async with AsyncLocalCluster(settings=WITH_USERS) as cluster, console_of(cluster, credentials=ROOT) as visitor:

        async def guess(number: int) -> int:
            guessed = {"account": "rocketmq", "password": f"guess-{number}"}
            return (await visitor.http.post("/api/login", json=guessed, headers=HEADERS)).status_code

        answers = await asyncio.gather(*(guess(number) for number in range(20)))
    assert sorted(answers) == [401] * 5 + [429] * 15


async def test_a_login_that_no_broker_answers_is_no_wrong_one() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await cluster.stop_broker()
        for _ in range(7):
            await visitor.post("/api/login", {"account": "alice", "password": "x"}, status=502)
        await visitor.log_in()


async def test_guesses_keep_no_script_from_the_same_address_out() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        made = await _token(visitor)
        for _ in range(6):
            await visitor.http.post("/api/login", json={"token": "guess"}, headers=HEADERS)
        async with script(visitor, made) as report:
            looked = await report.get("/api/overview")
    assert looked.status_code == 200


async def test_strangers_leave_their_wrong_logins_in_the_audit_and_nothing_else() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        for token in [""] * 3 + ["guess"] * 8:
            await visitor.http.post("/api/login", json={"token": token}, headers=HEADERS)
        visitor.console.parts.attempts._failed.clear()
        await visitor.log_in()
        rows = (await visitor.get("/api/audit"))["rows"]
    assert [row["account"] for row in rows] == ["operator"] + [""] * 5


async def test_wrong_logins_push_no_change_out_of_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audits, "_MOST_OF_STRANGERS", 3)
    monkeypatch.setattr(audits, "_MOST_ENTRIES", 6)
    database = Database(None)
    await database.open()
    audit = Audit(database, SystemClock())
    for number in range(20):
        account = "op" if number in (0, 1) else ""
        await audit.write(account, "::1", "POST /x", f"/{number}", details="", before="", after="", outcome="done")
    of_all = await audit.entries()
    for number in range(20, 30):
        await audit.write("op", "::1", "POST /x", f"/{number}", details="", before="", after="", outcome="done")
    later = await audit.entries()
    await database.close()
    assert [each.target for each in of_all] == ["/19", "/18", "/17", "/1", "/0"]
    assert [each.target for each in later] == [f"/{number}" for number in range(29, 23, -1)]


async def test_what_the_audit_is_searched_for_is_no_pattern_and_of_any_length() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        rule = {"kind": "lag", "threshold": 1}
        for name in ("100%25", "my_rule", "my-rule"):
            await visitor.change("PUT", f"/api/alerts/rules/{name}", rule)
        found = [
            [row["target"] for row in (await visitor.get("/api/audit", search=text))["rows"]]
            for text in ("100%", "MY_RULE", "_")
        ]
        long = await visitor.console.parts.audit.entries("%" * 60_000)
    assert found == [["/api/alerts/rules/100%"], ["/api/alerts/rules/my_rule"], ["/api/alerts/rules/my_rule"]]
    assert long == []


async def test_secrets_among_the_settings_are_in_no_answer_and_not_in_the_audit() -> None:
    secret = '{"accessKey":"rocketmq","secretKey":"very-secret"}'
    async with AsyncLocalCluster(settings=WITH_USERS) as cluster, console_of(cluster, credentials=ROOT) as visitor:
        await visitor.log_in()
        (broker,) = (await visitor.get("/api/cluster"))["brokers"]
        settings = f"/api/brokers/{broker['address']}/settings"
        csrf = (await visitor.get("/api/session"))["csrf"]
        wanted = {"settings": {"innerClientAuthenticationCredentials": secret, "fileReservedTime": "48"}}
        await visitor.http.put(settings, json=wanted, headers={"X-Skyrocket-Csrf": csrf})
        shown, written = await visitor.get(settings), (await visitor.get("/api/audit"))["rows"]
    assert "very-secret" not in json.dumps(written)
    assert '"fileReservedTime":"48"' in written[0]["details"]
    assert "12345678" not in json.dumps((shown, written))


async def test_a_secret_setting_that_comes_back_as_it_is_shown_stays_as_it_is() -> None:
    async with AsyncLocalCluster(settings=WITH_USERS) as cluster, console_of(cluster, credentials=ROOT) as visitor:
        await visitor.log_in()
        (broker,) = (await visitor.get("/api/cluster"))["brokers"]
        path = f"/api/brokers/{broker['address']}/settings"
        secrets = {key: value for key, value in (await visitor.get(path))["settings"].items() if value == "***"}
        preview = await visitor.post(f"{path}/preview", {"settings": secrets})
        done = await visitor.change("PUT", path, {"settings": secrets})
    assert secrets
    assert preview["differences"] == []
    assert done["done"].startswith("nothing was changed")


async def test_one_address_has_half_of_all_live_pages_at_most() -> None:
    gate = Gate(4)
    with contextlib.ExitStack() as streams:
        for _ in range(2):
            streams.enter_context(gate.admit("10.0.0.1").stream())
        with pytest.raises(TooManyStreams):
            gate.admit("10.0.0.1")
        for _ in range(2):
            streams.enter_context(gate.admit("10.0.0.2").stream())
        with pytest.raises(TooManyStreams):
            gate.admit("10.0.0.3")
    gate.admit("10.0.0.1")
    assert not gate.open


async def test_alert_rules_are_kept_from_accounts_that_may_not_change_the_cluster() -> None:
    rule = {"kind": "lag", "threshold": 1}
    async with AsyncLocalCluster(settings=WITH_USERS) as cluster, console_of(cluster, credentials=ROOT) as visitor:
        admin = visitor.console.parts.accounts.own.admin
        await admin.create_user("alice", "secret123")
        await visitor.post("/api/login", {"account": "alice", "password": "secret123"})
        refused = [
            await visitor.change("PUT", "/api/alerts/rules/mine", rule, status=403),
            await visitor.post("/api/alerts/rules/group-lag/mute", {"minutes": 60}, status=403),
            await visitor.change("DELETE", "/api/alerts/rules/group-lag", status=403),
        ]
        await visitor.post("/api/login", {"account": "rocketmq", "password": "12345678"})
        await visitor.change("PUT", "/api/alerts/rules/mine", rule)
        rules = {each["id"] for each in (await visitor.get("/api/alerts"))["rules"]}
    assert {each["error"] for each in refused} == {
        "alert rules are for who may change the cluster: alice has no right to Update it"
    }
    assert {"mine", "group-lag"} <= rules


async def test_alert_rules_are_for_every_account_where_brokers_allow_all_of_them_everything() -> None:
    settings = {**WITH_USERS, "authorizationEnabled": "false"}
    async with AsyncLocalCluster(settings=settings) as cluster, console_of(cluster, credentials=ROOT) as visitor:
        await visitor.console.parts.accounts.own.admin.create_user("alice", "secret123")
        await visitor.post("/api/login", {"account": "alice", "password": "secret123"})
        await visitor.change("PUT", "/api/alerts/rules/mine", {"kind": "lag", "threshold": 1})


async def test_of_a_private_console_strangers_do_not_hear_where_its_cluster_is() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster, anonymous_may_read=False) as visitor:
        before = await visitor.get("/api/session")
        await visitor.log_in()
        after = await visitor.get("/api/session")
    assert before["name_servers"] == []
    assert len(after["name_servers"]) == 1


async def test_a_stream_of_a_private_console_shows_nothing_after_the_logout_or_without_its_token() -> None:
    async with AsyncLocalCluster() as cluster:
        settings = ConsoleSettings(cluster.client_settings, port=0, token=TOKEN, anonymous_may_read=False)
        async with (
            Console(settings) as console,
            httpx.AsyncClient(base_url=console.address, headers=HEADERS) as browser,
        ):
            await browser.post("/api/login", json={"token": TOKEN})
            browser.headers["X-Skyrocket-Csrf"] = (await browser.get("/api/session")).json()["csrf"]
            made = (await browser.post("/api/access/tokens", json={"name": "report"})).json()
            bearer = {"Authorization": f"Bearer {made['token']}"}
            async with _following(browser) as lines, _following(browser, bearer) as of_script:
                await browser.delete(f"/api/access/tokens/{made['id']}")
                await browser.post("/api/logout")
                told = [await _trouble(each) for each in (lines, of_script)]
    assert ["this session has ended: log in again" in each for each in told] == [True, True]


@contextlib.asynccontextmanager
async def _following(
    http: httpx.AsyncClient, headers: dict[str, str] | None = None
) -> AsyncIterator[AsyncIterator[str]]:
    """The lines of a stream that has begun."""
    async with http.stream("GET", "/api/live", params={"of": "/api/overview"}, headers=headers) as stream:
        lines = stream.aiter_lines()
        assert await anext(lines) == "event: answer"
        yield lines


async def _trouble(lines: AsyncIterator[str]) -> str:
    async with asyncio.timeout(SECONDS):
        while await anext(lines) != "event: trouble":
            pass
        return await anext(lines)


async def test_a_session_lasts_as_long_as_it_is_used_rather_than_eight_hours_from_its_beginning() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        answer = await visitor.http.post("/api/login", json={"token": TOKEN}, headers=HEADERS)
    assert "max-age" not in answer.headers["set-cookie"].lower()
    assert "expires" not in answer.headers["set-cookie"].lower()


async def test_a_token_for_reading_is_told_that_it_may_change_nothing() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        made = [
            await visitor.post("/api/access/tokens", {"name": "a", "may_change": may_change})
            for may_change in (False, True)
        ]
        told = []
        for each in made:
            async with script(visitor, each["token"]) as http:
                told.append((await http.get("/api/session")).json()["may_change"])
    assert told == [False, True]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/api/audit", {"before_id": 10**30}),
        ("/api/topics", {"page": 10**30}),
        ("/api/history", {"series": "in:cluster", "hours": "nan"}),
        ("/api/topics/Orders/messages", {"from_ms": 10**30}),
        ("/api/topics/Orders/messages", {"offset": -(10**30)}),
        ("/api/topics/Orders/copy", {"target": "Orders", "since_ms": 0, "per_second": "inf"}),
    ],
)
async def test_numbers_that_nobody_has_room_for_are_refused(path: str, query: dict[str, Any]) -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("Orders", queues=1)
        await visitor.log_in()
        answer = await visitor.http.get(path, params=query)
    assert (answer.status_code, answer.json()["kind"]) == (400, "BadInput")


async def test_a_stranger_may_send_no_large_body() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        large = await visitor.http.post("/api/login", content=b" " * 100_000, headers=HEADERS)
    assert (large.status_code, large.json()["error"]) == (400, "a body has at most 65,536 bytes")


async def test_a_websocket_is_refused_and_is_no_error_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    async with (
        AsyncLocalCluster() as cluster,
        Console(ConsoleSettings(cluster.client_settings, port=0)) as console,
        httpx.AsyncClient(base_url=console.address) as http,
    ):
        answer = await http.get("/api/live", headers={**upgrade, **key})
    assert answer.status_code == 403
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def test_names_with_a_percent_sign_are_followed_live() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await cluster.create_topic("%DLQ%billing", queues=1)
        visitor.console.parts.streams.closing.set()  # one look
        answer = await visitor.http.get("/api/live", params={"of": "/api/topics/%25DLQ%25billing"})
    assert answer.text.startswith("event: answer"), answer.text


async def test_quotas_are_in_the_audit_with_what_they_were() -> None:
    wanted = {"subject": "account", "name": "alice", "quota": "connections", "limit": 5}
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        await visitor.change("PUT", "/api/quotas", wanted)
        await visitor.change("PUT", "/api/quotas", {**wanted, "limit": 7})
        rows = (await visitor.get("/api/audit"))["rows"]
    assert [json.loads(row["before"]) for row in rows[:2]] == [{"broker-a": 5}, {}]


async def test_a_file_that_takes_nothing_more_leaves_pages_login_and_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster, database=tmp_path / "c.db") as visitor:
        made = await _token(visitor)
        await visitor.console.parts.database.do(lambda connection: connection.execute("PRAGMA query_only=1"))
        await visitor.console.parts.tokens.load()
        known = visitor.console.parts.tokens._known
        known.update({key: replace(token, used_ms=0) for key, token in known.items()})
        await visitor.log_in()
        await visitor.post("/api/topics", {"name": "Orders"})
        async with script(visitor, made) as report:
            looked = await report.get("/api/overview")
        kept = await visitor.change("PUT", "/api/alerts/rules/x", {"kind": "lag", "threshold": 1}, status=502)
        recording = asyncio.create_task(visitor.console.recorder.run())
        async with asyncio.timeout(30):
            while "no sample was kept" not in caplog.text:
                await asyncio.sleep(0.01)
        assert not recording.done()
        recording.cancel()
    assert looked.status_code == 200
    assert "c.db: attempt to write a readonly database; make room" in kept["error"]
    assert "not in the audit: 'operator' asked for from" in caplog.text


async def _token(visitor: Visitor) -> str:
    await visitor.log_in()
    made = await visitor.post("/api/access/tokens", {"name": "report"})
    await visitor.post("/api/logout")
    return str(made["token"])
