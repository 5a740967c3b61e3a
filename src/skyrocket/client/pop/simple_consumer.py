"""SimpleConsumer: receive messages, and say of each when it is done.

    async with SimpleConsumer("Mail", "127.0.0.1:9876", subscription={"Orders": "*"}) as consumer:
        for message in await consumer.receive(max_messages=16, invisible_seconds=30):
            await consumer.ack(message)

It pops: no queue is assigned to anybody, so there may be more consumers than queues, and a slow one holds up nobody.
What is not acknowledged within its invisible time comes again, with `reconsume_times` one higher. Brokers keep all
progress.

    receive ─▶ one short pop at every place in turn, beginning at another place each time ─▶ messages
                 │ nothing anywhere
                 └─▶ wait for notifications of all brokers (pop_notifications) ─▶ pop where there are some
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from skyrocket.client.consumer.send_back import DEFAULT_MAX_TIMES, SendBack
from skyrocket.client.consumer.start_position import ConsumeFromWhere, MessageModel
from skyrocket.client.consumer.subscription import Filter, subscription_of
from skyrocket.client.consumer.subscription_check import check_filters
from skyrocket.client.core.credentials import Acl
from skyrocket.client.core.errors import (
    AlreadyStarted,
    BrokerAbsent,
    BrokerRefused,
    ClientError,
    IllegalSubscription,
    NoRoute,
    NotDeadLetter,
    PopNotOffered,
    WrongUse,
)
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.lifecycle import Startable, State, not_running
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.names import check_group, check_topic, retry_topic, unwrap, wrap
from skyrocket.client.core.settings import ClientSettings, settings_of
from skyrocket.client.pop.acknowledgements import Acknowledgements
from skyrocket.client.pop.pop_notifications import ANY_QUEUE, PopNotifications, TopicAtBroker
from skyrocket.client.pop.popped_message import PoppedMessage, popped_messages
from skyrocket.client.tracing.optional_tracer import CONSUME, tracer_of
from skyrocket.errors import DataError, SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.heartbeat import ConsumerData
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo, DirectConsumption
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import RequestError, RequestNotSupported, SystemFailure
from skyrocket.protocol.requests.pop import PopMessage
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.tasks import TaskSet

if TYPE_CHECKING:
    from skyrocket.client.tracing.trace import Tracer

_logger = logging.getLogger(__name__)

MAX_MESSAGES: Final = 32  # RocketMQ's brokers refuse more
_POP_TYPE: Final = "CONSUME_POP"
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
    max_reconsume_times: int = DEFAULT_MAX_TIMES

    def __post_init__(self) -> None:
        if self.consume_from is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            raise WrongUse("a pop begins at the first or the last message: reset the group with Admin.reset_offsets")


class _PopLimits(NamedTuple):
    """How messages are asked for."""

    most: int
    invisible_seconds: float


class SimpleConsumer(Startable):
    """One of any number of consumers of a group."""

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
        check_group(group)
        if not subscription:
            raise IllegalSubscription("the subscription is empty: give at least one topic, as {'Orders': '*'}")
        for topic in subscription:
            check_topic(topic)
        self.settings = settings or SimpleConsumerSettings()
        self._client = settings_of(client, name_servers, credentials)
        self._namespace = self._client.effective_namespace()
        self.group = wrap(self._namespace, group)
        self._wanted = {wrap(self._namespace, topic): wanted for topic, wanted in subscription.items()}
        self._subscriptions = {topic: subscription_of(topic, wanted, 0) for topic, wanted in self._wanted.items()}
        self._state = State.NEW
        self._turn = 0  # where the next look around begins
        self._tasks = TaskSet()
        self._started_ms = 0
        self._tracer: Tracer | None = None
        self._instance: ClientInstance
        self._notifications: PopNotifications
        self._acknowledgements: Acknowledgements
        self._send_back: SendBack

    def __repr__(self) -> str:
        return f"simple consumer {self.group}"

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Raises AlreadyStarted, GroupInUse, NoNameServer, or BrokerRefused for a filter that a broker cannot read."""
        if self._state is not State.NEW:
            raise AlreadyStarted(str(self), self._state.value)
        self._instance = instance = await ClientInstance.acquire(self._client)
        now_ms = self._started_ms = instance.clock.now_ms()
        self._subscriptions = {topic: subscription_of(topic, wanted, now_ms) for topic, wanted in self._wanted.items()}
        self._notifications = PopNotifications(instance, self.group, self._address, self._tasks)
        self._acknowledgements = Acknowledgements(instance, self.group)
        self._send_back = SendBack(instance, self.group, self.settings.max_reconsume_times)
        try:
            instance.join_consumer(self)
        except BaseException:
            await instance.release()
            raise
        self._state = State.RUNNING
        try:
            await self._introduce()
        except BaseException:
            await self.stop()
            raise
        self._tracer = tracer_of(instance, self._client.trace, self.group, CONSUME)
        if self._tracer is not None:
            self._tracer.start()

    async def _introduce(self) -> None:
        for topic in self._subscriptions:
            try:
                await self._instance.route(topic)
            except NoRoute as error:
                _logger.warning("a subscribed topic is not there yet: %s", error)
        await check_filters(self._instance, self.group, self._subscriptions.values())
        await self._instance.beat_all()

    async def stop(self) -> None:
        """Say goodbye; a `receive` that waits ends with nothing. Messages in hand come again. May be called again."""
        if self._state is not State.RUNNING:
            return
        self._state = State.STOPPED
        await self._tasks.cancel()
        try:
            if self._tracer is not None:
                await self._tracer.close()
            await self._instance.leave_consumer(self.group)
        finally:
            await self._instance.release()

    def _check_running(self) -> None:
        if self._state is not State.RUNNING:
            raise not_running(str(self), self._state)

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
            places = await self._places()
            messages = await self._look_around(ready or self._from_another_place(places), limits)
            left = deadline - loop.time()
            if messages or left <= 0 or self._state is not State.RUNNING:
                return messages
            if ready:
                await asyncio.sleep(min(pause, left))
                pause = min(2 * pause, _LONGEST_PAUSE)
            ready = await self._notifications.wait(places, max(deadline - loop.time(), 0.0))
            if self._state is not State.RUNNING:
                return []

    async def _places(self) -> list[TopicAtBroker]:
        """Every topic at every broker that has it and a master."""
        places: list[TopicAtBroker] = []
        problem: ClientError | None = None
        for topic in self._subscriptions:
            try:
                route = await self._instance.route(topic)
            except NoRoute as error:
                problem = error
                continue
            names = sorted({self._instance.leader(queue) for queue in route.read_queues})
            places += [TopicAtBroker(topic, name) for name in names if self._instance.brokers.master(name) is not None]
            if names and not places:
                problem = BrokerAbsent(names[0], topic)
        if not places:
            topics = ", ".join(self._subscriptions)
            raise problem or NoRoute(topics, str(self._instance.names), "no broker lets it be read")
        return places

    def _from_another_place(self, places: list[TopicAtBroker]) -> list[TopicAtBroker]:
        """So that none has to wait until all others are empty."""
        self._turn += 1
        start = self._turn % len(places)
        return places[start:] + places[:start]

    async def _look_around(self, places: Sequence[TopicAtBroker], limits: _PopLimits) -> list[PoppedMessage]:
        """What places have at once. An error is raised when nobody could be asked."""
        found: list[PoppedMessage] = []
        failures: list[ClientError | RemotingError | DataError] = []
        for place in places:
            try:
                found += await self._pop(place, limits._replace(most=limits.most - len(found)))
            except (ClientError, RemotingError, DataError) as error:
                failures.append(error)
                if self._state is State.RUNNING:
                    _logger.warning("nothing could be popped place=%s reason=%s", place, error)
            if len(found) >= limits.most:
                break
        if len(failures) == len(places) and self._state is State.RUNNING:
            raise failures[0]
        if found and self._tracer is not None:
            self._tracer.polled(found)
        return found

    async def _pop(self, place: TopicAtBroker, limits: _PopLimits) -> list[PoppedMessage]:
        subscription = self._subscriptions[place.topic]
        from_first = self.settings.consume_from is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        request = PopMessage(
            consumer_group=self.group,
            topic=place.topic,
            queue_id=ANY_QUEUE,
            max_msg_nums=limits.most,
            poll_time=0,
            invisible_time=round(limits.invisible_seconds * 1000),
            born_time=0,  # the broker takes its own time: clocks need not agree
            init_mode=_FROM_MIN if from_first else _FROM_MAX,
            exp_type=subscription.expression_type,
            exp=subscription.expression,
            order=False,
            broker_name=place.broker_name,
        )
        address = await self._address(place)
        began = self._instance.clock.monotonic()
        try:
            reply = await self._instance.remoting.call(
                address, request, timeout_seconds=_POP_SECONDS, accepted=_POP_CODES
            )
        except RequestNotSupported as error:
            raise PopNotOffered(address, error) from error
        except RequestError as error:
            raise BrokerRefused(address, error, f"a pop of {place.topic}") from error
        if reply.code != ResponseCode.SUCCESS:
            return []
        visible_at = began + limits.invisible_seconds
        messages = popped_messages(reply.body, reply.header, place.topic, self.group, place.broker_name, visible_at)
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

    async def _address(self, place: TopicAtBroker) -> str:
        return await self._instance.master_of(MessageQueue(place.topic, place.broker_name, 0))

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

    @property
    def dropped_traces(self) -> int:
        """Receives of which no trace was left."""
        return 0 if self._tracer is None else self._tracer.dispatcher.dropped

    # ── what brokers ask ─────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def topics(self) -> list[str]:
        return list(self._subscriptions)

    def forked(self) -> None:
        self._state = State.FORKED

    def heartbeat_data(self) -> ConsumerData:
        return ConsumerData(
            self.group,
            _POP_TYPE,
            MessageModel.CLUSTERING.value,
            self.settings.consume_from.value,
            tuple(self._subscriptions.values()),
            self._client.unit_mode,
        )

    def rebalance_soon(self) -> None:
        """Nothing is assigned, so nothing moves."""

    async def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Offsets are the broker's: it has reset them already."""

    def offsets_of(self, topic: str) -> dict[MessageQueue, int]:
        return {}

    def running_info(self, with_stacks: bool) -> ConsumerRunningInfo:
        properties = {
            "PROP_CONSUMER_START_TIMESTAMP": str(self._started_ms),
            "PROP_NAMESERVER_ADDR": "".join(f"{address};" for address in self._instance.names.addresses),
            "PROP_CONSUME_TYPE": _POP_TYPE,
        }
        ordered = tuple(sorted(self._subscriptions.values(), key=lambda each: each.topic))
        return ConsumerRunningInfo(properties=properties, subscriptions=ordered, queues={}, status={})

    async def consume_directly(self, message: ReceivedMessage) -> DirectConsumption:
        raise SystemFailure(f"group {self.group} receives its messages: it has no handler to call")
