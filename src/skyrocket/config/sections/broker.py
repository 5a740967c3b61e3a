"""What the broker itself can be told."""

from dataclasses import dataclass
from enum import Enum

from skyrocket.config.sections.listening import ListeningConfig
from skyrocket.config.sections.setting import setting


class MetricsExporter(Enum):
    """RocketMQ's words; the last two are not served here."""

    DISABLE = "DISABLE"
    PROM = "PROM"
    OTLP_GRPC = "OTLP_GRPC"
    LOG = "LOG"


@dataclass(frozen=True, slots=True)
class BrokerConfig(ListeningConfig):
    """Everything that the broker itself can be told; what concerns files is in StoreConfig."""

    # who and where
    broker_name: str = setting("broker-a", key="brokerName", help="name of the broker, shared with its slaves")
    cluster_name: str = setting("DefaultCluster", key="brokerClusterName", help="name of the cluster")
    broker_id: int = setting(0, key="brokerId", min=0, help="0: master")
    listen_port: int = setting(10911, key="listenPort", min=0, max=65535, help="port; 0 takes a free one")
    broker_ip: str = setting("", key="brokerIP1", help="IP or host name that clients are told; empty: found out")
    name_servers: str = setting("", key="namesrvAddr", help="name servers, as host:9876;other:9876")
    store_root: str = setting("~/store", key="storePathRootDir", help="store directory; ~ is the user's home")
    region_id: str = setting("DefaultRegion", key="regionId", help="written into every message")
    trace_on: bool = setting(True, key="traceOn", help="let clients trace their messages")
    trace_topic_enable: bool = setting(False, key="traceTopicEnable", help="create the trace topic at the start")
    trace_topic: str = setting("RMQ_SYS_TRACE_TOPIC", key="msgTraceTopicName", help="name of that topic")
    broker_permission: int = setting(
        6, key="brokerPermission", min=0, max=7, help="4: clients may read, 2: they may write; the sum of both"
    )
    config_path: str = setting(
        "",
        key="brokerConfigPath",
        help="file that keeps settings changed at run time: the one given with -c; "
        "empty: config/broker.properties in the store directory",
    )
    config_black_list: str = setting(
        "configBlackList;brokerConfigPath",
        key="configBlackList",
        help="settings that nobody may change at run time",
    )

    # topics and groups
    auto_create_topic: bool = setting(True, key="autoCreateTopicEnable", help="a first message creates its topic")
    default_topic_queues: int = setting(8, key="defaultTopicQueueNums", min=1, help="queues of such a topic, at most")
    max_topic_queues: int = setting(
        4096,
        ours=True,
        key="maxTopicQueueNums",
        min=1,
        max=1_000_000,
        help="queues to read or write that operators may give a topic, at most; wider topics stay as they are",
    )
    auto_create_group: bool = setting(
        True, key="autoCreateSubscriptionGroup", help="a first heartbeat or pull creates its group"
    )
    new_groups_per_second: int = setting(
        50,
        ours=True,
        key="newGroupsPerSecond",
        min=1,
        help="groups that heartbeats and pulls may create, and four times as many at once; one connection half of it",
    )
    guard_system_topics: bool = setting(
        True, key="validateSystemTopicWhenUpdateTopic", help="operators may not change or delete topics of the system"
    )
    allow_mixed_type: bool = setting(
        False, key="enableMixedMessageType", help="allow topics with messages of every type (message.type=MIXED)"
    )
    check_message_types: bool = setting(
        False,
        key="enableTopicMessageTypeCheck",
        help="refuse messages that are not of their topic's message.type; RocketMQ has this at its proxy only",
    )
    property_filter: bool = setting(
        False, key="enablePropertyFilter", help="let consumers choose messages by SQL92 over their properties"
    )
    filter_retries: bool = setting(
        False,
        key="filterSupportRetry",
        help="a consumer that pulls its retry topic by SQL92 gets what its filter of the message's own topic lets pass",
    )
    clear_retry_topics: bool = setting(
        True, key="clearRetryTopicWhenDeleteTopic", help="pop's retry topics are deleted with their topic"
    )

    # offsets and statistics
    server_side_reset: bool = setting(
        True, key="useServerSideResetOffset", help="the broker itself moves groups; otherwise their members must"
    )
    queue_statistics: bool = setting(True, key="enableDetailStat", help="keep statistics of single queues")
    forget_unused_statistics: bool = setting(
        True, key="autoDeleteUnusedStats", help="statistics of deleted topics and groups are forgotten"
    )

    slave_read: bool = setting(
        False, key="slaveReadEnable", help="send consumers that read old messages, which are on disk, to a slave"
    )
    acting_master: bool = setting(
        False,
        key="enableSlaveActingMaster",
        help="the slave with the smallest id does its master's work while that is gone; of all brokers of the set",
    )
    controller_mode: bool = setting(
        False,
        key="enableControllerMode",
        help="controllers choose the master of the set, and another one when it is gone; brokerRole, brokerId and "
        "enableSlaveActingMaster then say nothing",
    )
    controller_addresses: str = setting(
        "", key="controllerAddr", help="controllers, as host:9878;other:9878, with enableControllerMode"
    )
    election_priority: int = setting(
        2**31 - 1,
        key="brokerElectionPriority",
        min=0,
        max=2**31 - 1,
        help="of replicas with equal logs the one with the lowest number becomes master, with enableControllerMode",
    )
    skip_pre_online: bool = setting(
        False,
        key="skipPreOnline",
        help="with enableSlaveActingMaster and totalReplicas: register at once, without hearing the set",
    )
    remote_escape: bool = setting(
        False, key="enableRemoteEscape", help="such a slave puts what it delivers to masters of other sets"
    )
    lite_pulls: bool = setting(True, key="litePullMessageEnable", help="serve lite pull consumers")

    # periods
    register_period_ms: int = setting(
        30_000, key="registerNameServerPeriod", min=10_000, max=60_000, help="pause between two registrations"
    )
    heartbeat_interval_ms: int = setting(
        1000,
        key="brokerHeartbeatInterval",
        min=1,
        help="pause between two heartbeats, with enableSlaveActingMaster or enableControllerMode",
    )
    heartbeat_expiry_ms: int = setting(
        10_000,
        key="brokerNotActiveTimeoutMillis",
        min=1,
        help="without a heartbeat for so long a name server takes this broker for gone, with enableSlaveActingMaster",
    )
    controller_expiry_ms: int = setting(
        10_000,
        key="controllerHeartBeatTimeoutMills",
        min=1,
        help="without a heartbeat for so long the controllers take this broker for gone, with enableControllerMode",
    )
    controller_look_period_ms: int = setting(
        10_000, key="syncControllerMetadataPeriod", min=1, help="so often a broker asks which controller leads"
    )
    replica_look_period_ms: int = setting(
        5000,
        key="syncBrokerMetadataPeriod",
        min=1,
        help="so often a broker asks the controllers for its master; they also tell it at once",
    )
    sync_set_period_ms: int = setting(
        5000,
        key="checkSyncStateSetPeriod",
        min=1,
        help="so often a master looks for slaves that lag; those that catch up or leave are noticed at once",
    )
    member_look_period_ms: int = setting(
        1000,
        key="syncBrokerMemberGroupPeriod",
        min=1,
        help="so often a slave asks who of its set is there, with enableSlaveActingMaster",
    )
    registers_single_topics: bool = setting(
        False,
        key="enableSingleTopicRegister",
        help="a changed topic is told to name servers (5.0 and newer) alone, without all others",
    )
    flush_offsets_interval_ms: int = setting(
        5000, key="flushConsumerOffsetInterval", min=1, help="pause between two saves of consumer offsets"
    )
    flush_delay_offsets_interval_ms: int = setting(
        10_000, key="flushDelayOffsetInterval", min=1, help="pause between two saves of how far delay levels are"
    )

    # replies
    store_replies: bool = setting(
        True, key="storeReplyMessageEnable", help="keep replies in their topic after they were pushed"
    )

    # recall of timers
    recall: bool = setting(False, key="recallMessageEnable", help="let producers take back messages that wait")
    recall_when_not_writable: bool = setting(
        True, key="allowRecallWhenBrokerNotWriteable", help="also while brokerPermission forbids to send"
    )

    # transactions
    reject_transactions: bool = setting(False, key="rejectTransactionMessage", help="take no half messages")
    transaction_timeout_ms: int = setting(
        6000, key="transactionTimeOut", min=0, help="age at which a producer is asked for the first time"
    )
    transaction_check_interval_ms: int = setting(
        30_000, key="transactionCheckInterval", min=1, help="pause between two rounds of questions"
    )
    transaction_check_max: int = setting(
        15, key="transactionCheckMax", min=1, help="rounds after which a half message is given up"
    )
    ended_batch_bytes: int = setting(
        4096, key="transactionOpMsgMaxSize", min=32, max=1 << 20, help="ends of transactions in one record, at most"
    )
    ended_batch_interval_ms: int = setting(
        3000, key="transactionOpBatchInterval", min=0, help="how long ends of transactions wait to be written together"
    )
    flush_transaction_counts_interval_ms: int = setting(
        10_000, key="transactionMetricFlushInterval", min=1, help="pause between two saves of how many are open"
    )

    # pop
    revive_queues: int = setting(
        8, key="reviveQueueNum", min=1, max=998, help="queues of the log in which pop keeps what is in consumers' hands"
    )
    revive_interval_ms: int = setting(
        1000, key="reviveInterval", min=1, help="pause between two looks for popped messages that nobody acknowledged"
    )
    max_held_pops: int = setting(100_000, key="maxPopPollingSize", min=0, help="pops that wait for messages, at most")
    max_held_pops_per_queue: int = setting(1024, key="popPollingSize", min=0, help="of them for one queue and group")
    pop_retry_percent: int = setting(
        20, key="popFromRetryProbability", min=0, max=100, help="how often a pop looks into the retry topic first"
    )
    pop_retry_percent_by_priority: int = setting(
        0, key="popFromRetryProbabilityForPriority", min=0, max=100, help="the same for topics of type PRIORITY"
    )
    pop_downwards: bool = setting(
        True, key="priorityOrderAsc", help="pop visits queues from high to low number: 0 is the lowest priority"
    )
    pop_retry_v2: bool = setting(
        False, key="enableRetryTopicV2", help="name pop's retry topics %RETRY%group+topic instead of group_topic"
    )
    pop_retry_reads_v1: bool = setting(
        True, key="retrieveMessageFromPopRetryTopicV1", help="still read those with the old name"
    )
    pop_shows_retry_topic: bool = setting(
        False, key="popResponseReturnActualRetryTopic", help="popped messages of a retry topic keep its name"
    )
    pop_separate_retry_queues: bool = setting(
        False, key="useSeparateRetryQueue", help="pop's retry topics have as many queues as their topic"
    )
    pop_drops_unrevivable: bool = setting(
        False, key="skipWhenCKRePutReachMaxTimes", help="give up popped messages that the store refused too often"
    )
    request_mode: str = setting(
        "PULL", key="defaultMessageRequestMode", help="PULL or POP: how groups consume whose broker shares queues out"
    )
    pop_share_queues: int = setting(
        -1, key="defaultPopShareQueueNum", help="with how many others a consumer shares its queues; -1: with all"
    )
    shares_queues_out: bool = setting(
        True, key="serverLoadBalancerEnable", help="answer queries of assignments with a share, not with all queues"
    )

    # access control: ACL 1.0, then 2.0
    acl_enabled: bool = setting(False, key="aclEnable", help="ACL 1.0: check accounts and rights of plain_acl.yml")
    acl_config_path: str = setting(
        "",
        ours=True,
        key="aclConfigPath",
        help="folder of plain_acl.yml and acl/*.yml; empty: that of the .conf file, or config in the store directory",
    )
    access_validators: str = setting(
        "",
        ours=True,
        key="accessValidators",
        help="own checks of every request, as module:function;module:function; each refuses by raising",
    )
    plug_ins: str = setting(
        "", ours=True, key="brokerPlugins", help="own features of the broker, as module:Class;module:Class"
    )
    authentication_enabled: bool = setting(
        False, key="authenticationEnabled", help="ACL 2.0: every request must be signed by a user"
    )
    authorization_enabled: bool = setting(
        False, key="authorizationEnabled", help="ACL 2.0: users may do what their policies allow"
    )
    authentication_whitelist: str = setting(
        "", key="authenticationWhitelist", help="request codes that need no signature, joined by commas"
    )
    authorization_whitelist: str = setting(
        "", key="authorizationWhitelist", help="request codes that need no right, joined by commas"
    )
    init_authentication_user: str = setting(
        "",
        secret=True,
        key="initAuthenticationUser",
        help='first super user, {"username":"…","password":"…"}; made when there is none of that name',
    )
    inner_client_credentials: str = setting(
        "",
        secret=True,
        key="innerClientAuthenticationCredentials",
        help='what the broker signs its own requests with, {"accessKey":"…","secretKey":"…"}',
    )
    migrate_plain_accounts: bool = setting(
        False, key="migrateAuthFromV1Enabled", help="make users of ACL 2.0 of the accounts of plain_acl.yml"
    )

    # requests in hand at most, by class
    send_capacity: int = setting(10_000, key="sendThreadPoolQueueCapacity", min=1, help="sends that wait")
    pull_capacity: int = setting(100_000, key="pullThreadPoolQueueCapacity", min=1, help="pulls that wait")
    lite_pull_capacity: int = setting(
        100_000, key="litePullThreadPoolQueueCapacity", min=1, help="lite pulls that wait"
    )
    ack_capacity: int = setting(100_000, key="ackThreadPoolQueueCapacity", min=1, help="acknowledgements that wait")
    reply_capacity: int = setting(10_000, key="replyThreadPoolQueueCapacity", min=1, help="replies that wait")
    admin_capacity: int = setting(
        10_000, key="adminBrokerThreadPoolQueueCapacity", min=1, help="requests of tools, and all others, that wait"
    )
    heartbeat_capacity: int = setting(
        50_000, key="heartbeatThreadPoolQueueCapacity", min=1, help="heartbeats that wait"
    )
    end_transaction_capacity: int = setting(
        100_000, key="endTransactionPoolQueueCapacity", min=1, help="ends of transactions that wait"
    )
    load_balance_capacity: int = setting(
        100_000, key="loadBalanceThreadPoolQueueCapacity", min=1, help="queries of assignments that wait"
    )
    client_capacity: int = setting(
        1_000_000, key="clientManagerThreadPoolQueueCapacity", min=1, help="requests about clients that wait"
    )
    offset_capacity: int = setting(
        1_000_000, key="consumerManagerThreadPoolQueueCapacity", min=1, help="requests about offsets that wait"
    )
    query_capacity: int = setting(20_000, key="queryThreadPoolQueueCapacity", min=1, help="queries that wait")
    query_threads: int = setting(
        4, key="queryMessageThreadPoolNums", min=1, help="threads for searches by key, id and time"
    )

    # producers that number their messages
    duplicate_window: int = setting(
        1000,
        ours=True,
        key="producerDuplicateWindow",
        min=0,
        max=100_000,
        help="messages per producer and queue that are known again when they are sent twice; 0: none",
    )

    # fast failure: how long a request may wait to be begun
    fast_failure: bool = setting(
        True, key="brokerFastFailureEnable", help="refuse requests that waited for too long, as busy"
    )
    send_wait_ms: int = setting(200, key="waitTimeMillsInSendQueue", min=1, help="a send")
    pull_wait_ms: int = setting(5000, key="waitTimeMillsInPullQueue", min=1, help="a pull")
    lite_pull_wait_ms: int = setting(5000, key="waitTimeMillsInLitePullQueue", min=1, help="a lite pull")
    heartbeat_wait_ms: int = setting(31_000, key="waitTimeMillsInHeartbeatQueue", min=1, help="a heartbeat")
    end_transaction_wait_ms: int = setting(
        3000, key="waitTimeMillsInTransactionQueue", min=1, help="the end of a transaction"
    )
    ack_wait_ms: int = setting(3000, key="waitTimeMillsInAckQueue", min=1, help="an acknowledgement")
    admin_wait_ms: int = setting(
        5000, key="waitTimeMillsInAdminBrokerQueue", min=1, help="a request of a tool, and all others"
    )

    # metrics and health
    metrics_exporter: MetricsExporter = setting(
        MetricsExporter.DISABLE, key="metricsExporterType", help="PROM serves /metrics, /health and /ready over HTTP"
    )
    metrics_port: int = setting(
        5557, key="metricsPromExporterPort", min=0, max=65535, help="their port; 0 takes a free one"
    )
    metrics_host: str = setting("", key="metricsPromExporterHost", help="their interface; empty: the one of the broker")
