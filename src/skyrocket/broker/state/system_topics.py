"""The topics that a broker has from its first start on."""

from dataclasses import dataclass

from skyrocket.model.permission import PERM_INHERIT, PERM_READ, PERM_WRITE
from skyrocket.model.topic import SCHEDULE_TOPIC, TIMER_TOPIC
from skyrocket.model.topic_config import TopicConfig

TEMPLATE_TOPIC = "TBW102"  # what topics created on first use are copied from

_READ_WRITE = PERM_READ | PERM_WRITE
_SCHEDULE_QUEUES = 18


@dataclass(frozen=True, slots=True)
class SystemTopics:
    """What decides which topics there are; the defaults are those of RocketMQ 5.4.0."""

    cluster_name: str = "DefaultCluster"
    broker_name: str = "broker-a"
    auto_create: bool = True  # autoCreateTopicEnable
    default_queues: int = 8  # defaultTopicQueueNums
    cluster_topic: bool = True  # clusterTopicEnable
    broker_topic: bool = True  # brokerTopicEnable
    trace_topic: str | None = None  # msgTraceTopicName, when traceTopicEnable
    timer_wheel: bool = True  # timerWheelEnable
    revive_queues: int = 8  # reviveQueueNum
    delay_levels: int = _SCHEDULE_QUEUES

    def configs(self) -> tuple[TopicConfig, ...]:
        """The topics, in the order in which RocketMQ creates them."""
        template = [_topic(TEMPLATE_TOPIC, self.default_queues, _READ_WRITE | PERM_INHERIT)] if self.auto_create else []
        trace = [_topic(self.trace_topic)] if self.trace_topic else []
        timer = [_topic(TIMER_TOPIC)] if self.timer_wheel else []
        return (
            _topic("SELF_TEST_TOPIC"),
            *template,
            _topic("BenchmarkTest", 1024),
            _topic(self.cluster_name, 16, _found_by_name(self.cluster_topic)),
            _topic(self.broker_name, 1, _found_by_name(self.broker_topic)),
            _topic("OFFSET_MOVED_EVENT"),
            # RocketMQ: always 18 queues here; more levels than that it uses without telling.
            _topic(SCHEDULE_TOPIC, max(_SCHEDULE_QUEUES, self.delay_levels)),
            *trace,
            _topic(f"{self.cluster_name}_REPLY_TOPIC"),
            _topic(revive_topic(self.cluster_name), self.revive_queues),
            _topic(f"rmq_sys_SYNC_BROKER_MEMBER_{self.broker_name}", 1, PERM_INHERIT),
            _topic("RMQ_SYS_TRANS_HALF_TOPIC"),
            _topic("RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"),
            _topic("RMQ_SYS_TRANS_OP_HALF_TOPIC"),
            _topic("RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"),
            *timer,
        )


def revive_topic(cluster_name: str) -> str:
    """Where pop keeps its check points and acknowledgements."""
    return f"rmq_sys_REVIVE_LOG_{cluster_name}"


def _found_by_name(enabled: bool) -> int:
    return PERM_INHERIT | _READ_WRITE if enabled else PERM_INHERIT


def _topic(name: str, queues: int = 1, permission: int = _READ_WRITE) -> TopicConfig:
    return TopicConfig(name, read_queues=queues, write_queues=queues, permission=permission)
