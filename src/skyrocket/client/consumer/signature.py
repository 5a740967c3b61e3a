"""What a handler takes, read once when it is registered; a message costs no look at a signature.

    async def f(message: ReceivedMessage)                     the message; also without an annotation
    async def f(body: Order)                                  its body, decoded (bodies/codecs.py)
    async def f(message: ReceivedMessage, body: Order)        both
    async def f(body: Order, attempt: int, group: str, logger: logging.Logger)
    async def f(body: Order, session: Annotated[Session, Depends(session)])
    async def f(messages: list[ReceivedMessage])              batch=True; or bodies: list[Order]

A function that takes the message alone is called as it is. Anything else becomes an adapter of the message.
"""

import contextlib
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Never, NoReturn, Union, get_args, get_origin

from skyrocket.client.consumer.depends import Dependency, Made
from skyrocket.client.consumer.handlers import ConsumeStatus, UndecodableBody, current_group
from skyrocket.client.core.errors import IllegalSubscription
from skyrocket.client.core.message import ReceivedMessage

_EMPTY: Final = inspect.Parameter.empty
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_LISTS: Final = (list, Sequence)
_UNREAD: Final = "annotation that cannot be read"

Source = Callable[[ReceivedMessage], Any]
_logger = logging.getLogger("skyrocket.handlers")


class MessageLogger(logging.LoggerAdapter[logging.Logger]):
    """`logger: logging.Logger` of a handler: says with each line which message it is about."""

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        known = self.extra or {}
        return f"{msg} [topic={known['topic']} group={known['group']} message={known['message_id']}]", kwargs


def _message_logger(message: ReceivedMessage) -> MessageLogger:
    known = {"topic": message.topic, "group": current_group.get(""), "message_id": message.message_id}
    return MessageLogger(_logger, known)


_CONTEXT: Final[dict[str, tuple[Any, Source]]] = {
    "message": (ReceivedMessage, lambda message: message),
    "group": (str, lambda message: current_group.get("")),
    "attempt": (int, lambda message: message.reconsume_times + 1),
    "logger": (logging.Logger, _message_logger),
}


@dataclass(frozen=True, slots=True)
class Needs:
    """What a function's parameters are filled with, by name."""

    sources: Mapping[str, Source]
    made: Mapping[str, tuple[Callable[..., Any], "Needs"]]

    @property
    def is_empty(self) -> bool:
        return not self.sources and not self.made


