"""Who has consumed a message: RocketMQ's message track."""

from dataclasses import dataclass
from enum import StrEnum

from skyrocket.client.admin.message_admin import MessageAdmin
from skyrocket.client.admin.offset_admin import OffsetAdmin
from skyrocket.client.admin.side_by_side import each
from skyrocket.client.core.errors import BrokerRefused, ClientError
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.protocol.bodies.connections import ConsumerConnections
from skyrocket.protocol.bodies.subscription import ALL_TAGS
from skyrocket.protocol.codes import ResponseCode
from skyrocket.remoting.errors import RemotingError


class TrackType(StrEnum):
    """What became of a message in a group, as RocketMQ names it."""

    CONSUMED = "CONSUMED"
    CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
    PULL = "PULL"
    NOT_CONSUME_YET = "NOT_CONSUME_YET"
    NOT_ONLINE = "NOT_ONLINE"
    CONSUME_BROADCASTING = "CONSUME_BROADCASTING"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class MessageTrack:
    """What became of a message in one group."""

    group: str
    kind: TrackType
    reason: str | None = None  # why it is not known


class TrackAdmin(MessageAdmin, OffsetAdmin):
    """Follows a message to its groups."""

    async def message_track(self, message: ReceivedMessage) -> list[MessageTrack]:
        """What became of it in every group that consumes its topic."""
        groups = await self.groups_of_topic(message.topic)
        return list((await each(groups, lambda group: self._track(group, message))).values())

    async def _track(self, group: str, message: ReceivedMessage) -> MessageTrack:
        try:
            members = await self.consumer_connections(group)
        except BrokerRefused as error:
            nobody = error.code == ResponseCode.CONSUMER_NOT_ONLINE
            kind = TrackType.NOT_ONLINE if nobody else TrackType.UNKNOWN
            return MessageTrack(group, kind, f"CODE:{error.code} DESC:{error.remark}")
        except (ClientError, RemotingError) as error:
            return MessageTrack(group, TrackType.UNKNOWN, str(error))
        if members.consume_type == "CONSUME_ACTIVELY":
            return MessageTrack(group, TrackType.PULL)
        if members.message_model == "BROADCASTING":
            return MessageTrack(group, TrackType.CONSUME_BROADCASTING)
        try:
            offset = await self.committed(group, message.queue)
        except (ClientError, RemotingError) as error:
            return MessageTrack(group, TrackType.UNKNOWN, str(error))
        if offset is None or offset <= message.queue_offset:
            return MessageTrack(group, TrackType.NOT_CONSUME_YET)
        passes = _passes(members, message)
        return MessageTrack(group, TrackType.CONSUMED if passes else TrackType.CONSUMED_BUT_FILTERED)


def _passes(members: ConsumerConnections, message: ReceivedMessage) -> bool:
    subscription = members.subscriptions.get(message.stored_topic)
    if subscription is None or subscription.expression == ALL_TAGS or subscription.expression_type not in ("TAG", None):
        return True
    return (message.tags or "") in subscription.tags
