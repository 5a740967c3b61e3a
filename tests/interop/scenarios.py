"""What every client must be able to do with our server, each scenario once for all clients.

A scenario leads the client step by step and then looks at the server without it: at the log on disk, and at offsets,
members and locks through our own client. It raises NotOffered where the client has no such feature.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skyrocket.model.message import StoredMessage
from tests.interop.client_program import ClientProgram, Delivery, delivery, message
from tests.interop.observer import Observer
from tests.waiting import wait_until

QUEUES = 4
DELAY_LEVEL, DELAY_MS = 2, 2000  # as standalone.SHORT_DELAYS says
BACKGROUND_COMMIT_S = 30.0  # clients commit every 5 s, and when they stop


@dataclass(frozen=True)
class Stage:
    """A client, a server, and names that nobody else uses."""

    client: ClientProgram
    server: Observer
    topic: str
    group: str

    def create_topic(self, queues: int = QUEUES) -> None:
        self.server.create_topic(self.topic, queues)

    def message(self, body: str | bytes, **fields: Any) -> dict[str, Any]:
        return message(self.topic, body.encode() if isinstance(body, str) else body, **fields)

    def stored(self) -> list[StoredMessage]:
        return self.server.stored(self.topic)

    def stored_bodies(self) -> list[str]:
        return [record.body.decode() for record in self.stored()]

    def consumed(self, *consumers: str) -> list[Delivery]:
        return [one for consumer in consumers for one in self.client.deliveries(consumer)]

    def bodies(self, *consumers: str) -> list[str]:
        return [one.body.decode() for one in self.consumed(*consumers)]

    def await_bodies(self, expected: list[str], *consumers: str) -> None:
        """Everything has come, and only once."""
        wanted = sorted(expected)
        wait_until(lambda: len(self.bodies(*consumers)) >= len(wanted), f"{len(wanted)} deliveries in {self.group}")
        assert sorted(self.bodies(*consumers)) == wanted

    def await_commit(self, queues: int = QUEUES) -> None:
        """The group's offsets are at the end of every queue."""
        ends = self.server.max_offsets(self.topic, queues)

        def is_committed() -> bool:
            offsets = self.server.committed(self.group, self.topic, queues)
            return all(offset == end for offset, end in zip(offsets, ends, strict=True) if end)

        wait_until(is_committed, f"{self.group} commits {ends}", seconds=BACKGROUND_COMMIT_S)


# ── sending ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def create_topic(stage: Stage) -> None:
    """A topic that does not exist: the broker makes it when the first message comes, as TBW102 says."""
    stage.client.do("can", feature="create topics")
    sent = stage.client.send("sync", *(stage.message(f"first-{i}") for i in range(8)))
    assert [one.status for one in sent] == ["SEND_OK"] * 8
    assert sorted(stage.stored_bodies()) == [f"first-{i}" for i in range(8)]
    assert {record.queue_id for record in stage.stored()} == set(range(QUEUES))


def send_sync(stage: Stage) -> None:
    """Bodies, keys, tags and properties are stored as they were sent, where the client was told."""
    stage.create_topic()
    bodies = [b"plain", "grüße ✓ 订单".encode(), b"compressible " * 1000, bytes(range(256))]
    fields = {"tags": "订单", "keys": "k1 k2", "properties": {"colour": "rot ✓"}}
    sent = stage.client.send("sync", *(stage.message(body, **fields) for body in bodies))
    assert [one.status for one in sent] == ["SEND_OK"] * len(bodies)
    records = {(record.queue_id, record.queue_offset): record for record in stage.stored()}
    assert len(records) == len(bodies)
    for body, one in zip(bodies, sent, strict=True):
        record = records[one.queue_id, one.queue_offset]
        assert record.body == body
        assert (record.tags, record.keys, record.properties["colour"]) == ("订单", ["k1", "k2"], "rot ✓")
        assert one.message_id in (None, record.unique_key)
        assert int(one.offset_message_id[-16:], 16) == record.physical_offset


