"""What a client raises: every text names the cause and the next step.

ClientError
├── WrongUse          the caller's: a name, a state, an argument
│   ├── IllegalName   NotRunning   AlreadyStarted   GroupInUse   IllegalSubscription   ForkedClient
│   └── NotFound      what was named is not there: a cluster, a broker, a group, a message, a user
├── NoNameServer      none configured, or none answers; NotANameServer when it is a broker that does
├── NoRoute           the name servers know no queue of the topic
│   ├── NotWritable   they know some, but none that may be written to
│   └── RouteTooWide  they name more queues than a client can hold
├── BrokerAbsent      a queue's broker has no address that would do
├── BrokerRefused     a broker answered with an error code
│   ├── PopNotOffered it is too old to know pop
│   ├── NotOffered    it is not a Skyrocket broker, and was asked what only those know
│   └── TooOld        it does not know the request yet
├── PartlyFailed      some of the brokers did what was asked of all
├── ReceiptExpired    a popped message was held too long; NotDeadLetter when it could not be buried
└── SendFailed        all attempts of a send; SendTimeout when the time was up, TooManyInFlight when it never left
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skyrocket.errors import SkyrocketError
from skyrocket.model.words import counted, said
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import RequestError

HOW_TO_NAME_THEM: Final = "-n or NAMESRV_ADDR in the terminal, name_servers= in a program"


class ClientError(SkyrocketError):
    """Base of what a client raises. With values, the text is a template: `NotFound("no user {name}", name=name)`."""

    def __init__(self, text: str, /, **values: object) -> None:
        super().__init__(said(text, **values) if values else text)


class WrongUse(ClientError):
    """The program that uses the client must be changed."""


class IllegalName(WrongUse, ValueError):
    """A group or topic that RocketMQ would not accept."""


class NotFound(WrongUse):
    """What was named is not there."""


class IllegalSubscription(WrongUse, ValueError):
    """A filter that no broker understands, or none at all."""


class NotRunning(WrongUse, RuntimeError):
    """Used before its start or after its end."""

    def __init__(self, what: str, state: str) -> None:
        super().__init__(
            f"{what} is {state}: use it inside `async with`, or between `await start()` and `await stop()`"
        )


class AlreadyStarted(WrongUse, RuntimeError):
    """Started twice."""

    def __init__(self, what: str, state: str) -> None:
        super().__init__(f"{what} was already started (it is {state}): make a new one instead of starting it again")


class GroupInUse(WrongUse):
    """Two members of one group in one client: brokers could not tell them apart."""

    def __init__(self, kind: str, group: str, client_id: str) -> None:
        super().__init__(
            f"{kind} group {group} is already used by client {client_id}: "
            "stop the other one, choose another group, or give each an instance_name of its own"
        )


class NameServersDiffer(WrongUse):
    """One instance name for two clusters."""

    def __init__(self, client_id: str, known: str, wanted: str) -> None:
        super().__init__(
            f"client {client_id} already talks to the name servers {known}, not {wanted}: "
            "choose another instance_name for the second cluster"
        )


class CredentialsDiffer(WrongUse):
    """One instance name for two accounts: they would share connections and signatures."""

    def __init__(self, client_id: str) -> None:
        super().__init__(
            f"client {client_id} already signs with other credentials: "
            "choose another instance_name for the second account"
        )


class ForkedClient(WrongUse, RuntimeError):
    """Used in a child process: sockets and ids belong to the parent."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was started before a fork: make and start a new one in the child process")


class NoNameServer(ClientError):
    """Nobody to ask where topics are."""


class NotANameServer(WrongUse, NoNameServer):
    """Somebody else answers at the address."""

    def __init__(self, address: str, remark: str | None) -> None:
        super().__init__(
            f"{address} is not a name server ({(remark or 'it does not know the request').strip()}): a broker "
            "listens there, or a proxy; give the address of a name server, whose usual port is 9876"
        )


class NoRoute(ClientError):
    """No broker has the topic."""

    def __init__(self, topic: str, name_servers: str, why: str | None = None) -> None:
        self.topic = topic
        self.name_servers = name_servers
        because = f" ({' '.join(why.split())})" if why else ""  # name servers write two lines
        super().__init__(
            f"no route for topic {topic}: the name server {name_servers} knows no broker for it{because}; create it "
            f"with Admin.create_topic({topic!r}) or `skyrocket topic create {topic}`, or let brokers create topics "
            "(autoCreateTopicEnable=true)"
        )


