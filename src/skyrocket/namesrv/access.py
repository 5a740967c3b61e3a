"""What a name server with an account takes from that account alone; whoever asks for routes needs none."""

from typing import Final

from skyrocket.config.sections import NameServerConfig
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat, RegisterBroker, UnregisterBroker
from skyrocket.protocol.requests.kv_config import DeleteKvConfig, PutKvConfig, UpdateNamesrvConfig
from skyrocket.protocol.requests.name_server import (
    AddWritePerm,
    DeleteTopicInNamesrv,
    RegisterTopicInNamesrv,
    WipeWritePerm,
)
from skyrocket.remoting.account_check import Account, AccountCheck

_CHANGING: Final = (
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


def account_check(config: NameServerConfig) -> AccountCheck:
    """A check for the router."""
    account = Account(config.access_key, config.secret_key, "namesrvAccessKey")
    return AccountCheck(account, "name server", _CHANGING)
