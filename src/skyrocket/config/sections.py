"""The sections of the configuration; each part of the system receives its own, never the whole."""

from dataclasses import dataclass
from enum import Enum

from skyrocket.config.setting import check_bounds, setting

GIB = 1 << 30
MIB = 1 << 20


class FlushDiskType(Enum):
    """When a put is answered: after the page cache has it, or after the disk has it."""

    ASYNC_FLUSH = "ASYNC_FLUSH"
    SYNC_FLUSH = "SYNC_FLUSH"


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Everything that the store can be told; defaults are those of RocketMQ 5.4.0."""

    # files
    commit_log_file_size: int = setting(
        GIB, key="mappedFileSizeCommitLog", min=1024, help="bytes of one commit-log file"
    )
    consume_queue_file_size: int = setting(
        300_000 * 20,
        key="mappedFileSizeConsumeQueue",
        min=20,
        help="bytes of one consume-queue file; rounded up to 20",
    )
    batch_queue_file_size: int = setting(
        300_000 * 46,
        key="mapperFileSizeBatchConsumeQueue",
        min=46,
        help="bytes of one batch consume-queue file",
    )
    index_slots: int = setting(5_000_000, key="maxHashSlotNum", min=1, help="hash slots of one index file")
    index_entries: int = setting(20_000_000, key="maxIndexNum", min=2, help="entries of one index file")
    max_open_queue_files: int = setting(
        512, ours=True, key="maxOpenConsumeQueueFiles", min=8, help="consume-queue files held open at the same time"
    )
    max_mapped_log_files: int = setting(
        64, ours=True, key="maxMappedCommitLogFiles", min=2, help="commit-log files mapped at the same time"
    )
    max_mapped_index_files: int = setting(
        8, ours=True, key="maxMappedIndexFiles", min=1, help="index files mapped at the same time"
    )
    preallocate_bytes: int = setting(
        64 * MIB,
        ours=True,
        key="commitLogAllocateAhead",
        min=4096,
        help="disk blocks reserved ahead of the append position",
    )

    # limits of a message
    max_message_size: int = setting(4 * MIB, key="maxMessageSize", min=1, help="largest body in bytes")

    # flushing
    flush_disk_type: FlushDiskType = setting(
        FlushDiskType.ASYNC_FLUSH, key="flushDiskType", help="SYNC_FLUSH answers a put after the disk has it"
    )
    flush_timed: bool = setting(
        True,
        key="flushCommitLogTimed",
        help="true: flush at fixed intervals; false: also as soon as a message arrives",
    )
    flush_interval_ms: int = setting(500, key="flushIntervalCommitLog", min=1, help="pause between two flushes")
    flush_least_pages: int = setting(
        4, key="flushCommitLogLeastPages", min=0, help="dirty pages that are worth a flush"
    )
    flush_thorough_interval_ms: int = setting(
        10_000,
        key="flushCommitLogThoroughInterval",
        min=0,
        help="after this time even one dirty byte is flushed",
    )
    commit_interval_ms: int = setting(
        200, key="commitIntervalCommitLog", min=1, help="pause between two commits of the transient pool"
    )
    commit_least_pages: int = setting(4, key="commitCommitLogLeastPages", min=0, help="pages worth a commit")
    commit_thorough_interval_ms: int = setting(
        200, key="commitCommitLogThoroughInterval", min=0, help="after this time everything is committed"
    )
    queue_flush_interval_ms: int = setting(
        1000, key="flushIntervalConsumeQueue", min=1, help="pause between two flushes of the consume queues"
    )
    queue_flush_least_pages: int = setting(
        2, key="flushConsumeQueueLeastPages", min=0, help="pages of a queue that are worth a write"
    )
    queue_flush_thorough_interval_ms: int = setting(
        60_000,
        key="flushConsumeQueueThoroughInterval",
        min=0,
        help="after this time every queue is written and forced",
    )
    sync_flush_timeout_ms: int = setting(
        5000,
        key="syncFlushTimeout",
        min=1,
        help="longest wait of a put for the disk (FLUSH_DISK_TIMEOUT after it)",
    )
    transient_pool: bool = setting(
        False,
        key="transientStorePoolEnable",
        help="append to private buffers, copy to the page cache behind the writer",
    )
    transient_pool_size: int = setting(5, key="transientStorePoolSize", min=1, help="buffers of the transient pool")
    checkpoint_interval_ms: int = setting(
        1000, ours=True, key="flushCheckpointInterval", min=1, help="pause between two writes of the checkpoint file"
    )

    # dispatch
    dispatch_thread: bool = setting(
        True,
        ours=True,
        key="dispatchThread",
        help="build queues and index in a thread; false: the owner calls dispatch()",
    )
    queue_buffer_bytes: int = setting(
        32 * MIB,
        ours=True,
        key="consumeQueueBufferBytes",
        min=20,
        help="queue entries kept in memory before they are written",
    )
    index_enabled: bool = setting(True, key="messageIndexEnable", help="build index files")
    index_tags: bool = setting(
        True,
        ours=True,
        key="indexTags",
        help="one index entry for the tags of a message (5.4.0); false writes as 4.9 and 5.3 do",
    )
    index_batch_records: int = setting(
        4096, ours=True, key="indexBatchRecords", min=1, help="records collected before the index is written"
    )
    index_batch_delay_ms: int = setting(
        50, ours=True, key="indexBatchDelay", min=0, help="longest time that a record waits for the index"
    )
    multi_dispatch: bool = setting(
        False, key="enableMultiDispatch", help="feed the light queues named by INNER_MULTI_DISPATCH"
    )
    message_delay_levels: str = setting(
        "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
        key="messageDelayLevel",
        help="delay of level 1, 2, …; units s m h d",
    )

    # timers
    timer_wheel: bool = setting(
        True, key="timerWheelEnable", help="take messages that wait for a time of their own (TIMER_DELIVER_MS …)"
    )
    timer_precision_ms: int = setting(
        1000,
        key="timerPrecisionMs",
        min=100,
        max=1000,
        help="step of the timer wheel: how late a timer may be; to be changed only while none waits",
    )
    timer_max_delay_seconds: int = setting(
        259_200, key="timerMaxDelaySec", min=1, help="longest wait of a timer; 3456000 are 40 days"
    )
    timer_roll_window: int = setting(
        172_800,
        key="timerRollWindowSlot",
        help="steps that a timer waits at most before its message is written to the log again; 2 to 604740, "
        "the largest is taken for any other",
    )
    timer_slot_limit: int = setting(
        2**31 - 1,
        key="timerCongestNumEachSlot",
        min=1,
        help="timers of one step above which more are refused at random; all are refused at twice as many",
    )
    timer_flush_interval_ms: int = setting(
        1000, key="timerFlushIntervalMs", min=1, help="pause between two saves of the timer's files"
    )
    timer_log_file_size: int = setting(
        100 * MIB, key="mappedFileSizeTimerLog", min=1024, help="bytes of one timer-log file"
    )
    timer_cancel_with_topic: bool = setting(
        False,
        key="appendTopicForTimerDeleteKey",
        help="name topic and unique key in a recall, as 5.3.2 to 5.3.4 do; both forms are understood",
    )

    # recovery
    check_crc_on_recover: bool = setting(True, key="checkCRCOnRecover", help="compare body CRCs while recovering")
    append_record_crc: bool = setting(
        False, key="enabledAppendPropCRC", help="end the properties of each record with a CRC of the record"
    )
    verify_record_crc: bool = setting(
        False, key="forceVerifyPropCRC", help="on recovery check the whole-record CRC instead of the body CRC"
    )
    truncate_damaged_log: bool = setting(
        False,
        ours=True,
        key="truncateDamagedCommitLog",
        help="true: drop flushed records that lie behind a damaged one instead of refusing to start",
    )
    adopt_scan_bytes: int = setting(
        4 * GIB,
        ours=True,
        key="adoptScanBytes",
        min=0,
        help="largest log that is compared with its queues when another program closed the store",
    )

    # reading
    max_transfer_bytes_memory: int = setting(
        262_144, key="maxTransferBytesOnMessageInMemory", min=1, help="bytes of one read served from memory"
    )
    max_transfer_count_memory: int = setting(
        32, key="maxTransferCountOnMessageInMemory", min=1, help="messages of one read served from memory"
    )
    max_transfer_bytes_disk: int = setting(
        65_536, key="maxTransferBytesOnMessageInDisk", min=1, help="bytes of one read served from disk"
    )
    max_transfer_count_disk: int = setting(
        8, key="maxTransferCountOnMessageInDisk", min=1, help="messages of one read served from disk"
    )
    memory_ratio: int = setting(
        40, key="accessMessageInMemoryMaxRatio", min=1, max=100, help="percent of memory taken as page cache"
    )
    max_query_results: int = setting(64, key="maxMsgsNumBatch", min=1, help="largest result of a key query")
    default_query_results: int = setting(32, key="defaultQueryMaxNum", min=1, help="result of a unique-key query")

    offset_by_time_nearest: bool = setting(
        False,
        ours=True,
        key="offsetByTimeNearest",
        help="search by time as 4.9 does: the nearest message, not exact bounds",
    )

    # retention
    file_reserved_hours: int = setting(72, key="fileReservedTime", min=0, help="age at which a log file may go")
    delete_when: str = setting("04", key="deleteWhen", help="hours of the day in which expired files go, as 04;05")
    disk_max_used_percent: int = setting(
        75,
        key="diskMaxUsedSpaceRatio",
        min=10,
        max=95,
        help="disk use above which expired files go at any hour",
    )
    disk_clean_forcibly_percent: int = setting(
        85, key="diskSpaceCleanForciblyRatio", min=30, max=85, help="disk use above which the oldest files go"
    )
    disk_warning_percent: int = setting(
        90, key="diskSpaceWarningLevelRatio", min=35, max=90, help="disk use above which writes are refused"
    )
    clean_forcibly: bool = setting(
        True, key="cleanFileForciblyEnable", help="allow removal of files that are not expired"
    )
    clean_interval_ms: int = setting(10_000, key="cleanResourceInterval", min=1, help="pause between two cleaning runs")
    clean_first_delay_ms: int = setting(
        60_000, ours=True, key="cleanResourceFirstDelay", min=0, help="first cleaning run after start"
    )
    delete_pause_ms: int = setting(100, key="deleteCommitLogFilesInterval", min=0, help="pause between two deletions")
    delete_queue_pause_ms: int = setting(
        100, key="deleteConsumeQueueFilesInterval", min=0, help="pause between two deletions of queue files"
    )
    delete_batch: int = setting(10, key="deleteFileBatchMax", min=1, help="commit-log files deleted in one run at most")

    # signals
    page_cache_busy_ms: int = setting(
        1000, key="osPageCacheBusyTimeOutMills", min=1, help="an append longer than this means: busy"
    )

    def __post_init__(self) -> None:
        check_bounds(self)


@dataclass(frozen=True, slots=True)
class NameServerConfig:
    """Everything that the name server can be told; defaults are those of RocketMQ 5.4.0."""

    # where
    listen_port: int = setting(9876, key="listenPort", min=0, max=65535, help="port; 0 takes a free one")
    bind_address: str = setting("0.0.0.0", key="bindAddress", help="address of the interface to listen on")
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
    idle_seconds: int = setting(
        120, key="serverChannelMaxIdleTimeSeconds", min=1, help="silent connections are closed after this time"
    )
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


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """TLS of a server; in RocketMQ these are system properties or lines of tls.properties."""

    mode: str = setting("permissive", key="tls.server.mode", help="disabled, permissive or enforcing")
    test_mode: bool = setting(True, key="tls.test.mode.enable", help="use a fresh self-signed certificate, no files")
    cert_path: str = setting("", key="tls.server.certPath", help="certificate chain (PEM)")
    key_path: str = setting("", key="tls.server.keyPath", help="private key (PEM)")
    key_password: str = setting("", key="tls.server.keyPassword", secret=True, help="password of the private key")
    trust_cert_path: str = setting("", key="tls.server.trustCertPath", help="certificates that clients are checked by")
    client_auth: str = setting("none", key="tls.server.need.client.auth", help="none, optional or require")
    verify_clients: bool = setting(False, key="tls.server.authClient", help="check the certificates of clients")
    client_enabled: bool = setting(
        False, key="tls.enable", help="speak TLS to other servers; also done when the mode is enforcing"
    )
    client_cert_path: str = setting("", key="tls.client.certPath", help="certificate shown to them (PEM)")
    client_key_path: str = setting("", key="tls.client.keyPath", help="its private key (PEM)")
    client_key_password: str = setting("", key="tls.client.keyPassword", secret=True, help="password of that key")
    client_trust_cert_path: str = setting(
        "", key="tls.client.trustCertPath", help="certificates that they are checked by"
    )
    verify_servers: bool = setting(False, key="tls.client.authServer", help="check the certificates of servers")
    config_file: str = setting(
        "/etc/rocketmq/tls.properties", key="tls.config.file", help="file whose lines replace those above but the mode"
    )


class MetricsExporter(Enum):
    """RocketMQ's words; the last two are not served here."""

    DISABLE = "DISABLE"
    PROM = "PROM"
    OTLP_GRPC = "OTLP_GRPC"
    LOG = "LOG"


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Everything that the broker itself can be told; what concerns files is in StoreConfig."""

    # who and where
    broker_name: str = setting("broker-a", key="brokerName", help="name of the broker, shared with its slaves")
    cluster_name: str = setting("DefaultCluster", key="brokerClusterName", help="name of the cluster")
    broker_id: int = setting(0, key="brokerId", min=0, help="0: master")
    listen_port: int = setting(10911, key="listenPort", min=0, max=65535, help="port; 0 takes a free one")
    bind_address: str = setting("0.0.0.0", key="bindAddress", help="address of the interface to listen on")
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
    auto_create_group: bool = setting(
        True, key="autoCreateSubscriptionGroup", help="a first heartbeat or pull creates its group"
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
    lite_pulls: bool = setting(True, key="litePullMessageEnable", help="serve lite pull consumers")

    # periods
    register_period_ms: int = setting(
        30_000, key="registerNameServerPeriod", min=10_000, max=60_000, help="pause between two registrations"
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

    # connections
    idle_seconds: int = setting(
        120, key="serverChannelMaxIdleTimeSeconds", min=1, help="silent connections are closed after this time"
    )

    def __post_init__(self) -> None:
        check_bounds(self)
