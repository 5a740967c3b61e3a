"""SimpleConsumer: receive messages, and say of each when it is done.

    async with SimpleConsumer("Mail", "127.0.0.1:9876", subscription={"Orders": "*"}) as consumer:
        for message in await consumer.receive(max_messages=16, invisible_seconds=30):
            await consumer.ack(message)

It pops: no queue is assigned to anybody, so there may be more consumers than queues, and a slow one holds up nobody.
What is not acknowledged within its invisible time comes again, with `reconsume_times` one higher. Brokers keep all
progress.

    receive ─▶ one short pop at every broker after the other, beginning at another each time ─▶ messages
                 │ nothing anywhere
                 └─▶ wait for notifications of all brokers (pop_notifications) ─▶ pop where there are some
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from skyrocket.client.consumer.group_member import GroupMember
from skyrocket.client.consumer.send_back import DEFAULT_MAX_TIMES, SendBack
from skyrocket.client.consumer.start_position import ConsumeFromWhere
from skyrocket.client.consumer.subscription import Filter, subscription_of
from skyrocket.client.core.errors import (
    BrokerAbsent,
    BrokerRefused,
    ClientError,
    IllegalSubscription,
    NoRoute,
    NotDeadLetter,
    PopNotOffered,
    WrongUse,
)
from skyrocket.client.core.lifecycle import State
from skyrocket.client.core.names import check_topic, retry_topic, unwrap, wrap
from skyrocket.client.core.setting_types import check_types
from skyrocket.client.core.settings import Acl, ClientSettings, of_kind, settings_of
from skyrocket.client.pop.acknowledgements import Acknowledgements
from skyrocket.client.pop.pop_notifications import ANY_QUEUE, PopNotifications, TopicAtBroker
from skyrocket.client.pop.popped_message import PoppedMessage, popped_messages
from skyrocket.errors import DataError, SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import RequestError, RequestNotSupported
from skyrocket.protocol.requests.pop import PopMessage
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

MAX_MESSAGES: Final = 32  # RocketMQ's brokers refuse more
_POP_SECONDS: Final = 5.0
_RETRY_TOPIC_SECONDS: Final = 2.0
_ASK_AGAIN: Final = 0.05
_FROM_MIN: Final = 0  # initMode of a pop
_FROM_MAX: Final = 1
_FIRST_PAUSE: Final = 0.02  # when a broker has news but no message, it is in somebody else's hands
_LONGEST_PAUSE: Final = 0.5
_POP_CODES: Final = frozenset(
    int(code)
    for code in (
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.POLLING_FULL,
        ResponseCode.POLLING_TIMEOUT,
    )
)


@dataclass(frozen=True, slots=True)
class SimpleConsumerSettings:
    """Where a new group begins, and when `receive` gives a message up: -1 is never."""

    consume_from: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    """Where a group without offsets begins: first or last."""
    max_reconsume_times: int = DEFAULT_MAX_TIMES
    """`receive` moves messages that came again more often to the dead letters; -1: never."""

    def __post_init__(self) -> None:
        check_types(self)
        if self.consume_from is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            raise WrongUse("a pop begins at the first or the last message: reset the group with Admin.reset_offsets")


class _PopLimits(NamedTuple):
    """How messages are asked for."""

    most: int
    invisible_seconds: float


class SimpleConsumer(GroupMember):
    """One of any number of consumers of a group."""

    kind = "simple consumer"
    consume_type = "CONSUME_POP"

    def __init__(
        self,
        group: str,
        name_servers: str | Sequence[str] = "",
        settings: SimpleConsumerSettings | None = None,
        *,
        subscription: Mapping[str, Filter],
        client: ClientSettings | None = None,
        credentials: Acl | None = None,
    ) -> None:
        if not subscription:
            raise IllegalSubscription("the subscription is empty: give at least one topic, as {'Orders': '*'}")
        for topic in subscription:
            check_topic(topic)
        self.settings = of_kind("settings", settings, SimpleConsumerSettings)
        super().__init__(group, settings_of(client, name_servers, credentials), self.settings.consume_from)
        self._wanted = {wrap(self._namespace, topic): wanted for topic, wanted in subscription.items()}
        self._subscribe(0)
        self._rounds = 0  # decides where the next one begins
        self._notifications: PopNotifications
        self._acknowledgements: Acknowledgements
        self._send_back: SendBack

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _subscribe(self, now_ms: int) -> None:
        for topic, wanted in self._wanted.items():
            self._subscriptions[topic] = subscription_of(topic, wanted, now_ms)

    def _build(self) -> None:
        self._subscribe(self._started_ms)
        self._notifications = PopNotifications(self._instance, self.group, self._address, self._tasks)
        self._acknowledgements = Acknowledgements(self._instance, self.group)
        self._send_back = SendBack(self._instance, self.group, self.settings.max_reconsume_times)

    async def _begin(self) -> None:
        await self._meet_brokers()

    # ── receiving ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def receive(
        self, max_messages: int = 16, invisible_seconds: float = 30.0, wait_seconds: float = 10.0
    ) -> list[PoppedMessage]:
        """Up to `max_messages` of any queue, as soon as there is one; none when the time is over.

        They are hidden from the group for `invisible_seconds`. Raises NoRoute, BrokerAbsent, BrokerRefused,
        PopNotOffered or RemotingError when no broker can be asked.
        """
        self._check_running()
        if not 1 <= max_messages <= MAX_MESSAGES:
            raise WrongUse(f"max_messages is {max_messages}: brokers hand out 1 to {MAX_MESSAGES} at once")
        if invisible_seconds < 0.001 or wait_seconds < 0:
            raise WrongUse(
                f"invisible_seconds is {invisible_seconds} and wait_seconds {wait_seconds}: the first must be at least "
                "a millisecond, the second not negative"
            )
        limits = _PopLimits(max_messages, invisible_seconds)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_seconds
        ready: Sequence[TopicAtBroker] = ()
        pause = _FIRST_PAUSE
        while True:
            targets = await self._topics_at_brokers()
            messages = await self._pop_each(ready or self._beginning_elsewhere(targets), limits)
            left = deadline - loop.time()
            if messages or left <= 0 or self._state is not State.RUNNING:
                return messages
            if ready:
                await asyncio.sleep(min(pause, left))
                pause = min(2 * pause, _LONGEST_PAUSE)
            ready = await self._notifications.wait(targets, max(deadline - loop.time(), 0.0))
            if self._state is not State.RUNNING:
                return []

    async def _topics_at_brokers(self) -> list[TopicAtBroker]:
        """Every topic at every broker that has it and a master."""
        targets: list[TopicAtBroker] = []
        problem: ClientError | None = None
        for topic in self._subscriptions:
            try:
                route = await self._instance.route(topic)
            except NoRoute as error:
                problem = error
                continue
            names = sorted({self._instance.leader(queue) for queue in route.read_queues})
            targets += [TopicAtBroker(topic, name) for name in names if self._instance.brokers.master(name) is not None]
            if names and not targets:
                problem = BrokerAbsent(names[0], topic)
        if not targets:
            topics = ", ".join(self._subscriptions)
            raise problem or NoRoute(topics, str(self._instance.names), "no broker lets it be read")
        return targets

    def _beginning_elsewhere(self, targets: list[TopicAtBroker]) -> list[TopicAtBroker]:
        """So that none has to wait until all others are empty."""
        self._rounds += 1
        start = self._rounds % len(targets)
        return targets[start:] + targets[:start]

    async def _pop_each(self, targets: Sequence[TopicAtBroker], limits: _PopLimits) -> list[PoppedMessage]:
        """What brokers have at once. An error is raised when nobody could be asked."""
        found: list[PoppedMessage] = []
        failures: list[ClientError | RemotingError | DataError] = []
        for target in targets:
            try:
                found += await self._pop(target, limits._replace(most=limits.most - len(found)))
            except (ClientError, RemotingError, DataError) as error:
                failures.append(error)
                if self._state is State.RUNNING:
                    _logger.warning("nothing could be popped target=%s reason=%s", target, error)
            if len(found) >= limits.most:
                break
        if len(failures) == len(targets) and self._state is State.RUNNING:
            raise failures[0]
        if found and self._tracer is not None:
            self._tracer.polled(found)
        return found

    async def _pop(self, target: TopicAtBroker, limits: _PopLimits) -> list[PoppedMessage]:
        subscription = self._subscriptions[target.topic]
        from_first = self.settings.consume_from is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        request = PopMessage(
            consumer_group=self.group,
            topic=target.topic,
            queue_id=ANY_QUEUE,
            max_msg_nums=limits.most,
            poll_time=0,
            invisible_time=round(limits.invisible_seconds * 1000),
            born_time=0,  # the broker takes its own time: clocks need not agree
            init_mode=_FROM_MIN if from_first else _FROM_MAX,
            exp_type=subscription.expression_type,
            exp=subscription.expression,
            order=False,
            broker_name=target.broker_name,
        )
        address = await self._address(target)
        began = self._instance.clock.monotonic()
        try:
            reply = await self._instance.remoting.call(
                address, request, timeout_seconds=_POP_SECONDS, accepted=_POP_CODES
            )
        except RequestNotSupported as error:
            raise PopNotOffered(address, error) from error
        except RequestError as error:
            raise BrokerRefused(address, error, f"a pop of {target.topic}") from error
        if reply.code != ResponseCode.SUCCESS:
            return []
        visible_at = began + limits.invisible_seconds
        messages = popped_messages(reply.body, reply.header, target.topic, self.group, target.broker_name, visible_at)
        for message in messages:
            message.topic = unwrap(self._namespace, message.topic)
        return await self._sorted_out(messages, subscription)

    async def _sorted_out(self, messages: list[PoppedMessage], subscription: SubscriptionData) -> list[PoppedMessage]:
        """Without what nobody wanted, and without what has failed too often: nobody else would end their coming."""
        most = self.settings.max_reconsume_times
        # Brokers compare hashes of tags: some only have the same hash.
        foreign = [each for each in messages if subscription.tags and each.tags not in subscription.tags]
        hopeless = [each for each in messages if each not in foreign and 0 <= most < each.reconsume_times]
        if not foreign and not hopeless:
            return messages
        try:
            await self._acknowledgements.acknowledge(foreign)
            for message in hopeless:
                await self._bury(message, None)
        except SkyrocketError as error:  # they come again, and then this is done again
            _logger.warning("messages that are not handed out could not be put away reason=%s", error)
        return [each for each in messages if each not in foreign and each not in hopeless]

    async def _address(self, target: TopicAtBroker) -> str:
        return await self._instance.master_of(MessageQueue(target.topic, target.broker_name, 0))

    # ── what becomes of messages ─────────────────────────────────────────────────────────────────────────────────────

    async def ack(self, *messages: PoppedMessage) -> None:
        """They are done; several of one broker travel in one request.

        Raises ReceiptExpired for those that come again, after the others were acknowledged; BrokerRefused,
        BrokerAbsent or RemotingError when a broker did not take it: then it may be tried again.
        """
        self._check_running()
        await self._acknowledgements.acknowledge(messages)

    async def change_invisible(self, message: PoppedMessage, seconds: float) -> None:
        """Hide it for `seconds` from now: longer while work goes on, 0 to have it come again at once.

        Raises ReceiptExpired, BrokerRefused, BrokerAbsent or RemotingError.
        """
        self._check_running()
        if seconds < 0:
            raise WrongUse(f"a message cannot be hidden for {seconds} seconds: give 0 or more")
        await self._acknowledgements.hide(message, seconds)

    async def to_dead_letters(self, message: PoppedMessage, cause: Exception | None = None) -> None:
        """Move it to %DLQ%group, with `cause` in its properties. Raises ReceiptExpired or NotDeadLetter."""
        self._check_running()
        await self._bury(message, cause)

    async def _bury(self, message: PoppedMessage, cause: Exception | None) -> None:
        self._acknowledgements.check(message)
        await self._await_retry_topic()
        self._send_back.note(message, cause)
        if not await self._send_back.give_up(message, cause):
            raise NotDeadLetter(message.message_id, self.group)
        await self._acknowledgements.acknowledge([message])

    async def _await_retry_topic(self) -> None:
        """Dead letters go that way when they are to say why; a new group's is made by its first heartbeat."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _RETRY_TOPIC_SECONDS
        while True:
            try:
                await self._instance.route(retry_topic(self.group))
                return
            except NoRoute:
                if loop.time() >= deadline:
                    return  # brokers take the message back without it, and bury it themselves
            await asyncio.sleep(_ASK_AGAIN)
