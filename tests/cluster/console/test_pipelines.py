"""The page Pipelines: groups whose queries report themselves, and reports that strangers have written."""

import json
from dataclasses import asdict, replace

from skyrocket.client import Message
from skyrocket.model.query_report import QUERIES, key_of
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import console_of
from tests.unit.model.test_query_report import REPORT


async def test_what_queries_report_is_shown_with_their_group_and_what_is_no_report_is_absent() -> None:
    older = replace(REPORT, name="audit", state="ended", reported_ms=REPORT.reported_ms - 1, url="javascript:alert(1)")
    strange = {
        key_of("billing", "half"): "{",
        key_of("billing", "deep"): "[" * 5000,
        key_of("billing", "surrogate"): json.dumps({**asdict(REPORT), "name": "\ud800"}),
        key_of("nobody", "lake"): REPORT.text(),
        "billing": "null",
    }
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor, cluster.admin() as admin:
        await cluster.create_topic("Orders", queues=1)
        await cluster.create_group("billing")
        (queue,) = await admin.queues("Orders")
        async with cluster.producer() as producer:
            await producer.send(Message("Orders", b"x"))
        await admin.set_offset("billing", queue, 1)
        visitor.console.parts.view.forget()
        assert (await visitor.get("/api/pipelines"))["rows"] == []  # nobody has reported, and nothing has moved
        for key, text in {
            **strange,
            key_of("billing", "audit"): older.text(),
            key_of("billing", REPORT.name): REPORT.text(),
        }.items():
            await admin.put_value(QUERIES, key, text)
        visitor.console.parts.view.forget()
        (row,) = (await visitor.get("/api/pipelines"))["rows"]
        described = (await visitor.get("/api/openapi.json"))["components"]["schemas"]["QueryReport"]
    assert (row["group"], row["offset"], row["moved_ms"]) == ("billing", 1, None)
    assert row["queries"] == [asdict(REPORT), asdict(older)]  # the page makes a link of addresses of the web alone
    assert described["properties"].keys() == asdict(REPORT).keys()
