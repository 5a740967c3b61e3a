"""Who may change what a name server knows, when an account is set; whoever asks for routes needs none.

RocketMQ's name server believes everybody. Brokers sign with `innerClientAuthenticationCredentials`, mqadmin with
`conf/tools.yml`, our Admin with its credentials: all in the same way as they sign for brokers.
"""

from typing import Final

from skyrocket.config.sections import NameServerConfig
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import NoPermission
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat, RegisterBroker, UnregisterBroker
from skyrocket.protocol.requests.kv_config import DeleteKvConfig, PutKvConfig, UpdateNamesrvConfig
from skyrocket.protocol.requests.name_server import (
    AddWritePerm,
    DeleteTopicInNamesrv,
    RegisterTopicInNamesrv,
    WipeWritePerm,
)
from skyrocket.protocol.signing import ACCESS_KEY, is_signed_with
from skyrocket.remoting.peer import Peer

_CHANGING: Final = frozenset(
    request.code
    for request in (
        RegisterBroker,
        UnregisterBroker,
        BrokerHeartbeat,
        RegisterTopicInNamesrv,
        DeleteTopicInNamesrv,
        WipeWritePerm,
        AddWritePerm,
        PutKvConfig,
        DeleteKvConfig,
        UpdateNamesrvConfig,
    )
)


class AccountCheck:
    """A check for the router."""

    def __init__(self, config: NameServerConfig) -> None:
        self._access_key = config.access_key
        self._secret_key = config.secret_key

    def __call__(self, peer: Peer, request: RemotingCommand) -> None:
        """Raises NoPermission."""
        if not self._access_key or request.code not in _CHANGING:
            return
        fields = request.ext_fields or {}
        if fields.get(ACCESS_KEY) != self._access_key or not is_signed_with(request, self._secret_key):
            raise NoPermission(
                f"request {request.code} from {peer.remote_address} must be signed by the account that the name server "
                "was given with namesrvAccessKey; brokers have it in innerClientAuthenticationCredentials"
            )
