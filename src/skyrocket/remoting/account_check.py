"""Who may change what a name server or controller knows, when it was given an account; whoever only asks needs none.

RocketMQ's believe everybody. Brokers sign with `innerClientAuthenticationCredentials`, mqadmin with `conf/tools.yml`,
our Admin with its credentials: all in the same way as they sign for brokers.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import NoPermission
from skyrocket.protocol.requests.header import Request
from skyrocket.protocol.signing import ACCESS_KEY, is_signed_with
from skyrocket.remoting.peer import Peer


class Account(NamedTuple):
    """The one account of a server; `setting` is where its operator gave it. No access key: nobody must sign."""

    access_key: str
    secret_key: str
    setting: str


class AccountCheck:
    """A check for the router."""

    def __init__(self, account: Account, server: str, changing: Iterable[type[Request[Any]]]) -> None:
        """`changing` are the requests that must be signed."""
        self._account = account
        self._server = server
        self._codes = frozenset(request.code for request in changing)

    def __call__(self, peer: Peer, request: RemotingCommand) -> None:
        """Raises NoPermission."""
        account = self._account
        if not account.access_key or request.code not in self._codes:
            return
        fields = request.ext_fields or {}
        if fields.get(ACCESS_KEY) != account.access_key or not is_signed_with(request, account.secret_key):
            raise NoPermission(
                f"request {request.code} from {peer.remote_address} must be signed by the account that the "
                f"{self._server} was given with {account.setting}; brokers have it in "
                "innerClientAuthenticationCredentials"
            )
