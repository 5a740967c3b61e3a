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
    from skyrocket.client.admin.admin import (
        Admin as Admin,
    )
    from skyrocket.client.admin.admin import (
        QueueLag as QueueLag,
    )
    from skyrocket.client.admin.dead_letters import DeadLetterFilter as DeadLetterFilter
    from skyrocket.client.admin.reset_preview import (
        QueueMove as QueueMove,
    )
    from skyrocket.client.admin.reset_preview import (
        ResetPreview as ResetPreview,
    )
    from skyrocket.client.admin.waiting_messages import (
        OpenTransaction as OpenTransaction,
    )
    from skyrocket.client.admin.waiting_messages import (
        PendingTimer as PendingTimer,
    )
    from skyrocket.client.consumer.allocation import (
        Averagely as Averagely,
    )
    from skyrocket.client.consumer.allocation import (
        AveragelyByCircle as AveragelyByCircle,
    )
    from skyrocket.client.consumer.allocation import (
        ByConfig as ByConfig,
    )
    from skyrocket.client.consumer.allocation import (
        ByMachineRoom as ByMachineRoom,
    )
    from skyrocket.client.consumer.allocation import (
        ConsistentHash as ConsistentHash,
    )
    from skyrocket.client.consumer.allocation import (
        MachineRoomNearby as MachineRoomNearby,
    )
    from skyrocket.client.consumer.dead_letter_cause import (
        DeadLetterCause as DeadLetterCause,
    )
    from skyrocket.client.consumer.dead_letter_cause import (
        cause_of as cause_of,
    )
    from skyrocket.client.consumer.handlers import (
        ConsumeStatus as ConsumeStatus,
    )
    from skyrocket.client.consumer.handlers import (
        DeadLetter as DeadLetter,
    )
    from skyrocket.client.consumer.handlers import (
        ReconsumeLater as ReconsumeLater,
    )
    from skyrocket.client.consumer.handlers import (
        SuspendCurrentQueue as SuspendCurrentQueue,
    )
    from skyrocket.client.consumer.handlers import (
        current_group as current_group,
    )
    from skyrocket.client.consumer.handlers import (
        current_message as current_message,
    )
    from skyrocket.client.consumer.lite_pull_consumer import (
        LitePullConsumer as LitePullConsumer,
    )
    from skyrocket.client.consumer.lite_pull_consumer import (
        LitePullSettings as LitePullSettings,
    )
    from skyrocket.client.consumer.log_context import MessageContext as MessageContext
    from skyrocket.client.consumer.push_consumer import PushConsumer as PushConsumer
    from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings as PushConsumerSettings
    from skyrocket.client.consumer.start_position import (
        ConsumeFromWhere as ConsumeFromWhere,
    )
    from skyrocket.client.consumer.start_position import (
        MessageModel as MessageModel,
    )
    from skyrocket.client.consumer.subscription import SqlFilter as SqlFilter
    from skyrocket.client.core.credentials import Acl as Acl
    from skyrocket.client.core.errors import (
        AlreadyStarted as AlreadyStarted,
    )
    from skyrocket.client.core.errors import (
        BrokerAbsent as BrokerAbsent,
    )
    from skyrocket.client.core.errors import (
        BrokerRefused as BrokerRefused,
    )
    from skyrocket.client.core.errors import (
        ClientError as ClientError,
    )
    from skyrocket.client.core.errors import (
        CredentialsDiffer as CredentialsDiffer,
    )
    from skyrocket.client.core.errors import (
        ForkedClient as ForkedClient,
    )
    from skyrocket.client.core.errors import (
        GroupInUse as GroupInUse,
    )
    from skyrocket.client.core.errors import (
        IllegalName as IllegalName,
    )
    from skyrocket.client.core.errors import (
        IllegalSubscription as IllegalSubscription,
    )
    from skyrocket.client.core.errors import (
        NameServersDiffer as NameServersDiffer,
    )
    from skyrocket.client.core.errors import (
        NoNameServer as NoNameServer,
    )
    from skyrocket.client.core.errors import (
        NoRoute as NoRoute,
    )
    from skyrocket.client.core.errors import (
        NotDeadLetter as NotDeadLetter,
    )
    from skyrocket.client.core.errors import (
        NotOffered as NotOffered,
    )
    from skyrocket.client.core.errors import (
        NotRunning as NotRunning,
    )
    from skyrocket.client.core.errors import (
        NotWritable as NotWritable,
    )
    from skyrocket.client.core.errors import (
        PopNotOffered as PopNotOffered,
    )
    from skyrocket.client.core.errors import (
        ReceiptExpired as ReceiptExpired,
    )
    from skyrocket.client.core.errors import (
        RequestTimeout as RequestTimeout,
    )
    from skyrocket.client.core.errors import (
        RouteTooWide as RouteTooWide,
    )
    from skyrocket.client.core.errors import (
        SendFailed as SendFailed,
    )
    from skyrocket.client.core.errors import (
        SendTimeout as SendTimeout,
    )
    from skyrocket.client.core.errors import (
        TooManyInFlight as TooManyInFlight,
    )
    from skyrocket.client.core.errors import (
        WrongUse as WrongUse,
    )
    from skyrocket.client.core.hooks import (
        ConsumeContext as ConsumeContext,
    )
    from skyrocket.client.core.hooks import (
        ConsumeHook as ConsumeHook,
    )
    from skyrocket.client.core.hooks import (
        SendContext as SendContext,
    )
    from skyrocket.client.core.hooks import (
        SendHook as SendHook,
    )
    from skyrocket.client.core.message import (
        Message as Message,
    )
    from skyrocket.client.core.message import (
        ReceivedMessage as ReceivedMessage,
    )
    from skyrocket.client.core.send_receipt import (
        SendReceipt as SendReceipt,
    )
    from skyrocket.client.core.send_receipt import (
        SendStatus as SendStatus,
    )
    from skyrocket.client.core.settings import ClientSettings as ClientSettings
    from skyrocket.client.exactly_once import (
        Once as Once,
    )
    from skyrocket.client.exactly_once import (
        Outbox as Outbox,
    )
    from skyrocket.client.exactly_once import (
        OutboxRelay as OutboxRelay,
    )
    from skyrocket.client.pop.popped_message import PoppedMessage as PoppedMessage
    from skyrocket.client.pop.simple_consumer import (
        SimpleConsumer as SimpleConsumer,
    )
    from skyrocket.client.pop.simple_consumer import (
        SimpleConsumerSettings as SimpleConsumerSettings,
    )
    from skyrocket.client.producer.producer import (
        Producer as Producer,
    )
    from skyrocket.client.producer.producer import (
        ProducerSettings as ProducerSettings,
    )
    from skyrocket.client.producer.transaction import (
        Transaction as Transaction,
    )
    from skyrocket.client.producer.transaction import (
        TransactionProducer as TransactionProducer,
    )
    from skyrocket.client.producer.transaction import (
        TransactionState as TransactionState,
    )
    from skyrocket.model.message_queue import MessageQueue as MessageQueue

