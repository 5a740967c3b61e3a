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

from skyrocket.client.admin import Admin, QueueLag
from skyrocket.client.allocation import (
    Averagely,
    AveragelyByCircle,
    ByConfig,
    ByMachineRoom,
    ConsistentHash,
    MachineRoomNearby,
)
from skyrocket.client.backtracking import QueueMove, ResetPreview
from skyrocket.client.consumer_settings import PushConsumerSettings
from skyrocket.client.credentials import Acl
from skyrocket.client.dead_letter_cause import DeadLetterCause, cause_of
from skyrocket.client.dead_letters import DeadLetterFilter
from skyrocket.client.errors import (
    AlreadyStarted,
    BrokerAbsent,
    BrokerRefused,
    ClientError,
    CredentialsDiffer,
    ForkedClient,
    GroupInUse,
    IllegalName,
    IllegalSubscription,
    NameServersDiffer,
    NoNameServer,
    NoRoute,
    NotDeadLetter,
    NotOffered,
    NotRunning,
    NotWritable,
    PopNotOffered,
    ReceiptExpired,
    RequestTimeout,
    SendFailed,
    SendTimeout,
    TooManyInFlight,
    WrongUse,
)
from skyrocket.client.exactly_once import Once, Outbox, OutboxRelay
from skyrocket.client.handlers import (
    ConsumeStatus,
    DeadLetter,
    ReconsumeLater,
    SuspendCurrentQueue,
    current_group,
    current_message,
)
from skyrocket.client.hooks import ConsumeContext, ConsumeHook, SendContext, SendHook
from skyrocket.client.lite_pull_consumer import LitePullConsumer, LitePullSettings
from skyrocket.client.log_context import MessageContext
from skyrocket.client.message import Message, ReceivedMessage
from skyrocket.client.popped_message import PoppedMessage
from skyrocket.client.producer import Producer, ProducerSettings
from skyrocket.client.push_consumer import PushConsumer
from skyrocket.client.receipt import SendReceipt, SendStatus
from skyrocket.client.settings import ClientSettings
from skyrocket.client.simple_consumer import SimpleConsumer, SimpleConsumerSettings
from skyrocket.client.start_position import ConsumeFromWhere, MessageModel
from skyrocket.client.subscription import SqlFilter
from skyrocket.client.transaction import Transaction, TransactionProducer, TransactionState
from skyrocket.client.waiting_messages import OpenTransaction, PendingTimer
from skyrocket.model.message_queue import MessageQueue

__all__ = [
    "Acl",
    "Admin",
    "AlreadyStarted",
    "Averagely",
    "AveragelyByCircle",
    "BrokerAbsent",
    "BrokerRefused",
    "ByConfig",
    "ByMachineRoom",
    "ClientError",
    "ClientSettings",
    "ConsistentHash",
    "ConsumeContext",
    "ConsumeFromWhere",
    "ConsumeHook",
    "ConsumeStatus",
    "CredentialsDiffer",
    "DeadLetter",
    "DeadLetterCause",
    "DeadLetterFilter",
    "ForkedClient",
    "GroupInUse",
    "IllegalName",
    "IllegalSubscription",
    "LitePullConsumer",
    "LitePullSettings",
    "MachineRoomNearby",
    "Message",
    "MessageContext",
    "MessageModel",
    "MessageQueue",
    "NameServersDiffer",
    "NoNameServer",
    "NoRoute",
    "NotDeadLetter",
    "NotOffered",
    "NotRunning",
    "NotWritable",
    "Once",
    "OpenTransaction",
    "Outbox",
    "OutboxRelay",
    "PendingTimer",
    "PopNotOffered",
    "PoppedMessage",
    "Producer",
    "ProducerSettings",
    "PushConsumer",
    "PushConsumerSettings",
    "QueueLag",
    "QueueMove",
    "ReceiptExpired",
    "ReceivedMessage",
    "ReconsumeLater",
    "RequestTimeout",
    "ResetPreview",
    "SendContext",
    "SendFailed",
    "SendHook",
    "SendReceipt",
    "SendStatus",
    "SendTimeout",
    "SimpleConsumer",
    "SimpleConsumerSettings",
    "SqlFilter",
    "SuspendCurrentQueue",
    "TooManyInFlight",
    "Transaction",
    "TransactionProducer",
    "TransactionState",
    "WrongUse",
    "cause_of",
    "current_group",
    "current_message",
]
