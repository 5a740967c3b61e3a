"""What a controller can be told."""

from dataclasses import dataclass

from skyrocket.config.sections.listening import ListeningConfig
from skyrocket.config.sections.setting import check_bounds, setting
from skyrocket.errors import ConfigError

DEFAULT_CONTROLLER_PORT = 9878


@dataclass(frozen=True, slots=True)
class ControllerConfig(ListeningConfig):
    """Everything that a controller can be told; defaults are those of RocketMQ 5.4.0."""

    # who
    group: str = setting("skyrocket", key="controllerDLegerGroup", help="name of the controllers that belong together")
    self_id: str = setting("n0", key="controllerDLegerSelfId", help="name of this one among them")
    peers: str = setting(
        "",
        key="controllerDLegerPeers",
        help="this controller, and if you like the others, as n0-10.0.0.1:9878;n1-10.0.0.2:9878: its own entry says "
        "where it listens and what brokers are told; empty: port 9878 of this machine's address",
    )

    # the engine
    store: str = setting(
        "file:~/controller/replica-sets",
        ours=True,
        key="controllerStore",
        help="where decisions are kept: zookeeper://h1:2181,h2:2181/skyrocket, etcd://h1:2379,h2:2379/skyrocket, or "
        "file:PATH for one controller alone",
    )
    store_user: str = setting(
        "", ours=True, key="controllerStoreUser", help="account at ZooKeeper (digest) or etcd; empty: none"
    )
    store_password: str = setting("", ours=True, secret=True, key="controllerStorePassword", help="its password")
    store_tls: bool = setting(False, ours=True, key="controllerStoreTls", help="speak TLS to ZooKeeper or etcd")
    store_tls_ca: str = setting(
        "",
        ours=True,
        key="controllerStoreTlsTrustCertPath",
        help="certificates it is checked by (PEM); empty: the system's",
    )
    store_tls_cert: str = setting(
        "", ours=True, key="controllerStoreTlsCertPath", help="certificate shown to it (PEM); empty: none"
    )
    store_tls_key: str = setting("", ours=True, key="controllerStoreTlsKeyPath", help="its private key (PEM)")
    session_ms: int = setting(
        6000,
        ours=True,
        key="controllerStoreSessionMs",
        min=1000,
        max=60_000,
        help="a controller that its engine has not heard of for so long leads no more",
    )

    # brokers
    scan_interval_ms: int = setting(
        5000, key="scanNotActiveBrokerInterval", min=10, help="pause between two searches for silent brokers"
    )
    master_scan_interval_ms: int = setting(
        5000,
        key="scanInactiveMasterInterval",
        min=10,
        help="pause between two searches for sets without a living master",
    )
    election_attempts: int = setting(
        3, key="electMasterMaxRetryCount", min=1, help="attempts to write an election down while the engine fails"
    )
    elect_unclean: bool = setting(
        False,
        key="enableElectUncleanMaster",
        help="when nobody in sync lives, elect anybody: messages that were confirmed can be lost",
    )
    notify_roles: bool = setting(
        True, key="notifyBrokerRoleChanged", help="tell brokers of an election at once; they ask every 5 s themselves"
    )
    max_brokers: int = setting(
        50_000, ours=True, key="controllerMaxBrokers", min=1, help="brokers that may send heartbeats, at most"
    )
    max_sets: int = setting(10_000, ours=True, key="controllerMaxReplicaSets", min=1, help="replica sets, at most")
    queue_capacity: int = setting(
        50_000, key="controllerRequestThreadPoolQueueCapacity", min=1, help="requests in hand at most"
    )

    # administration
    config_store_path: str = setting(
        "~/controller/controller.properties",
        key="configStorePath",
        help="file that keeps settings changed at run time; the file given with -c, when there is one",
    )
    config_black_list: str = setting(
        "configBlackList;configStorePath", key="configBlackList", help="settings that nobody may change at run time"
    )
    access_key: str = setting(
        "",
        ours=True,
        key="controllerAccessKey",
        help="account that must have signed everything that changes something; empty: nobody",
    )
    secret_key: str = setting("", ours=True, secret=True, key="controllerSecretKey", help="its secret")
    metrics_port: int = setting(
        0,
        key="metricsPromExporterPort",
        min=0,
        max=65535,
        help="port of /metrics, /health and /ready over HTTP; 0: none",
    )

    def __post_init__(self) -> None:
        check_bounds(self)
        if bool(self.access_key) != bool(self.secret_key):
            raise ConfigError("controllerAccessKey and controllerSecretKey belong together: give both or none")
        if bool(self.store_user) != bool(self.store_password):
            raise ConfigError("controllerStoreUser and controllerStorePassword belong together: give both or none")
        if bool(self.store_tls_cert) != bool(self.store_tls_key):
            raise ConfigError("controllerStoreTlsCertPath and controllerStoreTlsKeyPath belong together")
