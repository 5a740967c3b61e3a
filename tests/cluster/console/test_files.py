"""The files of the pages: one answer until the first paint, and nothing asked for twice."""

import re

import pytest

from skyrocket.testing import AsyncLocalCluster
from tests.cluster.console.console_fixture import console_of


async def test_a_browser_that_was_never_here_paints_after_one_answer() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        page = await visitor.http.get("/topics")
    policy = page.headers["content-security-policy"]
    hashes = re.findall(r"'sha256-[^']+'", policy)
    assert 'rel="stylesheet"' not in page.text
    assert "<script src=" not in page.text, "a script that is waited for"
    assert page.text.count("<style>") + page.text.count("<script>") == len(set(hashes)) == 4
    assert "unsafe" not in policy


async def test_files_of_a_release_are_kept_and_others_are_asked_for_again() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        page = await visitor.http.get("/")
        (module,) = re.findall(r'src="(/static/[0-9a-f]{16}/main\.js)"', page.text)
        kept = await visitor.http.get(module)
        again = await visitor.http.get("/static/main.js")
        known = await visitor.http.get("/static/main.js", headers={"If-None-Match": again.headers["etag"]})
        page_known = await visitor.http.get("/groups", headers={"If-None-Match": page.headers["etag"]})
    assert (kept.headers["cache-control"], again.headers["cache-control"]) == (
        "public, max-age=31536000, immutable",
        "no-cache",
    )
    assert kept.headers["content-type"].startswith("text/javascript")
    assert (known.status_code, known.content) == (304, b"")
    assert page_known.status_code == 304


@pytest.mark.parametrize(("encoding", "packed"), [("gzip, br", "gzip"), ("identity", None)])
async def test_files_are_packed_for_who_can_unpack_them(encoding: str, packed: str | None) -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        answer = await visitor.http.get("/static/words_zh.js", headers={"Accept-Encoding": encoding})
    assert answer.headers.get("content-encoding") == packed
    assert "export const chinese" in answer.text


@pytest.mark.parametrize("path", ["/static/none.js", "/static/../web/app.py", "/static/%2e%2e/web/app.py"])
async def test_there_are_no_other_files(path: str) -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        answer = await visitor.http.get(path)
    assert "skyrocket.console" not in answer.text
    assert answer.status_code == 404 or answer.text.startswith("<!doctype html>")