class NotWritable(NoRoute):
    """Brokers have the topic, but none of them lets it be written to."""

    def __init__(self, topic: str, name_servers: str, state: str) -> None:
        self.topic = topic
        self.name_servers = name_servers
        ClientError.__init__(
            self,
            f"topic {topic} cannot be written to: {state or 'its route is empty'}; writing needs a master, write "
            f"queues and perm 6 (or 2): Admin.create_topic({topic!r}, permission=6), brokerPermission=6, "
            "`skyrocket broker resume-writes` where they were paused, or start the master",
        )


class RouteTooWide(NoRoute):
    """A route with so many queues that keeping them would cost the client its memory."""

    def __init__(self, topic: str, queues: int, most: int) -> None:
        self.topic = topic
        self.queues = queues
        ClientError.__init__(
            self,
            f"the route of topic {topic} has {queues} queues, and a client takes {most} at most: somebody gave the "
            "topic a wrong number of queues, or the name server is not yours; look at it with `mqadmin topicRoute` and "
            "lower the numbers with `mqadmin updateTopic`",
        )


class BrokerAbsent(ClientError):
    """A route names a broker that cannot be asked."""

    def __init__(self, broker_name: str, topic: str, wanted: str = "master") -> None:
        self.broker_name = broker_name
        self.topic = topic
        super().__init__(
            f"broker {broker_name} of topic {topic} has no {wanted} in the route: it is down or was removed; "
            "start it, or wait until the name servers know of its successor"
        )


class BrokerRefused(ClientError):
    """A broker answered with an error; `code` is RocketMQ's response code."""

    def __init__(self, address: str, error: RequestError, doing: str) -> None:
        self.address = address
        self.code = int(error.code)
        self.remark = error.remark
        self.__cause__ = error
        super().__init__(
            "{doing} was refused by broker {address}: {why}", doing=doing, address=address, why=explained(error)
        )


class PopNotOffered(BrokerRefused):
    """A broker that does not know how to hand out messages one by one."""

    def __init__(self, address: str, error: RequestError) -> None:
        super().__init__(address, error, "popping messages")
        self.args = (
            f"broker {address} does not know pop ({described(error)}), which RocketMQ has since 5.0: "
            "use PushConsumer or LitePullConsumer with this cluster",
        )


class NotOffered(BrokerRefused):
    """A broker that does not know a request of Skyrocket's own."""

    def __init__(self, address: str, error: RequestError, doing: str, instead: str) -> None:
        super().__init__(address, error, doing)
        self.args = (
            f"{doing} is not offered by broker {address} ({described(error)}): only Skyrocket's brokers know it; "
            f"{instead}",
        )


class TooOld(BrokerRefused):
    """A broker or name server of an older RocketMQ, which does not know the request."""

    def __init__(self, address: str, error: RequestError, doing: str) -> None:
        super().__init__(address, error, doing)
        self.args = (
            f"{doing} is not offered by broker {address} ({described(error)}): it came with a newer release than that "
            "broker's; upgrade it, or leave the broker out",
        )


class PartlyFailed(ClientError):
    """Some brokers did what was asked of all; `result` is what those answered, `failures` has the others."""

    def __init__(self, result: object, failures: Mapping[str, Exception]) -> None:
        self.result = result
        self.failures = dict(failures)
        reasons = "; ".join(f"{where}: {error}" for where, error in failures.items())
        super().__init__(f"{counted(len(failures), 'broker')} failed, the others did it: {reasons}")


class ReceiptExpired(ClientError):
    """Too late: the message is handed out again, or was already."""

    def __init__(self, message_id: str, invisible_seconds: float, late_seconds: float) -> None:
        super().__init__(
            f"the receipt of message {message_id} expired {late_seconds:.1f} s ago, it was hidden for "
            f"{invisible_seconds:g} s: the message comes again; receive with more invisible_seconds, or call "
            "change_invisible while you work"
        )


