"""What another site, or a stranger, may send: every change is refused, whichever endpoint it is for."""

import re

import pytest

from skyrocket.console.api.families import ENDPOINTS
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import console_of

CHANGES = [each for each in ENDPOINTS if each.changes]


def _path(path: str) -> str:
    return re.sub(r"{\w+(:\w+)?}", "x", path)


@pytest.mark.parametrize("headers", [{}, {"X-Skyrocket-Csrf": "guessed"}, {"X-Skyrocket-Csrf": "\u00ff"}])
async def test_every_change_without_the_word_of_the_session_is_refused(headers: dict[str, str]) -> None:
    encoded = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        for endpoint in CHANGES:
            answer = await visitor.http.request(endpoint.method, _path(endpoint.path), json={}, headers=encoded)
            assert (answer.status_code, answer.json()["kind"]) == (403, "CrossSite"), endpoint.path


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://["}, {"Sec-Fetch-Site": "cross-site"}],
)
async def test_every_change_that_another_site_asks_for_is_refused(headers: dict[str, str]) -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.log_in()
        word = (await visitor.get("/api/session"))["csrf"]
        for endpoint in CHANGES:
            answer = await visitor.http.request(
                endpoint.method,
                _path(endpoint.path),
                json={},
                headers={**headers, "X-Skyrocket-Csrf": word},
            )
            assert (answer.status_code, answer.json()["kind"]) == (403, "CrossSite"), endpoint.path


@pytest.mark.parametrize(
    "of", ["http://[", "", "/api/live", "/api/live?of=/api/overview", "//evil.example/api/x", "/../x", "\0"]
)
async def test_what_cannot_be_followed_is_refused(of: str) -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        answer = await visitor.http.get("/api/live", params={"of": of})
        assert (answer.status_code, answer.json()["kind"]) == (400, "BadInput")


@pytest.mark.parametrize("number", ["x", "²", "-1", "7", "9" * 5000])
async def test_a_copy_that_cannot_be_is_refused(number: str) -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        answer = await visitor.http.get(f"/api/copies/{number}")
        assert (answer.status_code, answer.json()["kind"]) == (400, "BadInput")
