"""What is measured: defaults, and what docs/guides/failover.md calls tuned. Both makers read these keys."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

TUNED_BROKER: Final = {
    "brokerHeartbeatInterval": 300,
    "controllerHeartBeatTimeoutMills": 1500,
    "syncBrokerMetadataPeriod": 500,
}
TUNED_CONTROLLER: Final = {"scanNotActiveBrokerInterval": 200, "scanInactiveMasterInterval": 200}


@dataclass(frozen=True)
class Setting:
    """A row of settings with its name."""

    name: str
    broker: Mapping[str, object] = field(default_factory=dict)
    controller: Mapping[str, object] = field(default_factory=dict)


DEFAULT: Final = Setting("default")
TUNED: Final = Setting("tuned", TUNED_BROKER, TUNED_CONTROLLER)
