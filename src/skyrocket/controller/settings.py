"""Which settings of a controller may be changed while it runs: none that says who it is, or where its decisions are."""

from typing import Final

from skyrocket.config.rocketmq_keys import CONTROLLER_KEYS
from skyrocket.config.sections import ControllerConfig
from skyrocket.remoting.live_settings import LiveSettings, SettingsFile

_FIXED: Final = frozenset(
    """
    configBlackList configStorePath rocketmqHome controllerDLegerGroup controllerDLegerPeers controllerDLegerSelfId
    controllerStore controllerStoreUser controllerStorePassword controllerStoreTls controllerStoreTlsTrustCertPath
    controllerStoreTlsCertPath controllerStoreTlsKeyPath controllerStoreSessionMs controllerAccessKey
    controllerSecretKey bindAddress metricsPromExporterPort
    """.split()
)


def live_settings(config: ControllerConfig, file: SettingsFile) -> LiveSettings[ControllerConfig]:
    """Those of a controller."""
    return LiveSettings(config, file, CONTROLLER_KEYS, _FIXED)