def send_async(stage: Stage) -> None:
    stage.create_topic()
    bodies = [f"async-{i}" for i in range(50)]
    sent = stage.client.send("async", *(stage.message(body) for body in bodies))
    assert [one.status for one in sent] == ["SEND_OK"] * len(bodies)
    assert sorted(stage.stored_bodies()) == sorted(bodies)
    places = {(record.queue_id, record.queue_offset) for record in stage.stored()}
    assert {(one.queue_id, one.queue_offset) for one in sent} == places


def send_oneway(stage: Stage) -> None:
    stage.create_topic()
    bodies = [f"oneway-{i}" for i in range(20)]
    stage.client.send("oneway", *(stage.message(body) for body in bodies))
    wait_until(lambda: len(stage.stored()) == len(bodies), "oneway messages are stored", seconds=20)
    assert sorted(stage.stored_bodies()) == sorted(bodies)


def send_ordered(stage: Stage) -> None:
    """The client's own choice of queue by a key: what belongs together is in one queue, in order."""
    stage.create_topic()
    orders = [f"order-{i}" for i in range(6)]
    messages = [stage.message(f"{order} {step}", shardingKey=order) for step in range(5) for order in orders]
    sent = stage.client.send("ordered", *messages)
    assert [one.status for one in sent] == ["SEND_OK"] * len(messages)
    steps: dict[str, list[str]] = defaultdict(list)
    queues: dict[str, set[int]] = defaultdict(set)
    for record in sorted(stage.stored(), key=lambda record: record.queue_offset):
        order, step = record.body.decode().split()
        steps[order].append(step)
        queues[order].add(record.queue_id)
    assert steps == {order: list("01234") for order in orders}
    assert all(len(used) == 1 for used in queues.values())
    assert len(set.union(*queues.values())) > 1


def send_batch(stage: Stage) -> None:
    stage.create_topic()
    bodies = [f"batch-{i}" for i in range(30)]
    messages = [stage.message(body, tags="b", keys=f"key-{body}") for body in bodies]
    (sent,) = stage.client.send("batch", *messages)
    assert sent.status == "SEND_OK"
    records = stage.stored()
    assert [record.body.decode() for record in records] == bodies
    assert {record.queue_id for record in records} == {sent.queue_id}
    assert [record.queue_offset for record in records] == list(range(sent.queue_offset, len(bodies)))
    assert [record.keys for record in records] == [[f"key-{body}"] for body in bodies]


def send_delayed(stage: Stage) -> None:
    """A delay level: the message is kept elsewhere, and comes into its topic when its time has come."""
    stage.create_topic()
    started_ms = time.time() * 1000
    (sent,) = stage.client.send("sync", stage.message("later", tags="t", delayLevel=DELAY_LEVEL))
    assert sent.status == "SEND_OK"
    assert stage.stored() == []
    (kept,) = [one for one in stage.server.stored("SCHEDULE_TOPIC_XXXX") if one.properties["REAL_TOPIC"] == stage.topic]
    assert kept.queue_id == DELAY_LEVEL - 1
    wait_until(lambda: len(stage.stored()) == 1, "the delayed message is delivered", seconds=20)
    (delivered,) = stage.stored()
    assert (delivered.body, delivered.tags) == (b"later", "t")
    assert delivered.queue_id == int(kept.properties["REAL_QID"])
    assert DELAY_MS - 50 <= delivered.store_timestamp - kept.store_timestamp <= DELAY_MS + 3000
    assert delivered.store_timestamp >= started_ms + DELAY_MS - 50


# ── receiving ────────────────────────────────────────────────────────────────────────────────────────────────────────


