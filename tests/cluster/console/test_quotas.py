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
    }
