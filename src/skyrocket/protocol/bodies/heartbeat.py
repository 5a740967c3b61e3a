"""HEART_BEAT: which groups a client produces for and consumes with."""

from skyrocket.fastjson.bean import FLAG, INTEGER, TEXT, Field, bean, tuple_of
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body
from skyrocket.protocol.bodies.kinds import CONSUME_FROM_WHERE, CONSUME_TYPE, MESSAGE_MODEL
from skyrocket.protocol.bodies.subscription import SUBSCRIPTION_DATA, SubscriptionData


@body
class ProducerData(BodyBase):
    """One producer group of the client."""

    group: str = ""


@body
class ConsumerData(BodyBase):
    """One consumer group of the client; enums that we do not know are None."""

    group: str = ""
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None
    subscriptions: tuple[SubscriptionData, ...] = ()
    unit_mode: bool = False


@body
class Heartbeat(BodyBase):
    """`fingerprint` ≠ 0: the client can leave out subscriptions that the broker already knows."""

    client_id: str = ""
    producers: tuple[ProducerData, ...] = ()
    consumers: tuple[ConsumerData, ...] = ()
    fingerprint: int = 0
    without_subscriptions: bool = False


_CONSUMER_DATA = bean(
    ConsumerData,
    Field("consumeFromWhere", "consume_from_where", CONSUME_FROM_WHERE),
    Field("consumeType", "consume_type", CONSUME_TYPE),
    Field("groupName", "group", TEXT),
    Field("messageModel", "message_model", MESSAGE_MODEL),
    Field("subscriptionDataSet", "subscriptions", tuple_of(SUBSCRIPTION_DATA)),
    Field("unitMode", "unit_mode", FLAG),
)

HEARTBEAT = JsonBody(
    bean(
        Heartbeat,
        Field("clientID", "client_id", TEXT),
        Field("consumerDataSet", "consumers", tuple_of(_CONSUMER_DATA)),
        Field("heartbeatFingerprint", "fingerprint", INTEGER, since_5=True),
        Field("producerDataSet", "producers", tuple_of(bean(ProducerData, Field("groupName", "group", TEXT)))),
        Field("withoutSub", "without_subscriptions", FLAG, since_5=True),
    )
)
