"""What the tests of PushConsumer share."""

from skyrocket.client.consumer.start_position import ConsumeFromWhere
from skyrocket.client.core.message import Message
from skyrocket.client.producer.producer import Producer
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.peer import Peer
from tests.cluster.servers import Cluster

TOPIC, GROUP = "Orders", "Billing"
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


async def send(producer: Producer, count: int, *, topic: str = TOPIC, **rest: str) -> None:
    for number in range(count):  # one after the other: sends that meet travel together, to one queue
        await producer.send(Message(topic, b"%d" % number, **rest))  # type: ignore[arg-type]


def committed(given: Cluster, *, group: str = GROUP, topic: str = TOPIC) -> int:
    """The sum over all queues."""
    total = 0
    for broker in given.brokers.values():
        config = broker.tables.topics.find(topic)
        for queue_id in range(config.read_queues if config is not None else 0):
            total += broker.tables.offsets.committed(group, topic, queue_id) or 0
    return total


def seen_by_broker(given: Cluster, code: RequestCode) -> list[RemotingCommand]:
    """Grows with every request of this code; the broker answers as usual."""
    route = given.route(code)
    own, seen = route.handler, list[RemotingCommand]()

    def handler(peer: Peer, request: RemotingCommand) -> Outcome:
        seen.append(request)
        return own(peer, request)

    route.handler = handler
    return seen
