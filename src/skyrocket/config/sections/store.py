"""What the store can be told."""

from dataclasses import dataclass
from enum import Enum

from skyrocket.config.sections.setting import check_bounds, setting

GIB = 1 << 30
MIB = 1 << 20


class FlushDiskType(Enum):
    """When a put is answered: after the page cache has it, or after the disk has it."""

    ASYNC_FLUSH = "ASYNC_FLUSH"
    SYNC_FLUSH = "SYNC_FLUSH"


class LogWriteThread(Enum):
    """When log bytes are written by a thread of their own, so that a disk that stands still holds up nobody else."""

    WHILE_FLUSHING = "WHILE_FLUSHING"
    ALWAYS = "ALWAYS"
    NEVER = "NEVER"


class BrokerRole(Enum):
    """What a broker is in its set: the one that takes messages, or one that copies its log."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"


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
    log_write_thread: LogWriteThread = setting(
        LogWriteThread.WHILE_FLUSHING,
        ours=True,
        key="commitLogWriteThread",
        help="when a thread of its own writes the log: WHILE_FLUSHING, ALWAYS (also for frozen file systems) or NEVER",
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

    # replication
    broker_role: BrokerRole = setting(
        BrokerRole.ASYNC_MASTER,
        key="brokerRole",
        help="SYNC_MASTER answers a put after a slave has it; SLAVE copies its master's log and takes no messages",
    )
    ha_listen_port: int = setting(
        0, key="haListenPort", min=0, max=65535, help="port at which slaves get the log; 0: listenPort + 1"
    )
    ha_networks: str = setting(
        "",
        ours=True,
        key="haNetworks",
        help="networks whose hosts may copy the log, as 10.0.0.0/8,192.168.7.4; "
        "empty: this machine, and what the name servers know as members of the set. "
        "With enableRemoteEscape these networks may write check points of pop, too",
    )
    ha_tls: bool = setting(
        False,
        ours=True,
        key="haTlsEnable",
        help="the log travels by TLS, with the certificates of tls.server.* and tls.client.*; for a whole set, whose "
        "brokers are then all Skyrocket's",
    )
    ha_master_address: str = setting(
        "", key="haMasterAddress", help="a slave copies from here, as host:10912; empty: what its name servers say"
    )
    ha_batch_bytes: int = setting(
        32 << 10, key="haTransferBatchSize", min=1024, max=1 << 20, help="log bytes in one transfer to a slave"
    )
    ha_heartbeat_ms: int = setting(
        5000, key="haSendHeartbeatInterval", min=1, help="master and slave say at least this often that they are there"
    )
    ha_silence_ms: int = setting(
        20_000, key="haHousekeepingInterval", min=1, help="a slave or master that is silent for so long is let go"
    )
    ha_flow_control: bool = setting(False, key="haFlowControlEnable", help="limit what is sent to a slave")
    ha_bytes_per_second: int = setting(
        100 * MIB, key="maxHaTransferByteInSecond", min=1024, help="to so many bytes in a second"
    )
    ha_max_gap_bytes: int = setting(
        256 * MIB, key="haMaxGapNotInSync", min=1, help="a slave that lacks less than this is in sync"
    )
    ha_unheard_ms: int = setting(
        15_000,
        key="haMaxTimeSlaveNotCatchup",
        min=1,
        help="a slave that is silent for so long is not in sync; one that was sent bytes must answer in slaveTimeout",
    )
    slave_timeout_ms: int = setting(
        3000, key="slaveTimeout", min=1, help="longest wait of a put for slaves (FLUSH_SLAVE_TIMEOUT after it)"
    )
    in_sync_replicas: int = setting(
        0,
        key="inSyncReplicas",
        min=0,
        max=64,
        help="brokers, the SYNC_MASTER among them, that must have a message; 0: a slave must, and where none is the "
        "answer is SLAVE_NOT_AVAILABLE; 1, the default of RocketMQ 5: the master alone. "
        "With enableControllerMode 0 means all of the sync-state set",
    )
    min_in_sync_replicas: int = setting(
        1, key="minInSyncReplicas", min=1, max=64, help="with fewer brokers in sync a SYNC_MASTER takes no messages"
    )
    total_replicas: int = setting(
        1,
        key="totalReplicas",
        min=1,
        max=64,
        help="brokers of the set; with several and enableSlaveActingMaster a broker hears the others before it serves",
    )
    auto_in_sync_replicas: bool = setting(
        False,
        key="enableAutoInSyncReplicas",
        help="wait for no more brokers than are in sync, as long as these are minInSyncReplicas",
    )
    all_ack_in_sync: bool = setting(
        False, key="allAckInSyncStateSet", help="all brokers that are in sync must have a message"
    )
    async_learner: bool = setting(
        False,
        key="asyncLearner",
        help="this broker copies, but nobody waits for it and it never becomes master, with enableControllerMode",
    )
    sync_from_last_file: bool = setting(
        False,
        key="syncFromLastFile",
        help="a slave without a log copies its master's newest file only, with enableControllerMode",
    )
    offset_check_in_slave: bool = setting(
        False, key="offsetCheckInSlave", help="a slave corrects offsets that it does not have, as a master does"
    )

    # signals
    page_cache_busy_ms: int = setting(
        1000, key="osPageCacheBusyTimeOutMills", min=1, help="an append longer than this means: busy"
    )

    def __post_init__(self) -> None:
        check_bounds(self)