# Module ▸ what applications import from here. Each is loaded when it is first used: whoever needs the errors alone, or
# a producer, does without the rest.
_NAMES: Final = {
    "client.admin.admin": "Admin QueueLag",
    "client.consumer.allocation": "Averagely AveragelyByCircle ByConfig ByMachineRoom ConsistentHash MachineRoomNearby",
    "client.admin.reset_preview": "QueueMove ResetPreview",
    "client.consumer.push_consumer_settings": "PushConsumerSettings",
    "client.core.credentials": "Acl",
    "client.consumer.dead_letter_cause": "DeadLetterCause cause_of",
    "client.admin.dead_letters": "DeadLetterFilter",
    "client.core.errors": (
        "AlreadyStarted BrokerAbsent BrokerRefused ClientError CredentialsDiffer ForkedClient "
        "GroupInUse IllegalName IllegalSubscription NameServersDiffer NoNameServer NoRoute "
        "NotDeadLetter NotOffered NotRunning NotWritable PopNotOffered ReceiptExpired RequestTimeout "
        "RouteTooWide SendFailed SendTimeout TooManyInFlight WrongUse"
    ),
    "client.exactly_once": "Once Outbox OutboxRelay",
    "client.consumer.handlers": (
        "ConsumeStatus DeadLetter ReconsumeLater SuspendCurrentQueue current_group current_message"
    ),
    "client.core.hooks": "ConsumeContext ConsumeHook SendContext SendHook",
    "client.consumer.lite_pull_consumer": "LitePullConsumer LitePullSettings",
    "client.consumer.log_context": "MessageContext",
    "client.core.message": "Message ReceivedMessage",
    "client.pop.popped_message": "PoppedMessage",
    "client.producer.producer": "Producer ProducerSettings",
    "client.consumer.push_consumer": "PushConsumer",
    "client.core.send_receipt": "SendReceipt SendStatus",
    "client.core.settings": "ClientSettings",
    "client.pop.simple_consumer": "SimpleConsumer SimpleConsumerSettings",
    "client.consumer.start_position": "ConsumeFromWhere MessageModel",
    "client.consumer.subscription": "SqlFilter",
    "client.producer.transaction": "Transaction TransactionProducer TransactionState",
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