def name_of(function: Callable[..., Any]) -> str:
    """How people find a handler: module and name."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or type(function).__module__}.{name.replace('.<locals>', '')}"


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    )


class Signature:
    """The parameters of one handler, checked; `adapted` is what consumers call."""

    def __init__(self, function: Callable[..., Any], *, takes_list: bool, skip: int = 0, answers: bool = False) -> None:
        self.function = function
        self._takes_list = takes_list
        self._name = name_of(function)
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (ValueError, TypeError):  # a built-in that does not tell
            parameters = None
        self.decode: Callable[[bytes], Any] | None = None
        self.needs = Needs({}, {})
        if parameters is None:
            return
        own = getattr(function, "__wrapped__", function) if answers else function  # below @publish or @reply
        if inspect.isgeneratorfunction(own) or inspect.isasyncgenfunction(own):
            raise self._wrong("it has a `yield`, so calling it would do nothing: return, or send with a producer")
        first, rest = self._first(parameters, skip)
        if first is not None:
            self._read_first(first)
        self.needs = self._needs_of(rest, is_async(function), function)
        if not answers:
            self._check_result()

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _wrong(self, text: str) -> IllegalSubscription:
        return IllegalSubscription(f"handler {self._name}: {text}")

    def _first(
        self, parameters: list[inspect.Parameter], skip: int
    ) -> tuple[inspect.Parameter | None, list[inspect.Parameter]]:
        taken = [each for each in parameters if each.kind in _POSITIONAL]
        if taken and taken[0].name == "self":
            raise self._wrong("it is a method without its object: register it as consumer.on(…)(thing.method)")
        variadic = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters)
        if not taken and not variadic:
            raise self._wrong("it takes no message: give it a parameter, as `message: ReceivedMessage`")
        if len(taken) < 1 + skip and not variadic:
            raise self._wrong(f"with once= it takes the message and a connection, {len(taken)} parameters are too few")
        rest = [
            each
            for each in parameters
            if each not in taken[: 1 + skip]
            and each.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        ]
        return (taken[0] if taken else None), rest

    def _read_first(self, first: inspect.Parameter) -> None:
        kind = annotation_of(self.function, first.annotation)
        if self._takes_list and kind is not _EMPTY and kind is not Any:
            if kind in _LISTS:
                return
            if get_origin(kind) not in _LISTS:
                raise self._wrong(f"with batch=True `{first.name}` is a list: annotate it as list[ReceivedMessage]")
            (kind,) = get_args(kind)
        if first.name == "body" and kind in (_EMPTY, Any):
            raise self._wrong("`body` has no type: say what it is, as `body: Order`, or call it `message`")
        if not _is_message(kind):
            self.decode = self._decoder(first.name, kind)

    def _decoder(self, name: str, kind: Any) -> Callable[[bytes], Any]:
        from skyrocket.client.bodies.codecs import codec_for  # with orjson behind it: many take messages as they are
        from skyrocket.client.bodies.values import NotReadable

        try:
            codec = codec_for(kind)
        except NotReadable as error:
            raise self._wrong(f"`{name}` is neither ReceivedMessage nor a body: {error}") from None
        return _naming(codec.decode, _word(kind))

    def _needs_of(self, parameters: list[inspect.Parameter], on_loop: bool, owner: Callable[..., Any]) -> Needs:
        sources: dict[str, Source] = {}
        made: dict[str, tuple[Callable[..., Any], Needs]] = {}
        for each in parameters:
            kind = annotation_of(owner, each.annotation)
            depends = _depends(kind, each.default)
            if depends is not None:
                if depends.needs_loop and not on_loop:
                    raise self._wrong(f"`{each.name}` needs the event loop, but {name_of(owner)} is a plain function")
                inner = list(inspect.signature(depends.make).parameters.values())
                made[each.name] = (depends.make, self._needs_of(inner, depends.needs_loop or on_loop, depends.make))
            elif each.default is not _EMPTY:
                continue
            elif each.name == "body":
                sources["body"] = _decoding(self._decoder("body", kind))
            else:
                sources[each.name] = self._context(each.name, kind)
        if (sources or made) and self._takes_list:
            raise self._wrong("with batch=True it takes the list alone: a batch has many messages")
        return Needs(sources, made)

    def _context(self, name: str, kind: Any) -> Source:
        if _is_message(kind) and kind is not _EMPTY:
            return _CONTEXT["message"][1]
        if name not in _CONTEXT:
            known = ", ".join([*_CONTEXT, "body"])
            raise self._wrong(f"parameter `{name}` is unknown: there are {known}, and Annotated[…, Depends(f)]")
        expected, source = _CONTEXT[name]
        if kind not in (_EMPTY, Any, expected) and not (name == "logger" and kind is logging.LoggerAdapter):
            raise self._wrong(f"`{name}` is {expected.__name__}, not {getattr(kind, '__name__', kind)}")
        return source

    def _check_result(self) -> None:
        found = annotation_of(self.function, inspect.signature(self.function).return_annotation)
        if not _is_result(found):
            raise self._wrong(
                f"it returns {getattr(found, '__name__', found)}: return None or a ConsumeStatus, raise to have the "
                "message again, or send the result with @publish or @reply"
            )

    # ── calling ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def adapted(self) -> Callable[..., Any]:
        """The function as consumers call it, with a message or a list (and whatever `once` adds)."""
        if self.decode is None and self.needs.is_empty:
            return self.function
        if self._takes_list:
            assert self.decode is not None
            return _list_adapter(self.function, self.decode)
        adapter = _async_adapter if is_async(self.function) else _plain_adapter
        return adapter(self.function, self.decode, self.needs)


def annotation_of(function: Callable[..., Any], annotation: Any) -> Any:
    """An annotation as an object, also when it was written as text."""
    if not isinstance(annotation, str):
        return annotation
    while isinstance(function, functools.partial):
        function = function.func
    home = inspect.unwrap(function if hasattr(function, "__globals__") else getattr(function, "__call__", function))  # noqa: B004
    known = {**getattr(home, "__globals__", {})}
    with contextlib.suppress(TypeError, ValueError):
        known.update(inspect.getclosurevars(home).nonlocals)
    try:
        return eval(annotation, known)  # as typing.get_type_hints does
    except Exception:  # noqa: BLE001 - a name that only type checkers import
        names = {"ReceivedMessage": ReceivedMessage, "list[ReceivedMessage]": list[ReceivedMessage]}
        bare = annotation.strip("'\"").replace("skyrocket.", "").replace("client.", "")
        return names.get(bare, _UNREAD if bare not in ("None", "ConsumeStatus") else None)


def _is_message(kind: Any) -> bool:
    return kind is _EMPTY or kind is Any or kind in ReceivedMessage.__mro__


def _word(kind: Any) -> str:
    """A type as people write it, without what a codec adds to it."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind).replace("typing.", "")


