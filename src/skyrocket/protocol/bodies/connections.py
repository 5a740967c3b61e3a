"""Who is connected: consumers, producers, members of a group."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from skyrocket.protocol.bodies.json_body import BodyBase, body
from skyrocket.protocol.bodies.kinds import ConsumeFromWhere, ConsumeType, Language, MessageModel
from skyrocket.protocol.bodies.subscription import SubscriptionData


@body
class ClientConnection(BodyBase):
    """One connected client."""

    client_id: str = ""
    client_address: Annotated[str, "clientAddr"] = ""
    language: Language = None
    version: int = 0
    connected_timestamp: int | None = None  # ours: since when it is there; Apache's brokers do not tell


@body
class ConsumerConnections(BodyBase):
    """GET_CONSUMER_CONNECTION_LIST: members and subscriptions of a group."""

    connections: Annotated[tuple[ClientConnection, ...], "connectionSet"] = ()
    subscriptions: Annotated[Mapping[str, SubscriptionData], "subscriptionTable"] = field(default_factory=dict)
    consume_type: ConsumeType = None
    message_model: MessageModel = None
    consume_from_where: ConsumeFromWhere = None


@body
class ProducerConnections(BodyBase):
    """GET_PRODUCER_CONNECTION_LIST."""

    connections: Annotated[tuple[ClientConnection, ...], "connectionSet"] = ()


@body
class ProducerInfo(BodyBase):
    """One producer; the address has Java's leading `/`."""

    client_id: str = ""
    remote_address: Annotated[str, "remoteIP"] = ""
    language: Language = None
    version: int = 0
    last_update_timestamp: int = 0
    connected_timestamp: int | None = None  # as above


@body
class ProducerTable(BodyBase):
    """GET_ALL_PRODUCER_INFO: producers by group."""

    groups: Annotated[Mapping[str, list[ProducerInfo]], "data"] = field(default_factory=dict)


@body
class ConsumerList(BodyBase):
    """GET_CONSUMER_LIST_BY_GROUP: client ids of a group."""

    client_ids: Annotated[tuple[str, ...], "consumerIdList"] = ()
