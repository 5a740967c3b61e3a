"""Refusals ↔ response codes, one table for both sides; and ProtocolError, after which a connection is closed.

server   raise TopicNotExist("topic[x] not exist, …")        the router answers with `code` and `remark`
client   raise error_of(answer.code, answer.remark)          the caller sees TopicNotExist again
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from skyrocket.errors import DataError, SkyrocketError
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import RemotingCommand

FAQ: Final = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."  # the end of many remarks


class ProtocolError(DataError):
    """The peer's bytes are not frames: close the connection, answer nothing.

    `commands` are those that were complete before the broken one and were not returned yet.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.commands: list[RemotingCommand] = []
        super().__init__(reason)


class CommandTooLarge(SkyrocketError):
    """A command of our own does not fit into a frame."""


class RequestError(SkyrocketError):
    """A request is refused; the connection goes on.

    `ext_fields` is what the answer's header carries beside code and remark; None leaves it out.
    """

    code: ClassVar[int] = ResponseCode.SYSTEM_ERROR

    def __init__(self, remark: str | None = None, ext_fields: Mapping[str, str] | None = None) -> None:
        self.remark = remark
        self.ext_fields = ext_fields
        super().__init__(remark if remark is not None else type(self).__name__)

    def __init_subclass__(cls) -> None:
        if "code" in vars(cls):
            assert cls.code not in _BY_CODE, f"two errors for code {cls.code}"
            _BY_CODE[cls.code] = cls


_BY_CODE: dict[int, type[RequestError]] = {}


class SystemFailure(RequestError):
    """Something failed on the other side; most admin requests also say "not found" with it."""

    code = ResponseCode.SYSTEM_ERROR


class SystemBusy(RequestError):
    """Flow control: try another broker or later."""

    code = ResponseCode.SYSTEM_BUSY


class RequestNotSupported(RequestError):
    code = ResponseCode.REQUEST_CODE_NOT_SUPPORTED

    @classmethod
    def of(cls, request_code: int) -> "RequestNotSupported":
        """With RocketMQ's remark."""
        return cls(f" request type {request_code} not supported")


class FlushDiskTimeout(RequestError):
    """Stored, but not known to be on disk; a send treats it as a success of lower rank."""

    code = ResponseCode.FLUSH_DISK_TIMEOUT


class SlaveNotAvailable(RequestError):
    """Stored without a slave; or the request is one that a slave does not do."""

    code = ResponseCode.SLAVE_NOT_AVAILABLE


class FlushSlaveTimeout(RequestError):
    code = ResponseCode.FLUSH_SLAVE_TIMEOUT


class MessageIllegal(RequestError):
    code = ResponseCode.MESSAGE_ILLEGAL


class ServiceNotAvailable(RequestError):
    """The store takes no writes: disk full, closing, a slave."""

    code = ResponseCode.SERVICE_NOT_AVAILABLE


class NoPermission(RequestError):
    """Broker, topic or group may not, or the user may not."""

    code = ResponseCode.NO_PERMISSION


class TopicNotExist(RequestError):
    code = ResponseCode.TOPIC_NOT_EXIST


class QueryNotFound(RequestError):
    """No such offset, message or entry."""

    code = ResponseCode.QUERY_NOT_FOUND


class SubscriptionParseFailed(RequestError):
    code = ResponseCode.SUBSCRIPTION_PARSE_FAILED


class SubscriptionNotExist(RequestError):
    """The broker has not heard of the subscription: the client sends a heartbeat and tries again."""

    code = ResponseCode.SUBSCRIPTION_NOT_EXIST


class SubscriptionNotLatest(RequestError):
    code = ResponseCode.SUBSCRIPTION_NOT_LATEST


class GroupNotExist(RequestError):
    code = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


class FilterDataNotExist(RequestError):
    code = ResponseCode.FILTER_DATA_NOT_EXIST


class InvalidParameter(RequestError):
    code = ResponseCode.INVALID_PARAMETER


class ConsumerNotOnline(RequestError):
    code = ResponseCode.CONSUMER_NOT_ONLINE


class ConsumeMessageTimeout(RequestError):
    """The client that was asked did not answer in time."""

    code = ResponseCode.CONSUME_MSG_TIMEOUT


class NoMessage(RequestError):
    code = ResponseCode.NO_MESSAGE


class PollingTimeout(RequestError):
    code = ResponseCode.POLLING_TIMEOUT


class FlowControl(RequestError):
    code = ResponseCode.FLOW_CONTROL


class IllegalOperation(RequestError):
    code = ResponseCode.ILLEGAL_OPERATION


class GoAway(RequestError):
    """The server is closing: connect again and send once more."""

    code = ResponseCode.GO_AWAY


class FencedMasterEpoch(RequestError):
    """A master of another epoch than the controller's asks."""

    code = ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH


class FencedSyncStateSetEpoch(RequestError):
    """The sync-state set was changed meanwhile."""

    code = ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH


class InvalidMaster(RequestError):
    """The one who asks is not master."""

    code = ResponseCode.CONTROLLER_INVALID_MASTER


class InvalidReplicas(RequestError):
    """The set has no such replica."""

    code = ResponseCode.CONTROLLER_INVALID_REPLICAS


class MasterNotAvailable(RequestError):
    """The master is gone, and nobody may take its place."""

    code = ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE


class InvalidControllerRequest(RequestError):
    code = ResponseCode.CONTROLLER_INVALID_REQUEST


class BrokerNotAlive(RequestError):
    """No heartbeat of that replica came in time."""

    code = ResponseCode.CONTROLLER_BROKER_NOT_ALIVE


class NotControllerLeader(RequestError):
    """Another controller leads: GET_METADATA_INFO names it."""

    code = ResponseCode.CONTROLLER_NOT_LEADER


class BrokerMetadataNotExist(RequestError):
    """The controller knows no set of that name."""

    code = ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST


class InvalidCleanBrokerMetadata(RequestError):
    """A set or a broker that is not there, or that lives, is not forgotten."""

    code = ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA


class BrokerNeedsRegistration(RequestError):
    """The broker has no id in its set yet."""

    code = ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED


class MasterStillExists(RequestError):
    """There is a living master; fields and body of the answer name it."""

    code = ResponseCode.CONTROLLER_MASTER_STILL_EXIST


class ElectMasterFailed(RequestError):
    """Nobody in the sync-state set lives, or the one that was asked for is not there."""

    code = ResponseCode.CONTROLLER_ELECT_MASTER_FAILED


class AlterSyncStateSetFailed(RequestError):
    code = ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED


class BrokerIdInvalid(RequestError):
    """Another broker has that id: ask for the next one again."""

    code = ResponseCode.CONTROLLER_BROKER_ID_INVALID


class MissingField(SystemFailure):
    """A field that the request cannot do without is not there, or not what it must be."""


class MalformedBody(SystemFailure):
    """The body is not the JSON that belongs there."""


class UnknownAnswer(RequestError):
    """A code that nobody tells from others, such as those of RocketMQ's own Raft; it has no class of its own."""

    def __init__(self, code: int, remark: str | None = None, ext_fields: Mapping[str, str] | None = None) -> None:
        super().__init__(remark if remark is not None else f"answer {code}", ext_fields)
        self.code = code  # type: ignore[misc]


def error_of(code: int, remark: str | None, ext_fields: Mapping[str, str] | None = None) -> RequestError:
    """The exception that an answer with this code means."""
    assert code != ResponseCode.SUCCESS
    kind = _BY_CODE.get(code)
    return UnknownAnswer(code, remark, ext_fields) if kind is None else kind(remark, ext_fields)