def _depends(kind: Any, default: Any) -> Dependency | None:
    if isinstance(default, Dependency):
        return default
    notes = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((note for note in notes if isinstance(note, Dependency)), None)


def _is_result(kind: Any) -> bool:
    if kind in (_EMPTY, None, NoneType, Any, ConsumeStatus, NoReturn, Never, _UNREAD):
        return True
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return all(map(_is_result, get_args(kind)))
    if isinstance(origin, type) and issubclass(origin, Awaitable | Coroutine):
        return _is_result(get_args(kind)[-1])
    return False


def _naming(decode: Callable[[bytes], Any], name: str) -> Callable[[bytes], Any]:
    def named(body: bytes) -> Any:
        try:
            return decode(body)
        except Exception as error:
            raise UndecodableBody(f"the body is no {name}: {error}") from error

    return named


def _decoding(decode: Callable[[bytes], Any]) -> Source:
    return lambda message: decode(message.body)


def _list_adapter(function: Callable[..., Any], decode: Callable[[bytes], Any]) -> Callable[..., Any]:
    """One that cannot be decoded goes to the dead letters alone; those before it are consumed first."""

    def decoded(messages: Sequence[ReceivedMessage]) -> tuple[list[Any], UndecodableBody | None]:
        bodies: list[Any] = []
        for number, message in enumerate(messages):
            try:
                bodies.append(decode(message.body))
            except UndecodableBody as error:
                error.first_failed, error.count = number, 1
                return bodies, error
        return bodies, None

    if is_async(function):

        async def call_async(messages: Sequence[ReceivedMessage]) -> Any:
            bodies, bad = decoded(messages)
            result = await function(bodies) if bodies else None
            if bad is not None and result is None:
                raise bad
            return result

        return call_async

    def call(messages: Sequence[ReceivedMessage]) -> Any:
        bodies, bad = decoded(messages)
        result = function(bodies) if bodies else None
        if bad is not None and result is None:
            raise bad
        return result

    return call


def _async_adapter(
    function: Callable[..., Any], decode: Callable[[bytes], Any] | None, needs: Needs
) -> Callable[..., Any]:
    if not needs.made:

        async def call(message: ReceivedMessage, *more: Any) -> Any:
            first = message if decode is None else decode(message.body)
            return await function(first, *more, **{name: of(message) for name, of in needs.sources.items()})

        return call

    async def call_with(message: ReceivedMessage, *more: Any) -> Any:
        first = message if decode is None else decode(message.body)
        async with contextlib.AsyncExitStack() as stack:
            given = await _filled_async(needs, message, stack, Made())
            return await function(first, *more, **given)

    return call_with


async def _filled_async(
    needs: Needs, message: ReceivedMessage, stack: contextlib.AsyncExitStack, made: Made
) -> dict[str, Any]:
    given = {name: of(message) for name, of in needs.sources.items()}
    for name, (make, inner) in needs.made.items():
        if make not in made.values:
            await made.enter_async(stack, make, await _filled_async(inner, message, stack, made))
        given[name] = made.values[make]
    return given


def _plain_adapter(
    function: Callable[..., Any], decode: Callable[[bytes], Any] | None, needs: Needs
) -> Callable[..., Any]:
    def call(message: ReceivedMessage, *more: Any) -> Any:
        first = message if decode is None else decode(message.body)
        with contextlib.ExitStack() as stack:
            return function(first, *more, **_filled(needs, message, stack, Made()))

    return call


def _filled(needs: Needs, message: ReceivedMessage, stack: contextlib.ExitStack, made: Made) -> dict[str, Any]:
    given = {name: of(message) for name, of in needs.sources.items()}
    for name, (make, inner) in needs.made.items():
        if make not in made.values:
            made.enter(stack, make, _filled(inner, message, stack, made))
        given[name] = made.values[make]
    return given
