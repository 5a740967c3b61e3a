"""What may be limited, and of whom: the words that files, requests, commands and refusals share.

An account is a user of ACL 2.0 or an access key of ACL 1.0; who does not say a name is the account "". A namespace is
what stands before the first `%` of a topic's name; topics without one belong to the namespace "". The name `*` stands
for each that has no quota of its own.
"""

from dataclasses import dataclass
from typing import Final

from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX

ACCOUNT: Final = "account"
NAMESPACE: Final = "namespace"
SUBJECTS: Final = (ACCOUNT, NAMESPACE)
EVERYBODY: Final = "*"
NO_LIMIT: Final = -1  # in a change: take the limit away
LARGEST: Final = (1 << 53) - 1  # what JSON of every language still counts exactly

SEND_MESSAGES: Final = "sendMessagesPerSecond"
SEND_BYTES: Final = "sendBytesPerSecond"
READ_MESSAGES: Final = "readMessagesPerSecond"
READ_BYTES: Final = "readBytesPerSecond"
CONNECTIONS: Final = "connections"
NEW_CONNECTIONS: Final = "newConnectionsPerSecond"
TOPICS: Final = "topics"
STORED_BYTES: Final = "storedBytes"


@dataclass(frozen=True, slots=True)
class QuotaKind:
    """One thing that can be limited: the word for one of it in a refusal, whose it is, and what follows the word."""

    name: str
    unit: str
    subjects: tuple[str, ...]
    per: str = ""

    def amount(self, limit: int) -> str:
        """`1 topic`, `2 topics`, `1000 bytes/s`."""
        return f"{limit} {self.unit}{'' if limit == 1 else 's'}{self.per}"


# A connection has no namespace. The topics of an account are those that it has created.
KINDS: Final[dict[str, QuotaKind]] = {
    kind.name: kind
    for kind in (
        QuotaKind(SEND_MESSAGES, "message", SUBJECTS, "/s"),
        QuotaKind(SEND_BYTES, "byte", SUBJECTS, "/s"),
        QuotaKind(READ_MESSAGES, "message", SUBJECTS, "/s"),
        QuotaKind(READ_BYTES, "byte", SUBJECTS, "/s"),
        QuotaKind(CONNECTIONS, "connection", (ACCOUNT,)),
        QuotaKind(NEW_CONNECTIONS, "new connection", (ACCOUNT,), "/s"),
        QuotaKind(TOPICS, "topic", SUBJECTS),
        QuotaKind(STORED_BYTES, "byte", SUBJECTS, " stored"),
    )
}
RATES: Final = (SEND_MESSAGES, SEND_BYTES, READ_MESSAGES, READ_BYTES, NEW_CONNECTIONS)


def namespace_of(topic: str) -> str:
    """`shop` of `shop%Orders` and of `%RETRY%shop%Group`; "" for topics without one."""
    if topic.startswith("%"):
        for prefix in (RETRY_PREFIX, DLQ_PREFIX):
            if topic.startswith(prefix):
                topic = topic[len(prefix) :]
                break
    namespace, found, _ = topic.partition("%")
    return namespace if found else ""


def shown(subject: str, name: str) -> str:
    """A subject as people read it."""
    if name:
        return f"{subject} {name}"
    return "account anonymous" if subject == ACCOUNT else "topics without a namespace"


def wrong_quota(subject: str, name: str, limits: dict[str, int]) -> str | None:
    """What is wrong with a change of limits, and what would be right; None when nothing is."""
    if subject not in SUBJECTS:
        return f"subjectType is {subject!r}: it must be one of {', '.join(SUBJECTS)}"
    if len(name) > 255 or not name.isprintable():
        return f"the name of the {subject} must have at most 255 visible characters"
    for kind, limit in limits.items():
        known = KINDS.get(kind)
        if known is None:
            return f"{kind} is no quota: there are {', '.join(KINDS)}"
        if subject not in known.subjects:
            return f"{kind} is counted for each {known.subjects[0]}, not for each {subject}"
        if subject == ACCOUNT and not name and kind in (TOPICS, STORED_BYTES):
            return f"{kind} is counted for who created topics: whoever gives no name is not written down"
        if limit != NO_LIMIT and not 1 <= limit <= LARGEST:
            return f"{kind} is {limit}: it must be 1 or more, or {NO_LIMIT} for no limit"
    return None