class NotDeadLetter(ClientError):
    """A message could not be moved to the dead letters."""

    def __init__(self, message_id: str, group: str) -> None:
        super().__init__(
            f"message {message_id} could not be moved to %DLQ%{group}, the log says why: it was not acknowledged and "
            "comes again when its time is over"
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a send: where, how long, and what went wrong."""

    broker_name: str
    address: str
    seconds: float
    error: Exception

    def __str__(self) -> str:
        return f"{self.place}: {explained(self.error)}"

    @property
    def place(self) -> str:
        """Where, and how long."""
        return f"{self.broker_name} after {self.seconds * 1000:.0f} ms"

    @property
    def kind(self) -> str:
        """What went wrong, without the numbers that are others each time, such as a time to wait."""
        return re.sub(r"\d+", "", explained(self.error))


class SendFailed(ClientError):
    """No attempt was confirmed; one that timed out may have stored the message all the same."""

    def __init__(self, topic: str, attempts: Sequence[Attempt], seconds: float, why: str = "") -> None:
        self.topic = topic
        self.attempts = tuple(attempts)
        last = attempts[-1].error if attempts else None
        self.__cause__ = last
        self.code = int(last.code) if isinstance(last, RequestError) else None
        tried = "; ".join(_tried(attempts)) or "nothing was sent"
        reason = f"{why}; " if why else ""
        super().__init__(
            f"message for topic {topic} was not confirmed within {seconds * 1000:.0f} ms, "
            f"{counted(len(attempts), 'attempt')}: {reason}{tried}"
        )


def _tried(attempts: Sequence[Attempt]) -> Iterator[str]:
    """Each attempt; what several in a row have met is told once, with the last of them."""
    for number, attempt in enumerate(attempts, 1):
        is_repeated = number < len(attempts) and attempts[number].kind == attempt.kind
        yield f"{number}) {attempt.place if is_repeated else attempt}"


class SendTimeout(SendFailed, TimeoutError):
    """The time for the whole send was up."""


class RequestTimeout(ClientError, TimeoutError):
    """The message was sent, but nobody replied in time."""

    def __init__(self, topic: str, seconds: float) -> None:
        super().__init__(
            f"no reply to a message for topic {topic} within {seconds * 1000:.0f} ms: "
            "check that a consumer of it runs and answers with Producer.reply"
        )


class TooManyInFlight(ClientError):
    """The producer's own bound held for the whole time: brokers are too slow for what is sent."""

    def __init__(self, count: int, size: int, seconds: float) -> None:
        super().__init__(
            f"{count} sends with {size} bytes are in flight and none ended within {seconds * 1000:.0f} ms; the message "
            "was not sent: send more slowly, or raise max_in_flight and max_in_flight_bytes"
        )


def explained(error: Exception) -> str:
    """What went wrong, and what to do if it was a broker that refused."""
    return described(error) + _advice(error) if isinstance(error, RequestError) else str(error)


def described(error: RequestError) -> str:
    """Code, its name, and the remark."""
    try:
        name = f" {ResponseCode(error.code).name}"
    except ValueError:
        name = ""
    return f"code {int(error.code)}{name}" + (f", {error.remark}" if error.remark else "")


_ADVICE = {
    ResponseCode.NO_PERMISSION: "check the permission (perm) of broker and topic, the group, and the access rules",
    ResponseCode.TOPIC_NOT_EXIST: "create the topic with Admin.create_topic",
    ResponseCode.MESSAGE_ILLEGAL: "the message breaks a limit of the broker: name, properties or size",
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: "create the group with Admin.create_group",
    ResponseCode.SYSTEM_BUSY: "the broker is overloaded: send more slowly, or add brokers",
    ResponseCode.SERVICE_NOT_AVAILABLE: "the broker takes no writes: look for a full disk or a slave in its log",
    ResponseCode.SUBSCRIPTION_PARSE_FAILED: "correct the filter expression",
}


_QUOTA = "[QUOTA]"
_NO_ACCOUNT = ("username cannot be null", "No accessKey is configured")
_WRONG_ACCOUNT = ("check signature failed", "user not found", "No acl config for")
_NO_RIGHT = "has no permission to access"


def is_about_account(error: Exception) -> bool:
    """Whether a broker does not know who asks: no other attempt would end differently."""
    remark = (error.remark or "").lower() if isinstance(error, RequestError) else ""
    return any(text.lower() in remark for text in (*_NO_ACCOUNT, *_WRONG_ACCOUNT))


def is_about_rights(error: "BrokerRefused") -> bool:
    """Whether another account might be allowed it: code 16 is also the answer to wrong names, quotas and more."""
    remark = (error.remark or "").lower()
    words = (*_NO_ACCOUNT, *_WRONG_ACCOUNT, _NO_RIGHT, "aclexception", "is disabled")
    return error.code == ResponseCode.NO_PERMISSION and any(text.lower() in remark for text in words)


def _advice(error: RequestError) -> str:
    remark = (error.remark or "").lower()
    if any(text.lower() in remark for text in _NO_ACCOUNT):
        return " (the broker wants an account: give credentials=Acl(user, secret), or --access-key and --secret-key)"
    if any(text.lower() in remark for text in _WRONG_ACCOUNT):
        return " (the broker does not accept this account: check user and secret of credentials=Acl(user, secret))"
    if remark.startswith(_QUOTA.lower()):
        return " (`skyrocket quota list` shows what is used of it)"
    if _NO_RIGHT in remark:
        return " (`skyrocket acl show` lists the account's rights, `skyrocket acl grant` gives more)"
    advice = _ADVICE.get(error.code)  # type: ignore[call-overload]
    return f" ({advice})" if advice else ""
