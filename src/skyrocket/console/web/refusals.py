"""Errors as HTTP says them: a status, and a text that names the cause and the next step."""

from starlette.responses import Response

from skyrocket.client.core.errors import BrokerRefused, ClientError, NoRoute, NotFound, NotOffered, TooOld, WrongUse
from skyrocket.console.live.gate import TooManyStreams
from skyrocket.console.login.accounts import LoginRefused
from skyrocket.console.login.attempts import TooManyAttempts
from skyrocket.console.login.sessions import NeedsLogin
from skyrocket.console.login.tokens import TokenRefused
from skyrocket.console.telling.told_error import told
from skyrocket.console.web.json_answer import json_answer
from skyrocket.errors import MessageRefused, SkyrocketError
from skyrocket.protocol.codes import ResponseCode


class CrossSite(ClientError):
    """Another site, or a script that did not say it is one of ours."""


_STATUS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], int], ...] = (
    (NeedsLogin, 401),
    (LoginRefused, 401),
    ((CrossSite, TokenRefused), 403),
    ((TooManyStreams, TooManyAttempts), 429),
    ((NotOffered, TooOld), 501),
    ((NotFound, NoRoute), 404),
    ((WrongUse, MessageRefused), 400),
)


def status_of(error: SkyrocketError) -> int:
    """What kind of failure it is; 502 when the cluster did not do it."""
    if isinstance(error, BrokerRefused) and error.code == ResponseCode.NO_PERMISSION:
        return 403
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 502)


def refusal(error: SkyrocketError) -> Response:
    """The answer."""
    return json_answer(told(error), status_of(error))