def push_concurrent(stage: Stage) -> None:
    """What was there before the consumer and what comes while it waits; another group gets it all for itself."""
    stage.create_topic()
    early = [f"early-{i}" for i in range(30)]
    stage.client.send("sync", *(stage.message(body, tags="t", keys=body) for body in early))
    stage.client.consume("concurrent", stage.group, stage.topic)
    stage.await_bodies(early, "concurrent")
    late = [f"late-{i}" for i in range(30)]
    stage.client.send("async", *(stage.message(body, tags="t", keys=body) for body in late))
    stage.await_bodies(early + late, "concurrent")
    by_body = {record.body: record for record in stage.stored()}
    for one in stage.consumed("concurrent"):
        record = by_body[one.body]
        assert (one.queue_id, one.queue_offset) == (record.queue_id, record.queue_offset)
        assert (one.tags, one.keys, one.reconsume_times) == ("t", one.body.decode(), 0)
    assert len(stage.server.members(stage.group)) == 1
    stage.client.stop("concurrent")
    stage.await_commit()
    wait_until(lambda: stage.server.members(stage.group) == [], "the consumer has left its group", seconds=20)
    stage.client.consume("another", f"{stage.group}_other", stage.topic)
    stage.await_bodies(early + late, "another")
    stage.client.stop("another")


def push_orderly(stage: Stage) -> None:
    """Each queue in order, one message after the other, held by a lock; a failing message holds up its queue alone."""
    stage.create_topic()
    stage.client.consume("orderly", stage.group, stage.topic, orderly=True, failures=1)
    orders = [f"order-{i}" for i in range(6)]
    messages = [stage.message(f"{order} {step}", shardingKey=order) for step in range(10) for order in orders]
    messages.insert(24, stage.message("fail once", shardingKey=orders[0]))
    stage.client.send("ordered", *messages)
    total = len(messages)
    wait_until(lambda: len(set(stage.bodies("orderly"))) == total, "every ordered message is delivered")
    assert stage.server.lockable(stage.group, stage.topic, QUEUES) == set()
    deliveries = stage.consumed("orderly")
    again = Counter(one.body for one in deliveries)
    assert again.pop(b"fail once") == 2
    assert set(again.values()) == {1}
    for queue in range(QUEUES):
        offsets = [one.queue_offset for one in deliveries if one.queue_id == queue]
        assert sorted(offsets) == offsets
        assert sorted(set(offsets)) == list(range(len(set(offsets))))
    stage.client.stop("orderly")
    stage.await_commit()
    assert stage.server.lockable(stage.group, stage.topic, QUEUES) == set(range(QUEUES))


