"""The sections of the configuration; each part of the system receives its own, never the whole."""

from skyrocket.config.sections.broker import BrokerConfig, MetricsExporter
from skyrocket.config.sections.controller import ControllerConfig
from skyrocket.config.sections.name_server import NameServerConfig
from skyrocket.config.sections.store import BrokerRole, FlushDiskType, LogWriteThread, StoreConfig
from skyrocket.config.sections.tls import TlsConfig

__all__ = [
    "BrokerConfig",
    "BrokerRole",
    "ControllerConfig",
    "FlushDiskType",
    "LogWriteThread",
    "MetricsExporter",
    "NameServerConfig",
    "StoreConfig",
    "TlsConfig",
]
