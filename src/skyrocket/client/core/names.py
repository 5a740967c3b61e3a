"""Names of groups and topics: what is allowed, and how a namespace stands in them."""

import re
from typing import Final

from skyrocket.client.core.errors import IllegalName
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX, is_system_topic
from skyrocket.model.words import Said, said

MAX_GROUP: Final = 120
MAX_TOPIC: Final = 127
_GROUP: Final = said("group")
_TOPIC: Final = said("topic")
SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"
INNER_PRODUCER_GROUP: Final = "CLIENT_INNER_PRODUCER"
DEFAULT_GROUPS: Final = frozenset({"DEFAULT_PRODUCER", "DEFAULT_CONSUMER"})
TEMPLATE_TOPIC: Final = "TBW102"
SEPARATOR: Final = "%"

_LEGAL = re.compile(r"[%|a-zA-Z0-9_-]+")
_NOT_TO_BE_SENT_TO: Final = frozenset(
    {
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)


def check_group(group: str) -> None:
    """Raises IllegalName."""
    _check(_GROUP, group, MAX_GROUP)
    if group in DEFAULT_GROUPS:
        raise IllegalName(
            "group {group} is RocketMQ's default that nobody may use: choose a name of your own", group=group
        )


def check_topic(topic: str) -> None:
    """Raises IllegalName."""
    _check(_TOPIC, topic, MAX_TOPIC)


def check_sendable(topic: str) -> None:
    """Whether applications may send to it; raises IllegalName."""
    check_topic(topic)
    if topic in _NOT_TO_BE_SENT_TO:
        raise IllegalName("sending to topic {topic} is not allowed: it belongs to the system", topic=topic)


def check_creatable(topic: str) -> None:
    """Whether applications may create it; raises IllegalName."""
    check_topic(topic)
    if is_system_topic(topic):
        raise IllegalName("topic {topic} is reserved for the system: choose another name", topic=topic)


def _check(kind: Said, name: str, longest: int) -> None:
    if not isinstance(name, str):
        raise IllegalName("the {kind} is {name!r}: give its name as text", kind=kind, name=name)
    if not name.strip():
        raise IllegalName("the {kind} is blank: give it a name of letters, digits and % | _ -", kind=kind)
    if len(name) > longest:
        raise IllegalName(
            "{kind} {name}… has {length} characters; {longest} are allowed",
            kind=kind,
            name=name[:40],
            length=len(name),
            longest=longest,
        )
    if _LEGAL.fullmatch(name) is None:
        wrong = next(sign for sign in name if _LEGAL.fullmatch(sign) is None)
        raise IllegalName(
            "{kind} {name!r} contains {wrong!r}: only letters, digits and % | _ - are allowed",
            kind=kind,
            name=name,
            wrong=wrong,
        )


# ── namespaces ───────────────────────────────────────────────────────────────────────────────────────────────────────


def wrap(namespace: str, name: str) -> str:
    """`ns%name`; `%RETRY%` and `%DLQ%` stay in front. Names of the system and wrapped ones stay as they are."""
    if not namespace or not name or is_system_topic(name) or name.startswith(SYSTEM_GROUP_PREFIX):
        return name
    kind, bare = _split(name)
    if bare.startswith(namespace + SEPARATOR):
        return name
    return f"{kind}{namespace}{SEPARATOR}{bare}"


def unwrap(namespace: str, name: str) -> str:
    """The opposite; other namespaces stay."""
    if not namespace:
        return name
    kind, bare = _split(name)
    return kind + bare.removeprefix(namespace + SEPARATOR)


def retry_topic(group: str) -> str:
    """Where the messages of a group wait that could not be consumed."""
    return RETRY_PREFIX + group


def _split(name: str) -> tuple[str, str]:
    for kind in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(kind):
            return kind, name[len(kind) :]
    return "", name
