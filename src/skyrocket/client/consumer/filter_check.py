"""SQL filters are checked by a broker before they are used: a pull with a bad one would only fail again and again."""

from collections.abc import Iterable

from skyrocket.client.consumer.subscription import SQL92
from skyrocket.client.core.instance import ClientInstance
from skyrocket.protocol.bodies.subscription import CLIENT_CONFIG_CHECK, ClientConfigCheck, SubscriptionData
from skyrocket.protocol.requests.clients import CheckClientConfig


async def check_filters(instance: ClientInstance, group: str, subscriptions: Iterable[SubscriptionData]) -> None:
    """Raises BrokerRefused for what a broker cannot evaluate; topics without a route are left out."""
    for subscription in subscriptions:
        if subscription.expression_type != SQL92 or subscription.topic not in instance.routes:
            continue
        body = CLIENT_CONFIG_CHECK.encode(
            ClientConfigCheck(instance.client_id, group, subscription, instance.namespace or None)
        )
        address = await instance.any_broker_of(subscription.topic)
        await instance.ask(address, CheckClientConfig(), body, doing=f"the filter {subscription.expression!r}")
