"""The tables that most features share: what a broker knows of topics, groups, offsets and clients."""

from dataclasses import dataclass

from skyrocket.broker.state.connected_consumers import ConnectedConsumers
from skyrocket.broker.state.connected_producers import ConnectedProducers
from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.queue_locks import QueueLocks
from skyrocket.broker.state.subscription_groups import SubscriptionGroupTable
from skyrocket.broker.state.topics import TopicTable
from skyrocket.remoting.peer import Peer


@dataclass(frozen=True, slots=True)
class Tables:
    """Each has one owner, the event loop's thread."""

    topics: TopicTable
    groups: SubscriptionGroupTable
    offsets: ConsumerOffsetTable
    consumers: ConnectedConsumers[Peer]
    producers: ConnectedProducers[Peer]
    locks: QueueLocks
