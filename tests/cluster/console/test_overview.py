"""The first page, the session, and what is refused."""

import re

import httpx
import pytest

from skyrocket.client import Message
from skyrocket.console.core.settings import ConsoleSettings
from skyrocket.console.server import Console
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import TOKEN, Visitor, console_of


async def test_the_overview_counts_brokers_topics_and_groups() -> None:
    async with AsyncLocalCluster(brokers=2) as cluster:
        await cluster.create_topic("Orders")
        await cluster.create_group("billing")
        async with console_of(cluster) as visitor:
            answer = await visitor.get("/api/overview")
    assert [(broker["broker"], broker["is_up"]) for broker in answer["brokers"]] == [
        ("broker-a", True),
        ("broker-b", True),
    ]
    assert (answer["topics"], answer["groups"]) == (1, 1)


async def test_a_broker_that_is_gone_is_shown_as_down_and_found_by_the_checks() -> None:
    async with AsyncLocalCluster(brokers=2) as cluster, console_of(cluster) as visitor:
        await visitor.get("/api/overview")
        await cluster.kill_broker("broker-b")
        visitor.console.parts.view.forget()
        health = await visitor.get("/api/health")
        half = await visitor.get("/api/overview")
        await visitor.get("/api/topics", kind="all", sort="-in")
        await visitor.get("/api/groups", system=True)
        await cluster.kill_broker("broker-a")
        visitor.console.parts.view.forget()
        nobody = await visitor.get("/api/overview")
    (finding,) = [each for each in health["findings"] if each["code"] == "broker-unreachable"]
    assert finding["severity"] == "critical"
    assert finding["name"] == "broker-b:0"
    assert [broker["is_up"] for broker in half["brokers"]] == [True, False]
    assert [broker["is_up"] for broker in nobody["brokers"]] == [False, False]


async def test_samples_of_rates_and_lag_can_be_read_as_history() -> None:
    async with AsyncLocalCluster() as cluster:
        await cluster.create_topic("Orders")
        async with cluster.producer() as producer:
            await producer.send(Message("Orders", b"one"))
        async with console_of(cluster) as visitor:
            await visitor.console.recorder.record()
            answer = await visitor.get("/api/history", series="lag:cluster", hours=1)
            refused = await visitor.http.get("/api/history", params={"series": "x", "hours": "a year"})
    assert [sample["value"] for sample in answer["samples"]] == [0.0]
    assert (refused.status_code, refused.json()["error"]) == (400, "hours is 'a year', not a number")


async def test_nothing_is_changed_without_a_login_and_without_the_word_of_the_session() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        without_login = await visitor.post("/api/logout", status=401)
        without_word = await visitor.http.post("/api/login", json={"token": TOKEN})
        await visitor.log_in()
        stolen = await visitor.http.post("/api/logout", headers={"X-Skyrocket-Csrf": "login"})
        csrf = (await visitor.get("/api/session"))["csrf"]
        from_elsewhere = await visitor.http.post(
            "/api/logout", headers={"X-Skyrocket-Csrf": csrf, "Origin": "http://evil.example"}
        )
        await visitor.post("/api/logout")
        session = await visitor.get("/api/session")
    assert without_login["kind"] == "NeedsLogin"
    assert [each.status_code for each in (without_word, stolen, from_elsewhere)] == [403, 403, 403]
    assert session["account"] is None


async def test_a_wrong_token_is_refused_and_guessing_has_to_wait() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        for _ in range(5):
            assert (await visitor.post("/api/login", {"token": "guess"}, status=401))["kind"] == "LoginRefused"
        late = await visitor.post("/api/login", {"token": TOKEN}, status=429)
    assert "wait" in late["error"]


async def test_a_private_console_shows_nothing_before_the_login() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster, anonymous_may_read=False) as visitor:
        refused = await visitor.http.get("/api/overview")
        followed = await visitor.http.get("/api/live", params={"of": "/api/overview"})
        await visitor.log_in()
        await visitor.get("/api/overview")
    assert (refused.status_code, followed.status_code) == (401, 401)


async def test_pages_and_answers_forbid_what_they_do_not_need_and_go_by_their_own_names() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster, host_names=("mq.example",)) as visitor:
        page = await visitor.http.get("/topics/Some%20page")
        script = await visitor.http.get("/static/main.js")
        rebound = await visitor.http.get("/api/session", headers={"Host": "evil.example"})
        named = await visitor.http.get("/api/session", headers={"Host": "mq.example:8082"})
        address = await visitor.http.get("/api/session", headers={"Host": "[::1]:8082"})
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert script.headers["x-content-type-options"] == "nosniff"
    assert (rebound.status_code, named.status_code, address.status_code) == (421, 200, 200)


@pytest.mark.parametrize(("https", "name", "secure"), [(False, "skyrocket-console", False), (True, "__Host-", True)])
async def test_cookies_are_for_this_site_alone_and_over_https_for_it_alone(
    https: bool, name: str, secure: bool
) -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster, behind_https=https) as visitor:
        answer = await visitor.http.post("/api/login", json={"token": TOKEN}, headers={"X-Skyrocket-Csrf": "login"})
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(name)
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert ("Secure" in cookie) is secure


async def test_every_route_of_the_api_is_in_its_description_and_nothing_else_is() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        document = await visitor.get("/api/openapi.json")
        starlette = visitor.console.app._app  # type: ignore[attr-defined]
        routes = {
            (method, re.sub(r":\w+}", "}", route.path))
            for route in starlette.routes
            for method in (route.methods or ["GET"])
            if route.path.startswith("/api/") and method != "HEAD"
        }
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    unknown = {("GET", "/api/openapi.json")} | {(method, path) for method, path in routes if path == "/api/{path}"}
    assert routes - described == unknown
    assert described <= routes


async def test_an_answer_is_followed_live_over_a_real_port_and_ends_with_the_console() -> None:
    async with AsyncLocalCluster() as cluster:
        console = Console(ConsoleSettings(cluster.client_settings, port=0, token=TOKEN))
        async with httpx.AsyncClient(base_url=await console.start()) as http:
            async with http.stream("GET", "/api/live", params={"of": "/api/overview"}) as stream:
                lines = stream.aiter_lines()
                assert await anext(lines) == "event: answer"
                assert '"brokers":' in await anext(lines)
                await console.stop()
            refused = await _refused(console)
    assert refused


async def _refused(console: Console) -> bool:
    visitor = Visitor(console)
    try:
        async with httpx.AsyncClient(base_url=console.address) as http:
            await http.get("/api/session")
    except httpx.ConnectError:
        return True
    finally:
        await visitor.http.aclose()
    return False


async def test_a_method_that_an_endpoint_does_not_have_is_refused_in_json() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        refused = await visitor.post("/api/alerts", {}, status=404)
    assert refused["error"] == "there is no POST /api/alerts: /docs lists what there is"
