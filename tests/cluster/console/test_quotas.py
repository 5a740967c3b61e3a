"""Quotas as the console shows them."""

import pytest

from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import console_of


@pytest.mark.requirement("D035")
async def test_quotas_are_shown_with_their_use_to_those_who_have_logged_in() -> None:
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor, cluster.admin() as admin:
        await admin.set_quota({"topics": 3}, namespace="shop")
        await cluster.create_topic("shop%Orders")
        hidden = await visitor.http.get("/api/quotas")
        await visitor.log_in()
        page = await visitor.get("/api/quotas")
    assert hidden.status_code == 401
    assert page == {
        "quotas": [
            {
                "subject": "namespace",
                "name": "shop",
                "quota": "topics",
                "limit": 3,
                "used": 1.0,
                "exceeded": 0,
                "broker": "broker-a",
            }
        ],
        "trouble": "",
        "trouble_phrase": None,
    }


@pytest.mark.requirement("D035")
async def test_a_quota_is_set_changed_and_taken_away_by_those_who_have_logged_in() -> None:
    wanted = {"subject": "account", "name": "alice", "quota": "connections", "limit": 50}
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor:
        await visitor.change("PUT", "/api/quotas", wanted, status=401)
        await visitor.log_in()
        said = await visitor.change("PUT", "/api/quotas", wanted)
        await visitor.change("PUT", "/api/quotas", wanted | {"limit": 60})
        (line,) = (await visitor.get("/api/quotas"))["quotas"]
        refused = await visitor.change(
            "PUT", "/api/quotas", wanted | {"subject": "namespace", "quota": "connections"}, status=400
        )
        await visitor.change("PUT", "/api/quotas", wanted | {"limit": 0}, status=400)
        gone = await visitor.change("PUT", "/api/quotas", wanted | {"limit": None})
        left = (await visitor.get("/api/quotas"))["quotas"]
    assert said["done"] == "connections of account alice is 50 on 1 broker"
    assert (line["subject"], line["name"], line["quota"], line["limit"]) == ("account", "alice", "connections", 60)
    assert "connections is counted for each account" in refused["error"]
    assert "is not limited any more" in gone["done"]
    assert left == []
