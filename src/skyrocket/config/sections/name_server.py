"""What the name server can be told."""

from dataclasses import dataclass

from skyrocket.config.sections.listening import ListeningConfig
from skyrocket.config.sections.setting import check_bounds, setting
from skyrocket.errors import ConfigError


@dataclass(frozen=True, slots=True)
class NameServerConfig(ListeningConfig):
    """Everything that the name server can be told; defaults are those of RocketMQ 5.4.0."""

    # where
    listen_port: int = setting(9876, key="listenPort", min=0, max=65535, help="port; 0 takes a free one")
    kv_config_path: str = setting(
        "~/namesrv/kvConfig.json", key="kvConfigPath", help="file of the KV values; ~ is the user's home"
    )
    config_store_path: str = setting(
        "~/namesrv/namesrv.properties",
        key="configStorePath",
        help="file that keeps settings changed at run time; the file given with -c, when there is one",
    )
    config_black_list: str = setting(
        "configBlackList;configStorePath;kvConfigPath",
        key="configBlackList",
        help="settings that nobody may change at run time",
    )

    with_controller: bool = setting(
        False,
        key="enableControllerInNamesrv",
        help="run a controller in the same process, on the port of its own; its settings are read from the same place",
    )

    # brokers
    scan_interval_ms: int = setting(
        5000, key="scanNotActiveBrokerInterval", min=10, help="pause between two searches for silent brokers"
    )
    support_acting_master: bool = setting(
        False, key="supportActingMaster", help="present the slave with the smallest id as master while there is none"
    )
    notify_min_broker_id: bool = setting(
        False, key="notifyMinBrokerIdChanged", help="tell brokers when the smallest id of their name changes"
    )
    drop_missing_topics: bool = setting(
        False,
        key="deleteTopicWithBrokerRegistration",
        help="topics that a broker does not register any more are forgotten",
    )
    return_order_conf: bool = setting(
        True, key="returnOrderTopicConfigToBroker", help="tell registering brokers which topics are ordered"
    )

    max_registration_topics: int = setting(
        20_000, ours=True, key="maxRegistrationTopics", min=1, help="topics that a broker may register, at most"
    )
    max_routes: int = setting(
        500_000,
        ours=True,
        key="maxRoutes",
        min=1,
        help="topics of all brokers together, at most: a topic counts once for each broker that has it",
    )
    max_kv_bytes: int = setting(
        1 << 20, ours=True, key="maxKvConfigBytes", min=1, help="bytes of all KV values together, at most"
    )
    access_key: str = setting(
        "",
        ours=True,
        key="namesrvAccessKey",
        help="account that must have signed registrations and everything else that changes something; empty: nobody",
    )
    secret_key: str = setting("", ours=True, secret=True, key="namesrvSecretKey", help="its secret")

    # requesters
    order_messages: bool = setting(
        False, key="orderMessageEnable", help="routes carry the queues of strictly ordered topics"
    )
    all_topic_list: bool = setting(True, key="enableAllTopicList", help="answer queries for all topics")
    topic_list: bool = setting(True, key="enableTopicList", help="answer queries for topics of a cluster or unit")
    wait_for_service: bool = setting(
        False, key="needWaitForService", help="answer route queries only some time after the start"
    )
    wait_seconds: int = setting(45, key="waitSecondsForService", min=0, help="this time")
    route_queue_capacity: int = setting(
        50_000, key="clientRequestThreadPoolQueueCapacity", min=1, help="route queries in hand at most"
    )
    queue_capacity: int = setting(
        10_000, key="defaultThreadPoolQueueCapacity", min=1, help="other requests in hand at most"
    )

    # connections
    backlog: int = setting(1024, key="serverSocketBacklog", min=1, help="connections that wait to be accepted")
    graceful_shutdown: bool = setting(
        False, key="enableShutdownGracefully", help="while stopping, tell clients to connect elsewhere"
    )
    shutdown_wait_seconds: int = setting(
        30, key="shutdownWaitTimeSeconds", min=0, help="how long they are given for it"
    )

    # metrics and health
    metrics_port: int = setting(
        0,
        ours=True,
        key="metricsPromExporterPort",
        min=0,
        max=65535,
        help="port of /metrics, /health and /ready over HTTP; 0: none",
    )

    def __post_init__(self) -> None:
        check_bounds(self)
        if bool(self.access_key) != bool(self.secret_key):
            raise ConfigError("namesrvAccessKey and namesrvSecretKey belong together: give both or none")
