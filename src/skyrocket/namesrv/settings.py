"""Which settings of a name server may be changed while it runs."""

from typing import Final

from skyrocket.config.rocketmq_keys import NAME_SERVER_KEYS
from skyrocket.config.sections import NameServerConfig
from skyrocket.remoting.live_settings import LiveSettings, SettingsFile

_FIXED: Final = frozenset(
    {"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome", "namesrvAccessKey", "namesrvSecretKey"}
)


def live_settings(config: NameServerConfig, file: SettingsFile) -> LiveSettings[NameServerConfig]:
    """Those of a name server."""
    return LiveSettings(config, file, NAME_SERVER_KEYS, _FIXED)
