"""What a controller with an account takes from it alone: a faked heartbeat could keep a dead master."""

from typing import Final

from skyrocket.config.sections import ControllerConfig
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat
from skyrocket.protocol.requests.controller import (
    AlterSyncStateSet,
    ApplyBrokerId,
    CleanBrokerData,
    ElectMaster,
    RegisterAtController,
    UpdateControllerConfig,
)
from skyrocket.protocol.signing import Credentials, Signer
from skyrocket.remoting.account_check import Account, AccountCheck

_CHANGING: Final = (
    AlterSyncStateSet,
    ApplyBrokerId,
    BrokerHeartbeat,
    CleanBrokerData,
    ElectMaster,
    RegisterAtController,
    UpdateControllerConfig,
)


def account_check(config: ControllerConfig) -> AccountCheck:
    """A check for the router."""
    account = Account(config.access_key, config.secret_key, "controllerAccessKey")
    return AccountCheck(account, "controller", _CHANGING)


def signer_of(config: ControllerConfig) -> Signer | None:
    """By the same account brokers with access control know the controller that tells them their role."""
    return Signer(Credentials(config.access_key, config.secret_key)) if config.access_key else None
