"""Brings one encoded message to a broker: choose a queue, ask, judge the answer, try another broker.

A message is tried again when the connection fails or the broker says so with a code that another one may not give,
as long as attempts and time are left. The unique key stays the same, so receivers can tell duplicates.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from skyrocket.client.core.errors import (
    Attempt,
    BrokerAbsent,
    NoRoute,
    NotRunning,
    NotWritable,
    RouteTooWide,
    SendFailed,
    SendTimeout,
    is_about_account,
)
from skyrocket.client.core.hooks import SendContext, SendHook, run_hooks
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.names import unwrap
from skyrocket.client.core.routes import Route, writing_state
from skyrocket.client.core.send_receipt import STATUS_OF_CODE, SendReceipt, SendStatus
from skyrocket.client.sending.broker_faults import BrokerFaults
from skyrocket.client.sending.message_encoding import SEND, EncodedMessage
from skyrocket.client.sending.topic_publish_info import TopicPublishInfo
from skyrocket.format.sys_flag import TRANSACTION_PREPARED
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import ONEWAY_FLAG, RemotingCommand
from skyrocket.protocol.errors import RequestError, error_of
from skyrocket.remoting.addresses import vip
from skyrocket.remoting.errors import CallTimeout, ConnectFailed, RemotingClosed, RemotingError, TooManyCalls

RETRYABLE_CODES: Final = frozenset(
    int(code)
    for code in (
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
        ResponseCode.GO_AWAY,
    )
)
_NO_MASTER_CODES: Final = frozenset({int(ResponseCode.SYSTEM_BUSY), int(ResponseCode.SERVICE_NOT_AVAILABLE)})
_GO_AWAY: Final = int(ResponseCode.GO_AWAY)
_PAUSE_ON_SAME_BROKER: Final = 0.05
_LONGEST_PAUSE: Final = 5.0


class SendRules(NamedTuple):
    """What of a producer's settings touches the way of a message."""

    retries: int = 2
    timeout_per_attempt: float | None = None
    retry_another_broker_when_not_store_ok: bool = False
    send_latency_fault_enable: bool = False
    minimum_latency: bool = False
    template_topic: str = "TBW102"
    template_queues: int = 4
    retryable_codes: frozenset[int] = RETRYABLE_CODES


