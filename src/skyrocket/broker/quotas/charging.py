"""The check of quotas: whose a request is, what it costs, and whether that is still allowed.

    send           charged before it is stored; refused with code 2, and with 14 when too much is stored already
    sent back      charged with what was stored again; who is in debt is refused, as a send is
    pull, pop      charged with what was found; who is in debt waits, and hears code 215 if that was not enough
    new topics     refused with code 16
    connections    counted at their first request; those beyond the quota are refused with code 2, one by one

The router asks only while there is a quota at all.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final, TypeAlias

from skyrocket.broker.quotas.spenders import Spender, Spenders
from skyrocket.broker.quotas.topic_owners import TopicOwners
from skyrocket.broker.state.topics import TopicTable
from skyrocket.model.quota import (
    NEW_CONNECTIONS,
    READ_BYTES,
    READ_MESSAGES,
    SEND_BYTES,
    SEND_MESSAGES,
    namespace_of,
)
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX
from skyrocket.protocol.bodies.topics import TopicConfigList
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import FlowControl
from skyrocket.protocol.requests.header import parse_flag
from skyrocket.protocol.send_shapes import Shape, ShapedSend
from skyrocket.protocol.signing import ACCESS_KEY
from skyrocket.remoting.peer import CloseReason, Peer
from skyrocket.remoting.postponing import Postponed

_LONGEST_PAUSE: Final = 5.0  # half of what a caller of a plain pull waits by default
_MAX_SHAPES: Final = 20_000
_SPENDER: Final = "broker.quotas.account"
_OWN: Final = (RequestCode.SET_QUOTA, RequestCode.REMOVE_QUOTA, RequestCode.LIST_QUOTAS)
_BY_BROKER: Final = (RETRY_PREFIX, DLQ_PREFIX)  # topics that nobody creates himself

_Charge: TypeAlias = Callable[[Spender | None, RemotingCommand], None]


class Charging:
    """Charges accounts and namespaces; `believes_names` is whether access control has looked at who asks."""

    def __init__(
        self,
        accounts: Spenders,
        namespaces: Spenders,
        topics: TopicTable,
        owners: TopicOwners,
        *,
        believes_names: bool,
    ) -> None:
        self._accounts = accounts
        self._namespaces = namespaces
        self._topics = topics
        self._owners = owners
        self._believes_names = believes_names
        self._held: set[asyncio.Future[None]] = set()
        self._known: dict[Shape, tuple[str, bool]] = {}  # topic, and whether they are batches
        self._counted: tuple[int, Counter[str]] = (-1, Counter())
        self._charges: dict[int, _Charge] = {
            RequestCode.SEND_MESSAGE: self._long_send,
            RequestCode.SEND_MESSAGE_V2: self._short_send,
            RequestCode.SEND_BATCH_MESSAGE: self._short_send,
            RequestCode.SEND_REPLY_MESSAGE: self._long_send,
            RequestCode.SEND_REPLY_MESSAGE_V2: self._short_send,
            RequestCode.CONSUMER_SEND_MSG_BACK: self._send_back,
            RequestCode.PULL_MESSAGE: self._read,
            RequestCode.LITE_PULL_MESSAGE: self._read,
            RequestCode.POP_MESSAGE: self._read,
            RequestCode.PEEK_MESSAGE: self._read,
            RequestCode.UPDATE_AND_CREATE_TOPIC: self._create_topic,
            RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: self._create_topics,
        }

    def check(self, peer: Peer, request: RemotingCommand) -> None:
        """Raises the refusal, or Postponed."""
        account = self._accounts.find(self._name_of(request))
        if peer.attributes.get(_SPENDER) is not account:
            self._connect(peer, account, request.code)
        charge = self._charges.get(request.code)
        if charge is not None:
            charge(account, request)

    def _name_of(self, request: RemotingCommand) -> str:
        fields = request.ext_fields if self._believes_names else None
        return (fields.get(ACCESS_KEY) if fields else None) or ""

    # ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _connect(self, peer: Peer, account: Spender | None, code: int) -> None:
        """A first request, or the first of another account, or the first since there is a quota."""
        if account is not None and code not in _OWN:  # who is shut out can still look at the quotas and change them
            refusal = account.connection_refusal()
            if refusal is not None:
                raise refusal
            account.take(NEW_CONNECTIONS, 1)
        if _SPENDER not in peer.attributes:
            peer.on_close(_disconnected)
        else:
            _disconnected(peer, CloseReason.LOCAL)
        peer.attributes[_SPENDER] = account
        if account is not None:
            account.connections += 1

    # ── sends ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _long_send(self, account: Spender | None, request: RemotingCommand) -> None:
        fields = request.ext_fields or {}
        self._send(account, fields.get("topic", ""), request, is_batch=parse_flag(fields.get("batch") or ""))

    def _short_send(self, account: Spender | None, request: RemotingCommand) -> None:
        if not isinstance(request, ShapedSend):
            topic, is_batch = _topic_and_form(request)
        else:  # one of many alike: its fields are not read
            known = self._known.get(request.shape)
            if known is None:
                if len(self._known) >= _MAX_SHAPES:
                    self._known.clear()
                known = self._known[request.shape] = _topic_and_form(request)
            topic, is_batch = known
        self._send(account, topic, request, is_batch=is_batch)

    def _send(self, account: Spender | None, topic: str, request: RemotingCommand, *, is_batch: bool) -> None:
        namespace = self._namespace(topic)
        self._check_kept(topic, namespace)
        if self._topics.find(topic) is None:
            self._check_new(account, request, (topic,))
        spenders = _those(account, namespace)
        if not spenders:
            return
        size = len(request.body)
        count = _messages_in(request.body) if is_batch else 1
        for spender in spenders:
            spender.check_rate(SEND_MESSAGES, count)
            spender.check_rate(SEND_BYTES, size)
        for spender in spenders:
            spender.take(SEND_MESSAGES, count)
            spender.take(SEND_BYTES, size)

    def _send_back(self, account: Spender | None, request: RemotingCommand) -> None:
        """How large the message is only the store knows: the next one waits for it."""
        topic = RETRY_PREFIX + ((request.ext_fields or {}).get("group") or "")
        namespace = self._namespace(topic)
        self._check_kept(topic, namespace)
        for spender in _those(account, namespace):
            spender.check_rate(SEND_MESSAGES, 1)
            spender.check_rate(SEND_BYTES, 0)

    def stored_again(self, peer: Peer, topic: str, messages: int, size: int) -> None:
        """What this connection sent back is in a retry topic or among dead letters."""
        for spender in _those(peer.attributes.get(_SPENDER), self._namespace(topic)):
            spender.take(SEND_MESSAGES, messages)
            spender.take(SEND_BYTES, size)

    def _check_kept(self, topic: str, namespace: Spender | None) -> None:
        """Whoever sends: a topic whose keeper keeps too much takes no more."""
        owner = self._owners.of(topic)
        for keeper in _those(namespace, None if owner is None else self._accounts.find(owner)):
            keeper.check_stored()

    # ── reads ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, account: Spender | None, request: RemotingCommand) -> None:
        for spender in _those(account, self._namespace((request.ext_fields or {}).get("topic", ""))):
            for kind in (READ_MESSAGES, READ_BYTES):
                wait = spender.wait_of(kind)
                if wait > 0:
                    refusal = FlowControl(spender.refused(kind, wait))
                    raise Postponed(partial(self._pause, wait), refusal)

    def found(self, peer: Peer, topic: str, messages: int, size: int) -> None:
        """A pull or pop of this connection found something."""
        for spender in _those(peer.attributes.get(_SPENDER), self._namespace(topic)):
            spender.take(READ_MESSAGES, messages)
            spender.take(READ_BYTES, size)

    async def _pause(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(min(seconds, _LONGEST_PAUSE), _end, until)
        self._held.add(until)
        try:
            await until
        finally:
            timer.cancel()
            self._held.discard(until)

    @property
    def held_count(self) -> int:
        """Reads that wait for their debt."""
        return len(self._held)

    def let_go(self) -> None:
        """Hold nobody any more."""
        for until in self._held:
            _end(until)

    # ── topics ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _create_topic(self, account: Spender | None, request: RemotingCommand) -> None:
        self._check_new(account, request, ((request.ext_fields or {}).get("topic", ""),))

    def _create_topics(self, account: Spender | None, request: RemotingCommand) -> None:
        topics = [config.name for config in TopicConfigList.decode(request.body).topics]
        self._check_new(account, request, topics)

    def _check_new(self, account: Spender | None, request: RemotingCommand, topics: Iterable[str]) -> None:
        """Topics that this request would create; raises NoPermission. Who asks for them is their owner if it does."""
        new = {topic for topic in topics if self._topics.find(topic) is None and self._counts(topic)}
        by_namespace = Counter(namespace for topic in new if (namespace := self._namespace(topic)) is not None)
        for namespace, more in by_namespace.items():
            namespace.check_topics(self.topics_in(namespace.name), more)
        name = self._name_of(request)
        if not name or not new:
            return
        if account is not None:
            account.check_topics(self._owners.counts()[name], len(new))
        self._owners.asked_for(name, new)

    def topics_in(self, namespace: str) -> int:
        """How many there are; those of the system, of retries and of dead letters do not count."""
        return self._topics_by_namespace()[namespace]

    def topics_without(self, namespaces: Collection[str]) -> int:
        """The same in all but these."""
        return sum(count for name, count in self._topics_by_namespace().items() if name not in namespaces)

    def _topics_by_namespace(self) -> Counter[str]:
        generation, counts = self._counted
        if generation != self._topics.generation:
            counts = Counter(namespace_of(topic) for topic in self._topics.topics if self._counts(topic))
            self._counted = (self._topics.generation, counts)
        return counts

    def _counts(self, topic: str) -> bool:
        return not topic.startswith(_BY_BROKER) and not self._topics.is_system(topic)

    def _namespace(self, topic: str) -> Spender | None:
        """Whose namespace a topic is in; topics of the system are in none."""
        found = self._namespaces.find(namespace_of(topic))
        return None if found is None or self._topics.is_system(topic) else found


def _topic_and_form(request: RemotingCommand) -> tuple[str, bool]:
    """Where a send with short names goes, and whether it is a batch."""
    fields = request.ext_fields or {}
    return fields.get("b", ""), parse_flag(fields.get("m") or "") or request.code == RequestCode.SEND_BATCH_MESSAGE


def _those(*spenders: Spender | None) -> list[Spender]:
    return [spender for spender in spenders if spender is not None]


def _disconnected(peer: Peer, _: CloseReason) -> None:
    account: Spender | None = peer.attributes.get(_SPENDER)
    if account is not None:
        account.connections -= 1
        peer.attributes[_SPENDER] = None


def _end(until: asyncio.Future[None]) -> None:
    if not until.done():
        until.set_result(None)


def _messages_in(batch: "bytes | memoryview") -> int:
    """Messages of a batch, each with its size before it; what is no batch is refused by others."""
    at = count = 0
    while at + 4 <= len(batch):
        size = int.from_bytes(batch[at : at + 4])
        if size < 4:
            break
        at += size
        count += 1
    return max(count, 1)
