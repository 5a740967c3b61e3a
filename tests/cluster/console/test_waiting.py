"""Timers and transactions in the console: found, checked, given up, opened again."""

from skyrocket.client import Message, ReceivedMessage, TransactionProducer, TransactionState
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import console_of
from tests.waiting import until

SLOW_CHECKS = {"transactionCheckInterval": "600000", "transactionTimeOut": "600000"}


async def test_a_timer_is_found_by_its_key_or_id_until_it_is_taken_back_and_the_histogram_has_all() -> None:
    async with AsyncLocalCluster(settings={"recallMessageEnable": "true"}) as cluster:
        await cluster.create_topic("Orders")
        async with cluster.producer() as producer, console_of(cluster) as visitor:
            await producer.send(Message("Orders", b"soon", keys="o-1", delay=30))
            receipt = await producer.send(Message("Orders", b"later", keys="o-2 o-3", delay=7200))
            every = await visitor.until("/api/timers", lambda answer: len(answer["rows"]) == 2)
            by_key = await visitor.get("/api/timers", key="o-3")
            by_id = await visitor.get("/api/timers", key=receipt.message_id)
            elsewhere = await visitor.get("/api/timers", key="o-3", topic="Payments")
            nothing = await visitor.get("/api/timers", key="o-9")
            await visitor.log_in()
            await visitor.post("/api/timers/recall", {"message_id": receipt.message_id})
            gone = await visitor.get("/api/timers", key="o-3")
    assert {step["within"]: step["messages"] for step in every["histogram"] if step["messages"]} == {
        "1 min": 1,
        "6 h": 1,
    }
    assert (every["looked_at"], every["is_complete"]) == (2, True)
    assert [row["message_id"] for row in by_key["rows"]] == [receipt.message_id]
    assert by_id["rows"] == by_key["rows"]
    assert elsewhere["rows"] == nothing["rows"] == gone["rows"] == []


async def test_an_operator_has_a_producer_asked_before_its_time() -> None:
    async with AsyncLocalCluster(settings=SLOW_CHECKS) as cluster:
        await cluster.create_topic("Payments")
        asked: list[str] = []

        def check(message: ReceivedMessage) -> TransactionState:
            asked.extend(message.keys)
            return TransactionState.COMMIT

        sellers = TransactionProducer("sellers", client=cluster.client_settings)
        sellers.checker(check)
        async with sellers, console_of(cluster) as visitor:
            for key in ("p-1", "p-2"):
                async with sellers.transaction(Message("Payments", b"paid", keys=key)) as payment:
                    payment.leave_open()
            await visitor.log_in()
            rows = (await visitor.get("/api/transactions", sort="age"))["rows"]
            assert [row["keys"] for row in rows] == [["p-2"], ["p-1"]]
            wanted = {name: rows[1][name] for name in ("broker", "transaction_id", "half_offset")}
            done = await visitor.post("/api/transactions/check", wanted)
            await until(lambda: len(cluster.messages("Payments")) == 1)
            (left,) = (await visitor.get("/api/transactions", producer_group="sellers"))["rows"]
            nobody = (await visitor.get("/api/transactions", producer_group="others"))["rows"]
            refused = await visitor.http.get("/api/transactions", params={"sort": "size"})
    assert done["done"].startswith("a producer is asked about transaction")
    assert asked == ["p-1"]
    assert (left["keys"], nobody) == (["p-2"], [])
    assert refused.json()["error"].startswith("sort is 'size': choose one of age, checks, group, topic")


async def test_a_transaction_that_was_given_up_is_listed_and_opened_again() -> None:
    settings = {"transactionCheckInterval": "300", "transactionTimeOut": "100", "transactionCheckMax": "1"}
    async with AsyncLocalCluster(settings=settings) as cluster:
        await cluster.create_topic("Payments")
        sellers = TransactionProducer("sellers", client=cluster.client_settings)
        sellers.checker(lambda _: TransactionState.UNKNOWN)
        async with sellers, console_of(cluster) as visitor, cluster.admin() as admin:
            before = await visitor.get("/api/transactions/given-up")
            async with sellers.transaction(Message("Payments", b"paid", keys="p-1")) as payment:
                payment.leave_open()
            rows = (await visitor.until("/api/transactions/given-up", lambda answer: answer["rows"]))["rows"]
            await admin.change_broker_settings({"transactionCheckMax": "1000"})
            await visitor.log_in()
            wanted = {name: rows[0][name] for name in ("broker", "offset_message_id")}
            done = await visitor.post("/api/transactions/given-up/resume", wanted)
            (again,) = (await visitor.get("/api/transactions"))["rows"]
            await visitor.post("/api/transactions/given-up/resume", {**wanted, "offset_message_id": "0"}, status=400)
    assert before["rows"] == []
    assert (rows[0]["topic"], rows[0]["producer_group"], rows[0]["keys"]) == ("Payments", "sellers", ["p-1"])
    assert rows[0]["checks"] >= 1
    assert done["done"].endswith("is open again")
    assert again["transaction_id"] == rows[0]["transaction_id"]
