"""Skyrocket: RocketMQ in Python. What applications import is here; it is loaded when it is first used."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skyrocket.client import (
        Acl,
        Admin,
        ClientError,
        ClientSettings,
        ConsumeFromWhere,
        DeadLetter,
        Depends,
        LitePullConsumer,
        LitePullSettings,
        Message,
        MessageModel,
        MessageQueue,
        Middleware,
        NoNameServer,
        NoRoute,
        PoppedMessage,
        Producer,
        ProducerSettings,
        PushConsumer,
        PushConsumerSettings,
        ReceivedMessage,
        ReconsumeLater,
        RetryPolicy,
        SendFailed,
        SendReceipt,
        SendStatus,
        SimpleConsumer,
        SimpleConsumerSettings,
        SqlFilter,
        SuspendCurrentQueue,
        TransactionProducer,
        TransactionState,
        blocking,
        publish,
        reply,
    )

__version__ = "0.1.0"

__all__ = [
    "Acl",
    "Admin",
    "ClientError",
    "ClientSettings",
    "ConsumeFromWhere",
    "DeadLetter",
    "Depends",
    "LitePullConsumer",
    "LitePullSettings",
    "Message",
    "MessageModel",
    "MessageQueue",
    "Middleware",
    "NoNameServer",
    "NoRoute",
    "PoppedMessage",
    "Producer",
    "ProducerSettings",
    "PushConsumer",
    "PushConsumerSettings",
    "ReceivedMessage",
    "ReconsumeLater",
    "RetryPolicy",
    "SendFailed",
    "SendReceipt",
    "SendStatus",
    "SimpleConsumer",
    "SimpleConsumerSettings",
    "SqlFilter",
    "SuspendCurrentQueue",
    "TransactionProducer",
    "TransactionState",
    "__version__",
    "blocking",
    "publish",
    "reply",
]


def __getattr__(name: str) -> Any:
    # The client takes its time to load: whoever starts a broker, or asks for the version, does without.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    client = importlib.import_module("skyrocket.client")
    found = importlib.import_module("skyrocket.client.blocking") if name == "blocking" else getattr(client, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
