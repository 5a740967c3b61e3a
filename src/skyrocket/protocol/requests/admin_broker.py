"""Administration of a broker itself: settings, state, cleaning, replication."""

from skyrocket.protocol.bodies.controller import EpochCache
from skyrocket.protocol.bodies.replication import HaStatus
from skyrocket.protocol.bodies.statistics import BrokerStatsData, TimerMetrics
from skyrocket.protocol.bodies.tables import KvTable, QueueCheck
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Int, Long, Request, answer, request, wire


@request(RequestCode.UPDATE_BROKER_CONFIG)
class UpdateBrokerConfig(Request[Header]):
    """Change settings; the body is Java properties text."""


@answer
class GetBrokerConfigAnswer(Header):
    """A data version as JSON text."""

    version: str | None = None


@request(RequestCode.GET_BROKER_CONFIG, answer=GetBrokerConfigAnswer)
class GetBrokerConfig(Request[GetBrokerConfigAnswer]):
    """All settings as Java properties text."""


@request(RequestCode.GET_BROKER_RUNTIME_INFO, answer_body=KvTable)
class GetBrokerRuntimeInfo(Request[Header]):
    """Everything that is counted."""


@request(RequestCode.VIEW_BROKER_STATS_DATA, answer_body=BrokerStatsData)
class ViewBrokerStatsData(Request[Header]):
    """One statistic over a minute, an hour and a day."""

    stats_name: str
    stats_key: str


@request(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)
class CleanExpiredConsumeQueue(Request[Header]):
    """Remove queue files whose messages are gone."""


@request(RequestCode.DELETE_EXPIRED_COMMITLOG)
class DeleteExpiredCommitLog(Request[Header]):
    """Remove log files that are old enough, now."""


@request(RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG)
class UpdateColdDataFlowCtrConfig(Request[Header]):
    """Limits for reading old data; the body has a line per group."""


@request(RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG)
class RemoveColdDataFlowCtrConfig(Request[Header]):
    """Forget the limit of a group, whose name is the body."""


@request(RequestCode.GET_COLD_DATA_FLOW_CTR_INFO)
class GetColdDataFlowCtrInfo(Request[Header]):
    """The limits as JSON text."""


@request(RequestCode.SET_COMMITLOG_READ_MODE)
class SetCommitLogReadMode(Request[Header]):
    """How far the system reads ahead; text, because a value that is not a number has its own refusal."""

    read_ahead_mode: str | None = wire("READ_AHEAD_MODE", default=None)


@request(RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, answer_body=QueueCheck)
class CheckRocksDbCqWriteProgress(Request[Header]):
    """Compare queues in files with queues in the KV store."""

    topic: str | None = None
    check_store_time: Long | None = None


@request(RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON)
class ExportRocksDbConfigToJson(Request[Header]):
    """Write settings of the KV store as JSON files; the types are joined by `;`."""

    config_type: str


@request(RequestCode.SWITCH_TIMER_ENGINE)
class SwitchTimerEngine(Request[Header]):
    """R: timers in the KV store, F: in files."""

    engine: str | None = wire("E_T", default=None)


@request(RequestCode.GET_TIMER_CHECK_POINT)
class GetTimerCheckPoint(Request[Header]):
    """The timer's check point, 56 bytes."""


@request(RequestCode.GET_TIMER_METRICS, answer_body=TimerMetrics)
class GetTimerMetrics(Request[Header]):
    """How many messages wait for their time."""


@answer
class HaInfoAnswer(Header):
    """The master's own addresses."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


@request(RequestCode.EXCHANGE_BROKER_HA_INFO, answer=HaInfoAnswer)
class ExchangeBrokerHaInfo(Request[HaInfoAnswer]):
    """Brokers of one name tell each other who is master."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


@request(RequestCode.GET_BROKER_HA_STATUS, answer_body=HaStatus)
class GetBrokerHaStatus(Request[Header]):
    """How replication stands."""


@request(RequestCode.GET_BROKER_EPOCH_CACHE, answer_body=EpochCache)
class GetBrokerEpochCache(Request[Header]):
    """The epochs of a broker's log under a controller."""

    broker_name: str | None = None


@request(RequestCode.RESET_MASTER_FLUSH_OFFSET)
class ResetMasterFlushOffset(Request[Header]):
    """Tell a slave where its master's log is on disk."""

    master_flush_offset: Long | None = None


@request(RequestCode.COMPARE_LOG_TAIL)
class CompareLogTail(Request[Header]):
    """Whether the master's log has the same bytes where the slave's log ends; refused when it has others.

    Ours: Apache's masters answer that they do not know the code.
    """

    end_offset: Long
    size: Int
    crc: Long


@request(RequestCode.ADD_BROKER)
class AddBroker(Request[Header]):
    """A container runs one more broker; we have no containers, but ask those of RocketMQ."""

    config_path: str


@request(RequestCode.REMOVE_BROKER)
class RemoveBroker(Request[Header]):
    """A container stops one of its brokers."""

    broker_name: str
    broker_cluster_name: str
    broker_id: Long
