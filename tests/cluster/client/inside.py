"""The one way into a member of a client: what tests must see and applications have no business with."""

from skyrocket.client import Admin, LitePullConsumer, Producer, PushConsumer, SimpleConsumer
from skyrocket.client.core.instance import ClientInstance


def instance_of(member: Producer | PushConsumer | LitePullConsumer | SimpleConsumer | Admin) -> ClientInstance:
    """What a running member shares with the others of its client: connections, routes, the id that brokers see."""
    return member._instance
