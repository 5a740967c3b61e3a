"""Who is connected: consumers, producers, members of a group."""

from collections.abc import Mapping
from dataclasses import field

from skyrocket.fastjson.bean import INTEGER, TEXT, TEXT_KEY, Field, bean, list_of, map_of, tuple_of
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body
from skyrocket.protocol.bodies.kinds import CONSUME_FROM_WHERE, CONSUME_TYPE, MESSAGE_MODEL, enum_of
from skyrocket.protocol.bodies.subscription import SUBSCRIPTION_DATA, SubscriptionData
from skyrocket.protocol.codes import LanguageCode

_LANGUAGE = enum_of(*(language.name for language in LanguageCode))


@body
class Connection(BodyBase):
    """One connected client."""

    client_id: str = ""
    client_address: str = ""
    language: str | None = None
    version: int = 0


_CONNECTION = bean(
    Connection,
    Field("clientAddr", "client_address", TEXT),
    Field("clientId", "client_id", TEXT),
    Field("language", "language", _LANGUAGE),
    Field("version", "version", INTEGER),
)


@body
class ConsumerConnections(BodyBase):
    """GET_CONSUMER_CONNECTION_LIST: members and subscriptions of a group."""

    connections: tuple[Connection, ...] = ()
    subscriptions: Mapping[str, SubscriptionData] = field(default_factory=dict)
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None


CONSUMER_CONNECTIONS = JsonBody(
    bean(
        ConsumerConnections,
        Field("connectionSet", "connections", tuple_of(_CONNECTION)),
        Field("consumeFromWhere", "consume_from_where", CONSUME_FROM_WHERE),
        Field("consumeType", "consume_type", CONSUME_TYPE),
        Field("messageModel", "message_model", MESSAGE_MODEL),
        Field("subscriptionTable", "subscriptions", map_of(TEXT_KEY, SUBSCRIPTION_DATA)),
    )
)


@body
class ProducerConnections(BodyBase):
    """GET_PRODUCER_CONNECTION_LIST."""

    connections: tuple[Connection, ...] = ()


PRODUCER_CONNECTIONS = JsonBody(bean(ProducerConnections, Field("connectionSet", "connections", tuple_of(_CONNECTION))))


@body
class ProducerInfo(BodyBase):
    """One producer; the address has Java's leading `/`."""

    client_id: str = ""
    remote_address: str = ""
    language: str | None = None
    version: int = 0
    last_update_timestamp: int = 0


@body
class ProducerTable(BodyBase):
    """GET_ALL_PRODUCER_INFO: producers by group."""

    groups: Mapping[str, list[ProducerInfo]] = field(default_factory=dict)


PRODUCER_TABLE = JsonBody(
    bean(
        ProducerTable,
        Field(
            "data",
            "groups",
            map_of(
                TEXT_KEY,
                list_of(
                    bean(
                        ProducerInfo,
                        Field("clientId", "client_id", TEXT),
                        Field("language", "language", _LANGUAGE),
                        Field("lastUpdateTimestamp", "last_update_timestamp", INTEGER),
                        Field("remoteIP", "remote_address", TEXT),
                        Field("version", "version", INTEGER),
                    )
                ),
            ),
        ),
    )
)


@body
class ConsumerList(BodyBase):
    """GET_CONSUMER_LIST_BY_GROUP: client ids of a group."""

    client_ids: tuple[str, ...] = ()


CONSUMER_LIST = JsonBody(bean(ConsumerList, Field("consumerIdList", "client_ids", tuple_of(TEXT))))
