"""HEART_BEAT: which groups a client produces for and consumes with."""

from typing import Annotated

from skyrocket.fastjson.bean import SINCE_5
from skyrocket.protocol.bodies.json_body import BodyBase, body
from skyrocket.protocol.bodies.kinds import ConsumeFromWhere, ConsumeType, MessageModel
from skyrocket.protocol.bodies.subscription import SubscriptionData


@body
class ProducerData(BodyBase):
    """One producer group of the client."""

    group: Annotated[str, "groupName"] = ""


@body
class ConsumerData(BodyBase):
    """One consumer group of the client; enums that we do not know are None."""

    group: Annotated[str, "groupName"] = ""
    consume_type: ConsumeType = None
    message_model: MessageModel = None
    consume_from_where: ConsumeFromWhere = None
    subscriptions: Annotated[tuple[SubscriptionData, ...], "subscriptionDataSet"] = ()
    unit_mode: bool = False


@body
class Heartbeat(BodyBase):
    """`fingerprint` ≠ 0: the client can leave out subscriptions that the broker already knows."""

    client_id: Annotated[str, "clientID"] = ""
    producers: Annotated[tuple[ProducerData, ...], "producerDataSet"] = ()
    consumers: Annotated[tuple[ConsumerData, ...], "consumerDataSet"] = ()
    fingerprint: Annotated[int, "heartbeatFingerprint", SINCE_5] = 0
    without_subscriptions: Annotated[bool, "withoutSub", SINCE_5] = False
