"""Request code → handler; what the handler raises → answer.

The order is RocketMQ's: find the handler, refuse when its class is full, run the checks (who may do what), run the
handler. A RequestError becomes its code and remark, every other exception code 1 with the place where it arose. A
oneway request is never answered.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from skyrocket.clock import Clock, Seldom, SystemClock
from skyrocket.protocol.codes import ResponseCode, Version
from skyrocket.protocol.command import ONEWAY_FLAG, RemotingCommand
from skyrocket.protocol.errors import GoAway, RequestError, RequestNotSupported, SystemFailure
from skyrocket.protocol.send_shapes import SendShapes
from skyrocket.remoting.admission import RequestClass
from skyrocket.remoting.answers import Answer, Frame, LaterAnswer, LaterRun, Outcome, answer_frame, refusal
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.postponing import Postponed, PostponedAnswer
from skyrocket.remoting.serving import R, RawHandler, Serving, serve
from skyrocket.remoting.tasks import TaskSet

if TYPE_CHECKING:  # a client has none
    from skyrocket.remoting.workers import Workers

_logger = logging.getLogger(__name__)

Check: TypeAlias = Callable[[Peer, RemotingCommand], None]
RunHandler: TypeAlias = Callable[[Peer, Sequence[RemotingCommand]], LaterRun | None]

# RocketMQ: the broker's VIP port serves everything but what may be held for long.
NOT_ON_VIP_PORT: Final = frozenset({11, 361, 200050, 200052, 200054, 200055})

_OTHERS_LIMIT = 10_000
_MAX_REMARK = 2000


class Route:
    """One request code: who handles it, and how often it came."""

    __slots__ = ("code", "failed", "handler", "request_class", "requests")

    def __init__(self, code: int | None, handler: RawHandler, request_class: RequestClass) -> None:
        self.code = code  # None: all codes without a handler of their own
        self.handler = handler
        self.request_class = request_class
        self.requests = 0
        self.failed = 0  # answered with an exception that nobody expected


class _Runs(NamedTuple):
    """Who takes requests that came in a row, and in whose place."""

    instead_of: RawHandler
    handle: RunHandler


class Router:
    """The table of handlers, shared by all connections of a server or client."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        class_of: Callable[[int | None], RequestClass] | None = None,
        workers: "Workers | None" = None,
    ) -> None:
        """`class_of` says which requests share a bound; `workers` run handlers that ask for a thread."""
        self.tasks = TaskSet()  # what handlers that must wait are doing
        self.shapes: SendShapes | None = None  # set by whoever registers a handler of sends
        self._runs: _Runs | None = None
        self._others = RequestClass("others", _OTHERS_LIMIT)
        self._routes: dict[int, Route] = {}
        self._class_of = class_of or (lambda code: self._others)
        self._default = Route(None, _not_supported, self._class_of(None))
        self._checks: list[Check] = []  # one list for this router and those that know fewer codes
        self._workers = workers
        self._seldom = Seldom(clock or SystemClock())

    def check_with(self, *checks: Check) -> None:
        """Ask these, too, before every handler: they raise what is refused, or Postponed."""
        self._checks.extend(checks)

    def check_no_more_with(self, check: Check) -> None:
        """Do not ask this one any more."""
        self._checks.remove(check)

    def add(self, *servings: Serving) -> None:
        """Let handlers answer."""
        for codes, handler, in_thread, _ in servings:
            for code in codes:
                request_class = self._class_of(code)
                if in_thread:
                    assert self._workers is not None, f"request {code} wants a thread"
                    self.register(code, self._workers.beside(handler, request_class), request_class)
                else:
                    self.register(code, handler, request_class)

    def serve(self, request: type[R], handler: Callable[[Peer, R, Any], object]) -> None:
        """Let a typed handler answer one kind of request."""
        self.add(serve(request, handler))

    def register(
        self, codes: int | Iterable[int], handler: RawHandler, request_class: RequestClass | None = None
    ) -> None:
        """Let a raw handler answer requests of these codes."""
        for code in (codes,) if isinstance(codes, int) else codes:
            assert code not in self._routes, f"two handlers for {code}"
            self._routes[code] = Route(code, handler, request_class or self._class_of(code))

    def take_runs(self, instead_of: RawHandler, handle: RunHandler) -> None:
        """Let requests of one shape be taken together, as long as this handler, and no stand-in, would get each."""
        self._runs = _Runs(instead_of, handle)

    def routes(self) -> Iterator[Route]:
        """Every route with its counters; the last is for all other codes."""
        yield from self._routes.values()
        yield self._default

    def without(self, codes: Collection[int]) -> "Router":
        """A router with these handlers and counters that does not support some codes."""
        fewer = Router()
        fewer._checks = self._checks
        fewer.tasks = self.tasks
        fewer.shapes = self.shapes
        fewer._runs = self._runs
        fewer._others = self._others
        fewer._seldom = self._seldom
        fewer._default = self._default
        fewer._routes = {code: route for code, route in self._routes.items() if code not in codes}
        refused = Route(None, _not_supported, self._others)
        fewer._routes.update(dict.fromkeys(codes, refused))
        return fewer

    def handle(self, peer: Peer, request: RemotingCommand) -> Frame | LaterAnswer | None:
        """What goes back: bytes now, bytes later, or nothing."""
        route = self._routes.get(request.code)
        if route is None:
            route = self._default
        route.requests += 1
        try:
            request_class = route.request_class
            if request_class.in_hand >= request_class.crowded_from or request_class.is_rejecting:
                request_class.admit(peer.unanswered_count)
            for check in self._checks:
                check(peer, request)
            outcome = route.handler(peer, request)
            kind = outcome.__class__
            if kind is LaterAnswer:
                outcome.counted_by(request_class)  # type: ignore[union-attr]
                return None if request.flag & ONEWAY_FLAG else outcome  # type: ignore[return-value]
            if kind is RemotingCommand or kind is bytes or kind is list:
                return None if request.flag & ONEWAY_FLAG else answer_frame(outcome)  # type: ignore[arg-type]
            if outcome is None:
                return None
            later = self._answered_by_task(route, request, outcome)
            later.counted_by(request_class)
            return None if request.flag & ONEWAY_FLAG else later
        except RequestError as error:
            answer = refusal(request, error)
        except Postponed as postponed:
            return self._begun_later(route, peer, request, postponed)
        except Exception as error:  # noqa: BLE001 - the edge: a bug must not end the connection
            answer = self._failure(route, request, error)
        return None if request.flag & ONEWAY_FLAG else answer_frame(answer)

    def handle_run(self, peer: Peer, requests: Sequence[RemotingCommand]) -> LaterRun | None:
        """The first of these requests, all at once; None when each must be looked at."""
        route = self._routes.get(requests[0].code)
        runs = self._runs
        if runs is None or self._checks or route is None or route.handler != runs.instead_of:
            return None
        request_class = route.request_class
        if request_class.is_rejecting or request_class.in_hand + len(requests) >= request_class.crowded_from:
            return None
        run = runs.handle(peer, requests)
        if run is not None:
            route.requests += len(run.requests)
            run.counted_by(request_class)
        return run

    def _answered_by_task(self, route: Route, request: RemotingCommand, work: Outcome) -> LaterAnswer:
        assert isinstance(work, Awaitable), f"{work!r} is not an answer"
        later = LaterAnswer(request)
        self.tasks.start(self._fill(route, later, work), name=f"request {request.code}")
        return later

    def _begun_later(
        self, route: Route, peer: Peer, request: RemotingCommand, postponed: Postponed
    ) -> LaterAnswer | None:
        later = PostponedAnswer(request)
        later.counted_by(route.request_class)
        self.tasks.start(self._begin(route, peer, later, postponed), name=f"postponed request {request.code}")
        return None if request.flag & ONEWAY_FLAG else later

    async def _begin(self, route: Route, peer: Peer, later: PostponedAnswer, postponed: Postponed) -> None:
        try:
            await postponed.pause()
            if not later.is_open:  # the connection was lost meanwhile
                return
            outcome = self._outcome_after_pause(route, peer, later.request)
            if isinstance(outcome, LaterAnswer):
                later.follow(outcome)
            else:
                later.fill(await outcome if isinstance(outcome, Awaitable) else outcome)
        except RequestError as error:
            later.refuse(error)
        except Exception as error:  # noqa: BLE001 - the same
            later.fill(self._failure(route, later.request, error))
        except BaseException:  # cancelled
            later.abandon()
            raise

    def _outcome_after_pause(self, route: Route, peer: Peer, request: RemotingCommand) -> Outcome:
        try:
            for check in self._checks:
                check(peer, request)
        except Postponed as again:
            raise again.otherwise from None
        return route.handler(peer, request)

    async def _fill(self, route: Route, later: LaterAnswer, work: Awaitable[Answer | None]) -> None:
        try:
            later.fill(await work)
        except RequestError as error:
            later.refuse(error)
        except Exception as error:  # noqa: BLE001 - the same
            later.fill(self._failure(route, later.request, error))
        finally:
            later.abandon()  # only when cancelled, otherwise it has been filled

    def _failure(self, route: Route, request: RemotingCommand, error: Exception) -> RemotingCommand:
        route.failed += 1
        remark = failure_remark(error)
        # With its stack, but the same failure not again and again: once a minute per request code and place.
        if self._seldom.may_say((request.code, remark.rpartition(", ")[2])):
            _logger.error("a handler failed code=%d", request.code, exc_info=error)
        return request.answer(SystemFailure.code, remark)


class GoingAway:
    """Stands before a router while its server closes: whoever understands it is told to connect again."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self.shapes = router.shapes

    def handle(self, peer: Peer, request: RemotingCommand) -> Frame | LaterAnswer | None:
        """1500, or what the router says to those who do not know it."""
        if request.version <= Version.V5_3_1:
            return self._router.handle(peer, request)
        if request.flag & ONEWAY_FLAG:
            return None
        return answer_frame(request.answer(ResponseCode.GO_AWAY, GoAway("please go away").remark))

    def handle_run(self, peer: Peer, requests: Sequence[RemotingCommand]) -> None:
        """Each hears it."""


def failure_remark(error: BaseException) -> str:
    """`class: text, module.function(file:line)`, the form of RocketMQ's remarks."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    text = f"{name}: {error}" if str(error) else name
    place = _place(error)
    return text[: _MAX_REMARK - len(place)] + place


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    module = trace.tb_frame.f_globals.get("__name__", "?")
    return f", {module}.{code.co_name}({os.path.basename(code.co_filename)}:{trace.tb_lineno})"


def _not_supported(_: Peer, request: RemotingCommand) -> Outcome:
    raise RequestNotSupported.of(request.code)
