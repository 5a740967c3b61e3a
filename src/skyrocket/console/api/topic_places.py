"""Where a topic is, as name servers tell clients, how long its queues keep messages, and who writes to it."""

from dataclasses import dataclass
from typing import Final

from skyrocket.client.admin.side_by_side import each
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.names import INNER_PRODUCER_GROUP
from skyrocket.console.api.endpoint import Call, Family
from skyrocket.console.cluster.message_search import MessageFilter, newest
from skyrocket.protocol.codes import version_name

family = Family("Topics")

_SAMPLE: Final = 500
_MOST_QUEUES: Final = 512


@dataclass(frozen=True, slots=True)
class RouteRow:
    """What clients hear of one broker name."""

    broker: str
    cluster: str
    read_queues: int
    write_queues: int
    permission: int
    addresses: dict[str, str]  # by broker id; 0 is the master


@dataclass(frozen=True, slots=True)
class RouteOfTopic:
    """As the name servers have it now, which may differ from what brokers have."""

    name_servers: list[str]
    rows: list[RouteRow]
    order: str  # broker-a:4;broker-b:4, for topics whose queues are fixed


@family.get("/api/topics/{topic}/route")
async def route(call: Call) -> RouteOfTopic:
    """Queues, permission and addresses by broker, from the name servers."""
    data = (await call.admin.route(call.path["topic"])).data
    brokers = {broker.broker_name: broker for broker in data.brokers}
    rows = []
    for queues in data.queues:
        broker = brokers.get(queues.broker_name)
        addresses = {} if broker is None else {str(key): broker.addresses[key] for key in sorted(broker.addresses)}
        rows.append(
            RouteRow(
                queues.broker_name,
                "" if broker is None else broker.cluster or "",
                queues.read_queues,
                queues.write_queues,
                queues.permission,
                addresses,
            )
        )
    return RouteOfTopic(call.admin.name_servers(), rows, data.order_topic_conf or "")


@dataclass(frozen=True, slots=True)
class QueueSpan:
    """When the first message of a queue that is still there was stored."""

    broker: str
    queue: int
    oldest_ms: int | None  # None: it is empty


@dataclass(frozen=True, slots=True)
class QueueSpans:
    """How far back queues reach."""

    rows: list[QueueSpan]
    is_complete: bool  # False: there are more queues than are asked


@family.get("/api/topics/{topic}/spans")
async def spans(call: Call) -> QueueSpans:
    """How far back each queue of a topic reaches; a question for each queue, so that it is asked on demand."""
    queues = await call.admin.queues(call.path["topic"])
    oldest = await each(queues[:_MOST_QUEUES], call.admin.earliest_time)
    rows = [
        QueueSpan(queue.broker_name, queue.queue_id, at_ms if at_ms > 0 else None) for queue, at_ms in oldest.items()
    ]
    return QueueSpans(rows, len(queues) <= _MOST_QUEUES)


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """A producer at one broker of the topic, or a place that messages came from and that is gone."""

    group: str  # "": nobody is connected from there any more
    client_id: str
    address: str
    broker: str
    language: str
    version: str
    last_seen_ms: int | None
    messages: int  # of those that were looked at
    last_sent_ms: int | None  # the newest of them


@dataclass(frozen=True, slots=True)
class ProducersOfTopic:
    """Those that wrote last first. Producers do not tell brokers what they write to: the messages do."""

    rows: list[ProducerRow]
    looked_at: int  # the newest messages, whose senders are counted


@dataclass(slots=True)
class _Sent:
    messages: int = 0
    last_ms: int | None = None


@family.get("/api/topics/{topic}/producers")
async def producers(call: Call) -> ProducersOfTopic:
    """Producers that are connected to the brokers of a topic, and how many of its newest messages each has sent."""
    topic = call.path["topic"]
    names = {broker.broker_name for broker in (await call.admin.route(topic)).data.brokers}
    found = await newest(call.admin, topic, MessageFilter(), from_ms=None, to_ms=None, queue=None, most=_SAMPLE)
    sent = _by_sender(found.messages)
    rows, seen = [], set()
    for place, table in (await call.admin.producers()).items():
        if place.broker_name not in names:
            continue
        # Every client has the inner group, too: it counts where it alone has sent.
        for group, connected in sorted(table.groups.items(), key=lambda item: item[0] == INNER_PRODUCER_GROUP):
            for one in connected:
                address = one.remote_address.removeprefix("/")
                key = place.broker_name, address
                if group == INNER_PRODUCER_GROUP and (key in seen or key not in sent):
                    continue
                seen.add(key)
                told = sent.get(key, _Sent())  # of the connection: groups may share one
                rows.append(
                    ProducerRow(
                        group,
                        one.client_id,
                        address,
                        place.broker_name,
                        one.language or "",
                        version_name(one.version),
                        one.last_update_timestamp or None,
                        told.messages,
                        told.last_ms,
                    )
                )
    rows += [
        ProducerRow("", "", address, broker, "", "", None, told.messages, told.last_ms)
        for (broker, address), told in sent.items()
        if (broker, address) not in seen
    ]
    rows.sort(key=lambda row: (-(row.last_sent_ms or 0), row.group, row.client_id, row.broker))
    return ProducersOfTopic(rows, len(found.messages))


def _by_sender(messages: list[ReceivedMessage]) -> dict[tuple[str, str], _Sent]:
    """A message keeps the address that its connection came from."""
    sent: dict[tuple[str, str], _Sent] = {}
    for message in messages:
        told = sent.setdefault((message.broker_name, message.born_host), _Sent())
        told.messages += 1
        told.last_ms = max(told.last_ms or 0, message.store_timestamp)
    return sent
