"""The client: RocketMQ's words, Python's habits. asyncio first; `skyrocket.client.blocking` is the same without a loop.

    async with Producer("Shop", "127.0.0.1:9876") as producer:
        receipt = await producer.send(Message("Orders", b"paid", tags="TagA", keys="o-1001"))

Who owns what:
    ClientInstance     one per client id and event loop: connections, routes, name servers, heartbeats, and the answers
                       to what brokers ask. Members hold on to it while they run; the last one closes it
    Producer           queue choice, retries, faults of brokers, compression, bounds; Accumulator batches singles
    PushConsumer       subscriptions and handlers. Rebalance gives it queues; each has a Puller (long polls) that fills
                       a ProcessQueue (messages in hand, lowest unfinished offset); Consumption calls handlers,
                       concurrently or in order; an OffsetStore keeps progress at the broker or in a file
    LitePullConsumer   the same queues and pullers, but the application asks for messages itself
    SimpleConsumer     pops: no queues of its own, every message is acknowledged by itself
    exactly_once/      Once, Outbox and OutboxRelay: effects that happen once although messages may come twice
    Admin              topics, groups, offsets, queries; stateless beside the instance
    blocking           each method of the above, run on one loop in a thread
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # isort: off
    from skyrocket.client.admin.admin import Admin as Admin
    from skyrocket.client.admin.account_admin import Right as Right
    from skyrocket.client.admin.broker_admin import SettingChange as SettingChange
    from skyrocket.client.admin.dead_letters import DeadLetterFilter as DeadLetterFilter
    from skyrocket.client.admin.group_admin import GroupChange as GroupChange
    from skyrocket.client.admin.message_copies import CopyProgress as CopyProgress
    from skyrocket.client.admin.message_track import MessageTrack as MessageTrack, TrackType as TrackType
    from skyrocket.client.admin.offset_admin import GroupProgress as GroupProgress, QueueLag as QueueLag
    from skyrocket.client.admin.places import BrokerPlace as BrokerPlace
    from skyrocket.client.admin.topic_admin import TopicChange as TopicChange
    from skyrocket.client.admin.reset_preview import QueueMove as QueueMove, ResetPreview as ResetPreview
    from skyrocket.client.admin.given_up_transactions import GivenUpTransaction as GivenUpTransaction
    from skyrocket.client.admin.waiting_messages import OpenTransaction as OpenTransaction, PendingTimer as PendingTimer
    from skyrocket.client.consumer.allocation import Averagely as Averagely
    from skyrocket.client.consumer.other_allocations import (
        AveragelyByCircle as AveragelyByCircle,
        ByConfig as ByConfig,
        ByMachineRoom as ByMachineRoom,
        ConsistentHash as ConsistentHash,
        MachineRoomNearby as MachineRoomNearby,
    )
    from skyrocket.client.bodies.avro import Avro as Avro
    from skyrocket.client.bodies.codecs import BodyCodec as BodyCodec
    from skyrocket.client.consumer.answers import publish as publish, reply as reply
    from skyrocket.client.consumer.dead_letter_cause import DeadLetterCause as DeadLetterCause, cause_of as cause_of
    from skyrocket.client.consumer.depends import Depends as Depends
    from skyrocket.client.consumer.handlers import (
        ConsumeStatus as ConsumeStatus,
        DeadLetter as DeadLetter,
        ReconsumeLater as ReconsumeLater,
        SuspendCurrentQueue as SuspendCurrentQueue,
        UndecodableBody as UndecodableBody,
        current_group as current_group,
        current_message as current_message,
    )
    from skyrocket.client.consumer.lite_pull_consumer import LitePullConsumer as LitePullConsumer
    from skyrocket.client.consumer.lite_pull_settings import LitePullSettings as LitePullSettings
    from skyrocket.client.consumer.log_context import MessageContext as MessageContext
    from skyrocket.client.consumer.offset_store import OffsetStorage as OffsetStorage
    from skyrocket.client.consumer.push_consumer import PushConsumer as PushConsumer
    from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings as PushConsumerSettings
    from skyrocket.client.consumer.retry_policy import RetryPolicy as RetryPolicy
    from skyrocket.client.consumer.start_position import (
        ConsumeFromWhere as ConsumeFromWhere,
        MessageModel as MessageModel,
    )
    from skyrocket.client.consumer.subscription import SqlFilter as SqlFilter
    from skyrocket.client.consumer.topic_handlers import NoHandler as NoHandler
    from skyrocket.client.core.client_metrics import ClientMetrics as ClientMetrics
    from skyrocket.client.core.errors import (
        AlreadyStarted as AlreadyStarted,
        BrokerAbsent as BrokerAbsent,
        BrokerRefused as BrokerRefused,
        ClientError as ClientError,
        CredentialsDiffer as CredentialsDiffer,
        ForkedClient as ForkedClient,
        GroupInUse as GroupInUse,
        IllegalName as IllegalName,
        IllegalSubscription as IllegalSubscription,
        NameServersDiffer as NameServersDiffer,
        NoNameServer as NoNameServer,
        NoRoute as NoRoute,
        NotANameServer as NotANameServer,
        NotDeadLetter as NotDeadLetter,
        NotFound as NotFound,
        NotOffered as NotOffered,
        NotRunning as NotRunning,
        NotWritable as NotWritable,
        PartlyFailed as PartlyFailed,
        PopNotOffered as PopNotOffered,
        ReceiptExpired as ReceiptExpired,
        RequestTimeout as RequestTimeout,
        RouteTooWide as RouteTooWide,
        SendFailed as SendFailed,
        SendTimeout as SendTimeout,
        TooManyInFlight as TooManyInFlight,
        TooOld as TooOld,
        WrongUse as WrongUse,
    )
    from skyrocket.client.core.hooks import (
        ConsumeContext as ConsumeContext,
        ConsumeHook as ConsumeHook,
        SendContext as SendContext,
        SendHook as SendHook,
    )
    from skyrocket.client.core.message import Message as Message, ReceivedMessage as ReceivedMessage
    from skyrocket.client.core.middleware import Middleware as Middleware, Proceed as Proceed, Sending as Sending
    from skyrocket.client.core.send_receipt import SendReceipt as SendReceipt, SendStatus as SendStatus
    from skyrocket.client.core.settings import Acl as Acl, ClientSettings as ClientSettings
    from skyrocket.client.exactly_once import Once as Once, Outbox as Outbox, OutboxRelay as OutboxRelay
    from skyrocket.client.pop.popped_message import PoppedMessage as PoppedMessage
    from skyrocket.client.pop.simple_consumer import (
        SimpleConsumer as SimpleConsumer,
        SimpleConsumerSettings as SimpleConsumerSettings,
    )
    from skyrocket.client.producer.producer import Producer as Producer
    from skyrocket.client.producer.producer_settings import ProducerSettings as ProducerSettings
    from skyrocket.client.producer.transaction import (
        Transaction as Transaction,
        TransactionProducer as TransactionProducer,
        TransactionState as TransactionState,
    )
    from skyrocket.model.message_queue import MessageQueue as MessageQueue
    # isort: on

# Module ▸ what applications import from here. Each is loaded when it is first used: whoever needs the errors alone, or
# a producer, does without the rest.
_NAMES: Final = {
    "client.admin.admin": "Admin",
    "client.admin.account_admin": "Right",
    "client.admin.broker_admin": "SettingChange",
    "client.admin.group_admin": "GroupChange",
    "client.admin.message_copies": "CopyProgress",
    "client.admin.message_track": "MessageTrack TrackType",
    "client.admin.offset_admin": "GroupProgress QueueLag",
    "client.admin.places": "BrokerPlace",
    "client.admin.topic_admin": "TopicChange",
    "client.consumer.allocation": "Averagely",
    "client.consumer.other_allocations": "AveragelyByCircle ByConfig ByMachineRoom ConsistentHash MachineRoomNearby",
    "client.admin.reset_preview": "QueueMove ResetPreview",
    "client.consumer.offset_store": "OffsetStorage",
    "client.consumer.push_consumer_settings": "PushConsumerSettings",
    "client.consumer.dead_letter_cause": "DeadLetterCause cause_of",
    "client.admin.dead_letters": "DeadLetterFilter",
    "client.core.client_metrics": "ClientMetrics",
    "client.core.errors": (
        "AlreadyStarted BrokerAbsent BrokerRefused ClientError CredentialsDiffer ForkedClient "
        "GroupInUse IllegalName IllegalSubscription NameServersDiffer NoNameServer NoRoute "
        "NotANameServer NotDeadLetter NotFound NotOffered NotRunning NotWritable PartlyFailed PopNotOffered "
        "ReceiptExpired RequestTimeout RouteTooWide SendFailed SendTimeout TooManyInFlight TooOld WrongUse"
    ),
    "client.exactly_once": "Once Outbox OutboxRelay",
    "client.bodies.avro": "Avro",
    "client.bodies.codecs": "BodyCodec",
    "client.consumer.answers": "publish reply",
    "client.consumer.depends": "Depends",
    "client.consumer.handlers": (
        "ConsumeStatus DeadLetter ReconsumeLater SuspendCurrentQueue UndecodableBody current_group current_message"
    ),
    "client.consumer.retry_policy": "RetryPolicy",
    "client.consumer.topic_handlers": "NoHandler",
    "client.core.middleware": "Middleware Proceed Sending",
    "client.core.hooks": "ConsumeContext ConsumeHook SendContext SendHook",
    "client.consumer.lite_pull_consumer": "LitePullConsumer",
    "client.consumer.lite_pull_settings": "LitePullSettings",
    "client.consumer.log_context": "MessageContext",
    "client.core.message": "Message ReceivedMessage",
    "client.pop.popped_message": "PoppedMessage",
    "client.producer.producer": "Producer",
    "client.producer.producer_settings": "ProducerSettings",
    "client.consumer.push_consumer": "PushConsumer",
    "client.core.send_receipt": "SendReceipt SendStatus",
    "client.core.settings": "Acl ClientSettings",
    "client.pop.simple_consumer": "SimpleConsumer SimpleConsumerSettings",
    "client.consumer.start_position": "ConsumeFromWhere MessageModel",
    "client.consumer.subscription": "SqlFilter",
    "client.producer.transaction": "Transaction TransactionProducer TransactionState",
    "client.admin.given_up_transactions": "GivenUpTransaction",
    "client.admin.waiting_messages": "OpenTransaction PendingTimer",
    "model.message_queue": "MessageQueue",
}
_HOMES: Final = {name: f"skyrocket.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOMES)

if not TYPE_CHECKING:  # type checkers see the imports above, and so every misspelt name

    def __getattr__(name):
        if name in _HOMES:
            found = getattr(import_module(_HOMES[name]), name)
        elif name == "blocking":
            found = import_module("skyrocket.client.blocking")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found

    def __dir__():
        return sorted({*globals(), *__all__})
