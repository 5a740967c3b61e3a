"""The check of ACL 2.0: is it really this user, and may the user do that here?

Both questions can be switched on by themselves. Decisions are remembered until users or policies change.
"""

from typing import Final, TypeAlias

from skyrocket.broker.access.policies import NO_POLICY
from skyrocket.broker.access.remote_addresses import host_of
from skyrocket.broker.access.required_permissions import DECIDED_BY, Permission, RequiredPermissions
from skyrocket.broker.access.user_table import UserTable
from skyrocket.broker.access.users import User
from skyrocket.errors import ConfigError
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import MalformedBody, NoPermission
from skyrocket.protocol.signing import ACCESS_KEY, is_signed_with
from skyrocket.remoting.peer import Peer

_Question: TypeAlias = tuple[str, str, Permission]  # user, host, need
_Usual: TypeAlias = tuple[str, str, int, str | None, str | None]  # user, host, request code and its two fields
_MAX_REMEMBERED: Final = 10_000
_UNKNOWN: Final = ""


class UserAccess:
    """Refuses with code 16 and RocketMQ's words."""

    def __init__(
        self,
        table: UserTable,
        needs: RequiredPermissions,
        *,
        authenticates: bool,
        authorizes: bool,
        without_authentication: frozenset[int] = frozenset(),
        without_authorization: frozenset[int] = frozenset(),
    ) -> None:
        self.authenticates = authenticates
        self._table = table
        self._needs = needs
        self._authorizes = authorizes
        self._without_authentication = without_authentication
        self._without_authorization = without_authorization
        self._refusals: dict[_Question, str | None] = {}
        self._allowed: set[_Usual] = set()

    def forget(self) -> None:
        """Users or policies have changed."""
        self._refusals = {}
        self._allowed = set()

    def check(self, peer: Peer, request: RemotingCommand) -> None:
        """Raises NoPermission."""
        fields = request.ext_fields
        name = (fields.get(ACCESS_KEY) if fields else None) or _UNKNOWN
        if self.authenticates and request.code not in self._without_authentication:
            self._authenticate(name, request)
        if self._authorizes and request.code not in self._without_authorization:
            self._authorize(name, host_of(peer), request)

    def _authenticate(self, name: str, request: RemotingCommand) -> None:
        if not name:
            raise NoPermission("username cannot be null.")
        user = self._enabled(name, "is not found.")
        if not is_signed_with(request, user.password):
            raise NoPermission("check signature failed.")

    def _authorize(self, name: str, host: str, request: RemotingCommand) -> None:
        usual = self._usual(name, host, request)
        if usual in self._allowed:
            return
        self._look_up(name, host, request)
        if usual is not None:
            if len(self._allowed) >= _MAX_REMEMBERED:
                self._allowed = set()
            self._allowed.add(usual)

    def _usual(self, name: str, host: str, request: RemotingCommand) -> _Usual | None:
        deciding = DECIDED_BY.get(request.code)
        fields = request.ext_fields
        if deciding is None or not fields:
            return None
        return name, host, request.code, fields.get(deciding[0]), fields.get(deciding[1])

    def _look_up(self, name: str, host: str, request: RemotingCommand) -> None:
        if not name:
            raise NoPermission("Authorization failed. Please verify your access rights and try again.")
        if self._enabled(name, "not found.").is_super:
            return
        try:
            needs = self._needs.of(request)
        except MalformedBody:
            raise NoPermission("parse authorization context error.") from None
        for need in needs:
            refusal = self._refusal_of((name, host, need))
            if refusal is not None:
                raise NoPermission(refusal)

    def _enabled(self, name: str, unknown: str) -> User:
        user = self._table.users.get(name)
        if user is None:
            raise NoPermission(f"User:{name} {unknown}")
        if not user.is_enabled:
            raise NoPermission(f"User:{name} is disabled.")
        return user

    def _refusal_of(self, question: _Question) -> str | None:
        try:
            return self._refusals[question]
        except KeyError:
            pass
        if len(self._refusals) >= _MAX_REMEMBERED:
            self._refusals = {}
        name, host, need = question
        acl = self._table.acls.get(f"User:{name}")
        detail = NO_POLICY if acl is None else acl.refusal_of(need, host)
        text = None if detail is None else f"User:{name} has no permission to access {need} from {host}, {detail}"
        self._refusals[question] = text
        return text


def request_codes(text: str, key: str) -> frozenset[int]:
    """The codes of a white list; raises ConfigError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        if not part.isdecimal():
            raise ConfigError(f"{key}={text!r}: {part!r} is not a request code: write a number such as 105")
    return frozenset(map(int, parts))
