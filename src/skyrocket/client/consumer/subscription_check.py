"""Subscriptions that cannot work: SQL filters that brokers cannot read, and members of a group that differ.

Filters are checked by a broker before they are used: a pull with a bad one would only fail again and again.

A broker keeps the newest subscription of a group. When members differ, each heartbeat overwrites the others', and
messages are lost for whoever is not the last. Nobody tells the application, so this does.
"""

import logging
from collections.abc import Iterable, Sequence

from skyrocket.client.consumer.subscription import SQL92, differences
from skyrocket.client.core.errors import ClientError
from skyrocket.client.core.instance import ClientInstance
from skyrocket.protocol.bodies.connections import ConsumerConnections
from skyrocket.protocol.bodies.subscription import ClientConfigCheck, SubscriptionData
from skyrocket.protocol.requests.consumers import CheckClientConfig, GetConsumerConnectionList
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)


async def check_filters(instance: ClientInstance, group: str, subscriptions: Iterable[SubscriptionData]) -> None:
    """Raises BrokerRefused for what a broker cannot evaluate; topics without a route are left out."""
    for subscription in subscriptions:
        if subscription.expression_type != SQL92 or subscription.topic not in instance.routes:
            continue
        body = ClientConfigCheck(instance.client_id, group, subscription, instance.namespace or None).encode()
        address = await instance.any_broker_of(subscription.topic)
        await instance.ask(address, CheckClientConfig(), body, doing=f"the filter {subscription.expression!r}")


class SubscriptionCheck:
    """Says each contradiction once."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group
        self._said: set[str] = set()

    async def run(self, mine: Sequence[SubscriptionData]) -> None:
        """Compare, and warn."""
        for found in await self.contradictions(mine):
            if found not in self._said:
                self._said.add(found)
                _logger.warning(
                    "members of consumer group %s subscribe to different things, so messages get lost: %s. "
                    "Give all members the same subscriptions, or different groups",
                    self._group,
                    found,
                )

    async def contradictions(self, mine: Sequence[SubscriptionData]) -> list[str]:
        """What another member contradicts; empty when nobody can tell."""
        if not mine:
            return []
        request = GetConsumerConnectionList(consumer_group=self._group)
        try:
            address = await self._instance.any_broker_of(mine[0].topic)
            reply = await self._instance.ask(address, request, doing=f"asking who is in group {self._group}")
        except (ClientError, RemotingError):
            return []  # an old or restricted broker
        return contradictions(mine, ConsumerConnections.decode(reply.body))


def contradictions(mine: Sequence[SubscriptionData], group: ConsumerConnections) -> list[str]:
    """Where the group, as a broker has it, wants something else than we do."""
    if len(group.connections) < 2:
        return []
    own = {subscription.topic: subscription for subscription in mine}
    found = [differences(subscription, group.subscriptions.get(topic)) for topic, subscription in own.items()]
    more = [f"another member also subscribes to {topic}" for topic in group.subscriptions if topic not in own]
    return [text for text in found if text is not None] + more