class RetryingSender:
    """The sends of one group over one client."""

    def __init__(self, instance: ClientInstance, group: str, rules: SendRules, hooks: Sequence[SendHook] = ()) -> None:
        self.faults = BrokerFaults()
        self.topics: dict[str, TopicPublishInfo] = {}
        self._instance = instance
        self._remoting = instance.remoting
        self._complete = instance.complete
        self._master = instance.brokers.master
        self._clock = instance.clock
        self._group = group
        self._rules = rules
        self._hooks = hooks
        self._vip = instance.settings.vip_channel
        self._chooses_plainly = not rules.send_latency_fault_enable and not rules.minimum_latency
        # Whether nobody wants to see or change single requests: then their first attempt can go the short way.
        self.is_plain = (
            self._chooses_plainly
            and not hooks
            and not self._vip
            and rules.timeout_per_attempt is None
            and not rules.retry_another_broker_when_not_store_ok
            and instance.completes_nothing_but_language
        )

    # ── topics ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def publish_info(self, topic: str) -> TopicPublishInfo:
        """The queues of a topic; raises NoRoute or NoNameServer."""
        known = self.topics.get(topic)
        if known is not None:
            return known
        try:
            route = await self._instance.route(topic, fresh=topic in self._instance.routes)
        except RouteTooWide:
            raise
        except NoRoute:
            template = await self._instance.template_route(topic, self._rules.template_queues)
            return self._publish(topic, template, is_guess=True)
        return self._publish(topic, route)

    def _publish(self, topic: str, route: Route, *, is_guess: bool = False) -> TopicPublishInfo:
        if not route.write_queues:
            self.topics.pop(topic, None)
            shown = unwrap(self._instance.namespace, topic)
            raise NotWritable(shown, str(self._instance.names), writing_state(route.data))
        known = self.topics.get(topic)
        if known is not None and known.queues == route.write_queues and known.is_guess == is_guess:
            return known
        made = self.topics[topic] = TopicPublishInfo(
            self._group,
            topic,
            route.write_queues,
            template_topic=self._rules.template_topic,
            template_queues=self._rules.template_queues,
            unit_mode=self._instance.settings.unit_mode,
            is_guess=is_guess,
        )
        return made

    def route_changed(self, topic: str, route: Route) -> None:
        """Use other queues from now on; without any the next send says so."""
        if topic in self.topics:
            if route.write_queues:
                self._publish(topic, route)
            else:
                del self.topics[topic]

    # ── sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def ask_shortly(
        self, topic: str, body: bytes, properties: str, now_ms: int, seconds: float
    ) -> "tuple[MessageQueue, asyncio.Future[RemotingCommand]] | None":
        """The first attempt of a plain message, for a sender that `is_plain`, without any layer that could wait.

        None when route or connection are not there: then `send` does it. This is done for every message.
        """
        info = self.topics.get(topic)
        if info is None:
            return None
        index = info.next()
        answer = self.ask_plainly(info, index, body, properties, now_ms, seconds)
        if answer is None:
            info.take_back()
            return None
        return info.queues[index], answer

    def ask_plainly(
        self, info: TopicPublishInfo, index: int, body: bytes, properties: str, now_ms: int, seconds: float
    ) -> "asyncio.Future[RemotingCommand] | None":
        """The same to a chosen queue; None without a connection."""
        connection = self._remoting.connection(self._master(info.queues[index].broker_name) or "")
        if connection is None or not connection.is_open:
            return None
        opaque = connection.next_call()
        frame = info.template(index).frame(opaque, now_ms, properties, body)
        return connection.ask_encoded(opaque, SEND, frame, seconds)

    def ask_together(
        self, info: TopicPublishInfo, index: int, batch: EncodedMessage, now_ms: int, seconds: float
    ) -> "asyncio.Future[RemotingCommand] | None":
        """The first attempt of several plain messages in one request."""
        address = self._master(info.queues[index].broker_name) or ""
        connection = self._remoting.connection(address)
        if connection is None or not connection.is_open:
            return None
        command = info.command(index, batch, now_ms)
        self._complete(address, command)
        return connection.ask(command, seconds)

    async def go_on(
        self, out: EncodedMessage, timeout: float, queue: MessageQueue, seconds: float, error: Exception
    ) -> SendReceipt:
        """The other attempts, after `ask_shortly` came to an error."""
        address = self._master(queue.broker_name) or ""
        if isinstance(error, CallTimeout):
            connection = self._remoting.connection(address)
            if connection is not None:
                connection.close()  # RocketMQ: it is not trusted any more
        if isinstance(error, RequestError) and int(error.code) == _GO_AWAY:
            return await self.send(
                out, max(timeout - seconds, 0.0)
            )  # nothing failed: the broker wants a new connection
        first = Attempt(queue.broker_name, address, seconds, error)
        return await self.send(out, timeout, first=first)

    async def send(
        self,
        out: EncodedMessage,
        timeout: float,
        queue: MessageQueue | None = None,
        *,
        first: Attempt | None = None,
        retries: int | None = None,
    ) -> SendReceipt:
        """Until a broker confirms it; raises SendFailed, or what a look for the route raises.

        `first` is an attempt that failed already; its time counts. `retries` counts instead of what the rules say.
        """
        clock, rules = self._clock, self._rules
        retries = rules.retries if retries is None else retries
        began = clock.monotonic()
        attempts: list[Attempt] = []
        weak: SendReceipt | None = None
        failed_broker: str | None = None
        if first is not None:
            began -= first.seconds
            attempts.append(first)
            failed_broker = first.broker_name
            self._doubt(out.topic, first.error)
        deadline = began + timeout
        if first is not None and not self._may_retry(first.error, fixed=False):
            raise self._failure(out, attempts, began, deadline)
        for number in range(len(attempts) + 1, retries + 2):
            info = self.topics.get(out.topic)
            if info is None:
                info = await self._publish_info_in_time(out.topic, deadline, timeout, attempts)
            now = clock.monotonic()
            if number > 1 and now >= deadline:
                break
            if queue is not None:
                if out.is_numbered and attempts and info.index_of(queue) is None:
                    break  # its broker has left: what the attempts met tells whether it may have the message
                info, index = await self._place_of(info, queue, max(deadline - now, 0.01))
            else:
                index = self._choose(info, now, failed_broker)
            chosen = info.queues[index]
            if chosen.broker_name == failed_broker:
                await asyncio.sleep(_pause(attempts, number, retries, deadline - now))
                now = clock.monotonic()
            address = ""
            try:
                address = self._master(chosen.broker_name) or await self._instance.master_of(chosen)
                seconds = deadline - now
                if rules.timeout_per_attempt is not None and number <= retries:
                    seconds = min(seconds, rules.timeout_per_attempt)
                command = info.command(index, out, clock.now_ms())
                ask = self._hooked if self._hooks else self._ask
                receipt = await ask(address, command, seconds, out, chosen, number)
            except (RequestError, RemotingError, BrokerAbsent) as error:
                ended = clock.monotonic()
                attempts.append(Attempt(chosen.broker_name, address, ended - now, error))
                self._doubt(out.topic, error)
                self._judge(chosen.broker_name, error, ended)
                failed_broker = chosen.broker_name
                if not self._may_retry(error, fixed=queue is not None and not out.is_numbered):
                    break
                continue
            if not self._chooses_plainly:
                ended = clock.monotonic()
                self.faults.succeeded(chosen.broker_name, ended - now, ended)
            if receipt.status is SendStatus.SEND_OK or not rules.retry_another_broker_when_not_store_ok:
                return receipt
            weak, failed_broker = receipt, chosen.broker_name
        if weak is not None:
            return weak
        raise self._failure(out, attempts, began, deadline)

    async def _publish_info_in_time(
        self, topic: str, deadline: float, timeout: float, attempts: list[Attempt]
    ) -> TopicPublishInfo:
        left = max(deadline - self._clock.monotonic(), 0.01)
        try:
            return await asyncio.wait_for(self.publish_info(topic), left)
        except TimeoutError:
            raise SendTimeout(topic, attempts, timeout, "no name server told its route in time") from None

    async def _ask(
        self,
        address: str,
        command: RemotingCommand,
        seconds: float,
        out: EncodedMessage,
        queue: MessageQueue,
        number: int,
    ) -> SendReceipt:
        if self._vip:
            address = vip(address)
        connection = self._remoting.connection(address)
        if connection is not None and connection.is_open:
            # The usual case by the shortest way: this is done for every message.
            self._complete(address, command)
            try:
                answer = await connection.invoke(command, seconds)
            except CallTimeout:
                connection.close()  # RocketMQ: it is not trusted any more
                raise
            if answer.code == _GO_AWAY:
                answer = await self._remoting.invoke(address, command, seconds)
        else:
            answer = await self._remoting.invoke(address, command, seconds)
        return self.receipt(answer, out.unique_key, queue, number)

    def receipt(self, answer: RemotingCommand, unique_key: str, queue: MessageQueue, number: int) -> SendReceipt:
        """What a broker's answer says; raises the RequestError of a refusal."""
        status = STATUS_OF_CODE.get(answer.code)
        fields = answer.ext_fields
        if status is None or not fields:
            raise error_of(answer.code, answer.remark, fields)
        get = fields.get
        queue_id = int(fields["queueId"])
        if queue_id != queue.queue_id or self._instance.namespace:
            queue = MessageQueue(unwrap(self._instance.namespace, queue.topic), queue.broker_name, queue_id)
        return SendReceipt(
            status,
            unique_key,
            fields["msgId"],
            queue,
            int(fields["queueOffset"]),
            get("transactionId"),
            get("MSG_REGION"),
            get("TRACE_ON") != "false",
            get("recallHandle"),
            number,
            int(replicas) if (replicas := get("replicaCount")) is not None else None,
        )

    async def _hooked(
        self,
        address: str,
        command: RemotingCommand,
        seconds: float,
        out: EncodedMessage,
        queue: MessageQueue,
        number: int,
    ) -> SendReceipt:
        context = SendContext(
            self._group, out.message, queue, address, out.unique_key, len(out.unique_keys) or 1, out.members
        )
        context.message_ids = out.unique_keys
        context.is_half = out.sys_flag & TRANSACTION_PREPARED != 0
        for hook in self._hooks:
            hook.allow_send(context)
        run_hooks((hook.before_send for hook in self._hooks), context)
        try:
            context.receipt = await self._ask(address, command, seconds, out, queue, number)
        except Exception as error:
            context.error = error
            raise
        finally:
            run_hooks((hook.after_send for hook in reversed(self._hooks)), context)
        return context.receipt

    async def send_oneway(self, out: EncodedMessage, timeout: float, queue: MessageQueue | None = None) -> None:
        """Hand it to the connection; nobody says whether it arrived. Raises SendFailed when it could not leave."""
        began = self._clock.monotonic()
        info = self.topics.get(out.topic) or await self.publish_info(out.topic)
        if queue is None:
            index = info.next()
        else:
            info, index = await self._place_of(info, queue, timeout)
        chosen = info.queues[index]
        address = self._master(chosen.broker_name) or await self._instance.master_of(chosen)
        command = info.command(index, out, self._clock.now_ms(), ONEWAY_FLAG)
        try:
            await self._remoting.tell(vip(address) if self._vip else address, command, timeout)
        except RemotingError as error:
            seconds = self._clock.monotonic() - began
            raise SendFailed(out.topic, [Attempt(chosen.broker_name, address, seconds, error)], seconds) from error

    # ── decisions ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _place_of(
        self, info: TopicPublishInfo, queue: MessageQueue, seconds: float
    ) -> tuple[TopicPublishInfo, int]:
        """Where it is among the topic's queues: of a new route when it is none of them, for its broker may be back.

        Raises NoRoute, never at once: who tries again and again would leave his event loop no turn to learn of it.
        """
        index = info.index_of(queue)
        if index is None:
            with contextlib.suppress(NoRoute, TimeoutError):
                await asyncio.wait_for(self._instance.route(info.topic, fresh=True), seconds)
                info = await self.publish_info(info.topic)
            index = info.index_of(queue)
        if index is None:
            raise NoRoute(
                info.topic,
                str(self._instance.names),
                f"queue {queue.queue_id} of broker {queue.broker_name} is none of its {len(info.queues)}",
            )
        return info, index

    def _choose(self, info: TopicPublishInfo, now: float, failed_broker: str | None) -> int:
        if self._chooses_plainly:
            return info.other_than(failed_broker)
        if self._rules.minimum_latency:
            return info.quickest(self.faults, now, failed_broker)
        return info.avoiding(self.faults, now, failed_broker)

    def _doubt(self, topic: str, error: Exception) -> None:
        """A broker that cannot be reached, or says that it takes no messages, may have lost its place to another.

        Raises NotRunning when nobody could be reached because this producer ends.
        """
        if isinstance(error, RemotingClosed):
            raise NotRunning(f"producer {self._group}", "stopped") from error
        is_refused = isinstance(error, RequestError) and int(error.code) in _NO_MASTER_CODES
        if is_refused or isinstance(error, RemotingError):
            self._instance.doubt(topic)

    def _judge(self, broker_name: str, error: Exception, now: float) -> None:
        if not self._chooses_plainly and not isinstance(error, BrokerAbsent):
            self.faults.failed(broker_name, now, reachable=not isinstance(error, RemotingError))

    def is_final(self, error: RequestError) -> bool:
        """Whether another broker would refuse the same."""
        return not self._may_retry(error, fixed=False)

    def _may_retry(self, error: Exception, *, fixed: bool) -> bool:
        if fixed:  # RocketMQ: one attempt; but what was never sent cannot be doubled
            return isinstance(error, ConnectFailed)
        if isinstance(error, RequestError):
            return int(error.code) in self._rules.retryable_codes and not is_about_account(error)
        return not isinstance(error, TooManyCalls)

    def _failure(self, out: EncodedMessage, attempts: list[Attempt], began: float, deadline: float) -> SendFailed:
        now = self._clock.monotonic()
        timed_out = now >= deadline or bool(attempts and isinstance(attempts[-1].error, CallTimeout))
        kind = SendTimeout if timed_out else SendFailed
        return kind(unwrap(self._instance.namespace, out.topic), attempts, now - began)


def _pause(attempts: Sequence[Attempt], number: int, retries: int, left: float) -> float:
    """Before the same broker is asked again: short, but attempts to reach one that is away last for the whole time."""
    shortly = _PAUSE_ON_SAME_BROKER * (number - 1)
    if attempts and isinstance(attempts[-1].error, ConnectFailed):
        shortly = max(shortly, min(left / (retries + 3 - number), _LONGEST_PAUSE))
    return min(shortly, max(left, 0.0))