def tag_filter(stage: Stage) -> None:
    """Only what was subscribed to; the offset passes what was not."""
    stage.create_topic()
    tags = [None, "blue", "green", "red"]  # in every queue: clients take the queues in turn
    chosen = {f"{number}": tags[number // QUEUES % len(tags)] for number in range(12 * QUEUES)}
    stage.client.send("sync", *(stage.message(body, **({"tags": tag} if tag else {})) for body, tag in chosen.items()))
    assert len({(record.queue_id, record.tags) for record in stage.stored()}) == QUEUES * len(tags)
    stage.client.consume("filtered", stage.group, stage.topic, "red || green")
    wanted = [body for body, tag in chosen.items() if tag in ("red", "green")]
    stage.await_bodies(wanted, "filtered")
    time.sleep(1)
    assert sorted(stage.bodies("filtered")) == sorted(wanted)
    stage.client.stop("filtered")
    stage.await_commit()


def sql_filter(stage: Stage) -> None:
    """A condition over the properties of messages, tried by the broker."""
    stage.create_topic()
    kinds = [(colour, size) for colour in ("red", "blue") for size in range(8)]
    stage.client.send(
        "sync",
        *(stage.message(f"{c}-{size}", properties={"colour": c, "size": str(size)}) for c, size in kinds),
        stage.message("neither"),
    )
    condition = "colour = 'red' AND size BETWEEN 2 AND 5 OR colour IN ('blue') AND size >= 7"
    stage.client.consume("choosy", stage.group, stage.topic, condition, sql=True)
    wanted = ["red-2", "red-3", "red-4", "red-5", "blue-7"]
    stage.await_bodies(wanted, "choosy")
    time.sleep(1)
    assert sorted(stage.bodies("choosy")) == sorted(wanted)
    stage.client.stop("choosy")
    # Clients commit behind the last match; what follows it they pass only when their next pull has timed out.
    last = {one.queue_id: one.queue_offset for one in stage.stored() if one.body.decode() in wanted}

    def is_committed() -> bool:
        offsets = stage.server.committed(stage.group, stage.topic, QUEUES)
        return all((offsets[queue] or 0) > offset for queue, offset in last.items())

    wait_until(is_committed, f"{stage.group} commits more than {last}", seconds=BACKGROUND_COMMIT_S)


def broadcast(stage: Stage) -> None:
    """Every consumer gets everything; the broker keeps no offsets for them."""
    stage.create_topic()
    bodies = [f"news-{i}" for i in range(20)]
    for consumer in ("first-listener", "second-listener"):
        stage.client.consume(consumer, stage.group, stage.topic, broadcast=True)
    stage.client.send("sync", *(stage.message(body) for body in bodies))
    for consumer in ("first-listener", "second-listener"):
        stage.await_bodies(bodies, consumer)
        stage.client.stop(consumer)
    assert stage.server.committed(stage.group, stage.topic, QUEUES) == [None] * QUEUES


def pull(stage: Stage) -> None:
    """The application asks for messages itself, and commits."""
    _pull(stage, "pull")


def lite_pull(stage: Stage) -> None:
    """The same with the pull consumer that subscribes and is rebalanced."""
    _pull(stage, "lite-pull")


def _pull(stage: Stage, step: str) -> None:
    stage.create_topic()
    bodies = [f"pull-{i}" for i in range(40)]
    stage.client.send("sync", *(stage.message(body) for body in bodies))
    found = stage.client.do(step, group=stage.group, topic=stage.topic, count=len(bodies))
    assert sorted(delivery(line).body.decode() for line in found) == sorted(bodies)
    stage.await_commit()


def rebalance(stage: Stage) -> None:
    """One, three, then two consumers: queues are shared by the average, and no message is lost."""
    queues = 8
    stage.create_topic(queues)
    sent: list[str] = []
    names = ["member-a", "member-b", "member-c"]
    stage.client.consume(names[0], stage.group, stage.topic)
    _await_share(stage, names[:1], queues, sent)
    for name in names[1:]:
        stage.client.consume(name, stage.group, stage.topic)
    _await_share(stage, names, queues, sent)
    gone = stage.bodies(names[0])
    stage.client.stop(names[0])
    _await_share(stage, names[1:], queues, sent)
    assert set(gone) | set(stage.bodies(*names[1:])) == set(sent)
    stage.await_commit(queues)  # while they run: one that stops hands its queues to the other, which may start earlier
    for name in names[1:]:
        stage.client.stop(name)


def _await_share(stage: Stage, names: list[str], queues: int, sent: list[str]) -> None:
    """Rounds of a message per queue, until who got which is what the average allocation says."""
    deadline = time.monotonic() + 90
    while (shares := _shares_of_a_round(stage, names, queues, sent)) != _average_shares(stage, names, queues):
        members = stage.server.members(stage.group)
        assert time.monotonic() < deadline, f"queues are shared as {shares} among {members}"


def _shares_of_a_round(stage: Stage, names: list[str], queues: int, sent: list[str]) -> dict[str, set[int]]:
    """Send a message to every queue; the queues whose message each consumer got."""
    round_of = {f"round-{len(sent)}-{queue}": queue for queue in range(queues)}
    for body, queue in round_of.items():
        stage.server.send(stage.topic, queue, body.encode())
    sent.extend(round_of)
    wait_until(lambda: round_of.keys() <= set(stage.bodies(*names)), "a round is consumed")
    return {name: {round_of[body] for body in stage.bodies(name) if body in round_of} for name in names}


def _average_shares(stage: Stage, names: list[str], queues: int) -> dict[str, set[int]]:
    """By the places of the consumers in the sorted list of members; empty while the list is not theirs."""
    places = [name for member in stage.server.members(stage.group) for name in names if f"@{name}" in member]
    if sorted(places) != sorted(names):
        return {}
    return {name: average_share(queues, len(names), index) for index, name in enumerate(places)}


def average_share(queues: int, members: int, index: int) -> set[int]:
    """What the member at this place of the sorted list gets: a run of neighbours, the first ones get one more."""
    size, rest = divmod(queues, members)
    start = index * size + min(index, rest)
    return set(range(start, start + size + (index < rest)))


# ── failing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def retry(stage: Stage) -> None:
    """A message that fails comes again, later, with a count; the others are not held up."""
    stage.create_topic()
    stage.client.consume("retrying", stage.group, stage.topic, failures=2, maxReconsumeTimes=5)
    stage.client.send("sync", *(stage.message(body, tags="t") for body in ("good-1", "fail twice", "good-2")))

    def counts() -> list[int]:
        return [one.reconsume_times for one in stage.consumed("retrying") if one.body == b"fail twice"]

    wait_until(lambda: len(counts()) == 3, "the failing message comes a third time")
    assert counts() == [0, 1, 2]
    assert {one.topic for one in stage.consumed("retrying")} == {stage.topic}
    assert Counter(stage.bodies("retrying")) == {"good-1": 1, "good-2": 1, "fail twice": 3}
    retries = stage.server.stored(f"%RETRY%{stage.group}")
    assert [(one.body, one.reconsume_times, one.tags) for one in retries] == [
        (b"fail twice", 1, "t"),
        (b"fail twice", 2, "t"),
    ]
    assert {one.properties["RETRY_TOPIC"] for one in retries} == {stage.topic}
    assert stage.server.stored(f"%DLQ%{stage.group}") == []
    stage.client.stop("retrying")
    stage.await_commit()


def dead_letters(stage: Stage) -> None:
    """A message that fails too often ends among the dead letters of its group."""
    stage.create_topic()
    stage.client.consume("before", stage.group, stage.topic)  # the group is not new: its retry topic has a route
    stage.client.stop("before")
    stage.client.consume("giving-up", stage.group, stage.topic, failures=99, maxReconsumeTimes=1)
    stage.client.send("sync", stage.message("fail for ever", keys="lost"))
    dead = f"%DLQ%{stage.group}"
    wait_until(lambda: len(stage.server.stored(dead)) == 1, "the message is a dead letter")
    (letter,) = stage.server.stored(dead)
    assert (letter.body, letter.keys) == (b"fail for ever", ["lost"])
    assert letter.properties["RETRY_TOPIC"] == stage.topic
    assert [one.reconsume_times for one in stage.consumed("giving-up")] == [0, 1]
    stage.client.stop("giving-up")
    stage.await_commit()


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def query_by_id(stage: Stage) -> None:
    """By the id that says where a message is, and by the unique key that its producer gave it."""
    stage.create_topic()
    sent = stage.client.send("sync", *(stage.message(f"found-{i}", keys=f"key-{i}") for i in range(5)))
    for i, one in enumerate(sent):
        for wanted in (one.offset_message_id, one.message_id):
            found = delivery(stage.client.do("by-id", topic=stage.topic, id=wanted))
            assert (found.body.decode(), found.keys) == (f"found-{i}", f"key-{i}")
            assert (found.queue_id, found.queue_offset) == (one.queue_id, one.queue_offset)


def query_by_key(stage: Stage) -> None:
    stage.create_topic()
    stage.client.send("sync", *(stage.message(f"found-{i}", keys=f"both key-{i}") for i in range(5)))

    def bodies_of(key: str) -> list[str]:
        lines = stage.client.do("by-key", topic=stage.topic, key=key)
        return sorted(delivery(line).body.decode() for line in lines)

    assert bodies_of("key-3") == ["found-3"]
    assert bodies_of("both") == [f"found-{i}" for i in range(5)]


def offsets_by_time(stage: Stage) -> None:
    """First, last, and the first at or after a time."""
    stage.create_topic(1)
    stage.client.send("sync", *(stage.message(f"before-{i}") for i in range(3)))
    time.sleep(1)
    boundary_ms = int(time.time() * 1000)
    time.sleep(1)
    stage.client.send("sync", *(stage.message(f"after-{i}") for i in range(4)))
    lines = stage.client.do("queue-offsets", topic=stage.topic, time=boundary_ms)
    assert [(line["queueId"], line["min"], line["max"], line["atTime"]) for line in lines] == [(0, 0, 7, 3)]


def reset_by_time(stage: Stage) -> None:
    """An operator moves a running group back to a time: what came since then is consumed again, nothing else."""
    stage.client.do("can", feature="hear resets")
    stage.create_topic()
    before, after = [f"before-{i}" for i in range(8)], [f"after-{i}" for i in range(8)]
    stage.client.consume("moved", stage.group, stage.topic)
    stage.client.send("sync", *(stage.message(body) for body in before))
    stage.await_bodies(before, "moved")
    time.sleep(1)
    boundary_ms = int(time.time() * 1000)
    time.sleep(1)
    stage.client.send("sync", *(stage.message(body) for body in after))
    stage.await_bodies(before + after, "moved")
    stage.server.reset(stage.group, stage.topic, boundary_ms)
    wait_until(
        lambda: set(stage.bodies("moved")[len(before + after) :]) == set(after), "they are consumed again", seconds=90
    )
    assert Counter(stage.bodies("moved"))["before-0"] == 1
    stage.client.stop("moved")
    stage.await_commit()


def request_reply(stage: Stage) -> None:
    """A request waits for the reply that a consumer sends to its producer."""
    stage.create_topic()
    stage.client.consume("answering", stage.group, stage.topic, replies=True)
    wait_until(lambda: len(stage.server.members(stage.group)) == 1, "the consumer is known")
    # A Java consumer whose first two heartbeats meet gets nothing for 30 s, from Apache's broker as from ours.
    reply = stage.client.do("request", message=stage.message("question"), timeout=45_000)
    assert delivery(reply).body == b"re: question"
    stage.client.stop("answering")


def transactions(stage: Stage) -> None:
    """Ended at once, or when the broker asks: what is committed is delivered, once, and nothing else."""
    stage.create_topic()
    bodies = ["commit now", "roll back now", "commit later", "roll back later"]
    messages = [stage.message(body, tags="t", keys="k") for body in bodies]
    assert stage.client.do("transact", group=stage.group, messages=messages) == ["SEND_OK"] * len(bodies)
    wait_until(lambda: "commit later" in stage.stored_bodies(), "the broker asks and is told", seconds=90)
    time.sleep(3)  # asked again a second later, it would come twice
    assert sorted(stage.stored_bodies()) == ["commit later", "commit now"]
    assert {(one.tags, *one.keys) for one in stage.stored()} == {("t", "k")}


def pop(stage: Stage) -> None:
    """The group pops: each message comes once, the failed one again through the retry topic of group and topic."""
    stage.create_topic()
    stage.server.let_pop(stage.group, stage.topic)
    bodies = [f"popped-{i}" for i in range(12)]
    stage.client.consume("popping", stage.group, stage.topic, pop=True, failures=1)
    stage.client.send("sync", *(stage.message(body) for body in [*bodies, "fail once"]))
    stage.await_bodies([*bodies, "fail once", "fail once"], "popping")
    popped = stage.consumed("popping")
    assert all("POP_CK" in one.properties for one in popped)
    assert [one.reconsume_times for one in popped if one.body == b"fail once"] == [0, 1]
    assert {one.topic for one in popped} == {stage.topic}
    assert [one.body for one in stage.server.stored(f"%RETRY%{stage.group}_{stage.topic}")] == [b"fail once"]
    stage.client.stop("popping")
    stage.await_commit()


Scenario = Callable[[Stage], None]

SCENARIOS: dict[str, Scenario] = {
    "create-topic": create_topic,
    "send-sync": send_sync,
    "send-async": send_async,
    "send-oneway": send_oneway,
    "send-ordered": send_ordered,
    "send-batch": send_batch,
    "send-delayed": send_delayed,
    "push-concurrent": push_concurrent,
    "push-orderly": push_orderly,
    "tag-filter": tag_filter,
    "sql-filter": sql_filter,
    "broadcast": broadcast,
    "pull": pull,
    "lite-pull": lite_pull,
    "rebalance": rebalance,
    "retry": retry,
    "dead-letters": dead_letters,
    "query-by-id": query_by_id,
    "query-by-key": query_by_key,
    "offsets-by-time": offsets_by_time,
    "reset-by-time": reset_by_time,
    "request-reply": request_reply,
    "transactions": transactions,
    "pop": pop,
}
