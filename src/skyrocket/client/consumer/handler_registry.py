"""The functions of one consumer: checked and made callable when registered, found by topic when messages come."""

from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any

from skyrocket.client.consumer.answers import Answering, answer_of
from skyrocket.client.consumer.handlers import Handler, HandlerWrapper, Run
from skyrocket.client.consumer.retry_policy import RetryPolicy
from skyrocket.client.consumer.signature import Signature, name_of
from skyrocket.client.consumer.subscription import Filter
from skyrocket.client.consumer.topic_handlers import TopicHandlers, wanted_of
from skyrocket.client.core.errors import IllegalSubscription
from skyrocket.client.core.hooks import ConsumeContext
from skyrocket.client.core.middleware import Middleware, through
from skyrocket.client.core.names import check_topic

if TYPE_CHECKING:
    from skyrocket.client.producer.producer import Producer


class HandlerRegistry:
    """By topic without namespace."""

    def __init__(
        self,
        group: str,
        executor: Callable[[], Executor],
        *,
        commits: bool,
        producer: "Callable[[], Awaitable[Producer]]",
    ) -> None:
        self._group = group
        self._executor = executor
        self._commits = commits
        self._producer = producer  # for results of handlers
        self.topics: dict[str, TopicHandlers] = {}
        self.callers: dict[str, Handler | TopicHandlers] = {}  # what is called with the messages of a topic
        self.middleware: list[Middleware] = []
        self._has_begun = False

    def add(
        self,
        topic: str,
        function: Callable[..., Any],
        tags: Filter,
        sql: str | None,
        *,
        batch: bool,
        once: HandlerWrapper | None,
        retry: RetryPolicy,
    ) -> TopicHandlers:
        """One more handler; all of its topic. Raises IllegalSubscription or IllegalName."""
        check_topic(topic)
        if not callable(function):
            raise IllegalSubscription(f"the handler for topic {topic} is {function!r}: give a function")
        answer = answer_of(function)
        if batch and (once is not None or answer is not None):
            what = "once=" if once is not None else "@publish, @reply"
            raise IllegalSubscription(f"{what} and batch= exclude each other (topic {topic}): each key is one call")
        if not isinstance(retry, RetryPolicy):
            raise IllegalSubscription(f"retry={retry!r} (topic {topic}): give a RetryPolicy(delays=…, retries=…)")
        called = Signature(function, takes_list=batch, skip=once is not None, answers=answer is not None).adapted()
        handler = Handler(
            called if once is None else once.wrap(called),
            self._executor,
            takes_list=batch,
            commits=self._commits,
            name=name_of(function),
            retry=retry,
        )
        handler.answering = None if answer is None else Answering(answer, self._producer)
        handlers = self.topics.get(topic) or TopicHandlers(topic)
        handlers.add(wanted_of(topic, tags, sql), handler)
        self.topics[topic], self.callers[topic] = handlers, handlers.caller
        if self._has_begun:
            self._surround(handler)
        return handlers

    def remove(self, topic: str) -> None:
        """All handlers of a topic."""
        self.topics.pop(topic, None)
        self.callers.pop(topic, None)

    def begin(self) -> None:
        """Messages will come: put middleware around all handlers."""
        self._has_begun = True
        for handlers in self.topics.values():
            for handler in handlers.handlers:
                self._surround(handler)

    def _surround(self, handler: Handler) -> None:
        around = [each.consume for each in self.middleware]
        if handler.answering is not None:
            around.append(handler.answering.consume)  # innermost: it takes the result away
        if not around:
            return

        def surrounded(run: Run) -> Run:
            def called(argument: Any) -> Awaitable[Any]:
                messages = argument if isinstance(argument, list) else [argument]
                context = ConsumeContext(self._group, messages[0].queue, messages, handler=handler.name)
                return through(around, context, partial(run, argument))()

            return called

        handler.surround(surrounded)
