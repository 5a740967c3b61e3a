"""Every default that the requirement documents name, beside what the client has."""

import pytest

from skyrocket.client import ProducerSettings, PushConsumerSettings
from skyrocket.client.consumer import concurrent_consumption, process_queue, queue_locks, rebalance
from skyrocket.client.consumer.allocation import Averagely
from skyrocket.client.consumer.process_queue import FlowLimits
from skyrocket.client.consumer.puller import PullRules
from skyrocket.client.consumer.start_position import ConsumeFromWhere, MessageModel
from skyrocket.client.core.settings import DEFAULT_INSTANCE, ClientSettings
from skyrocket.client.sending import broker_faults
from skyrocket.format.compression import CompressionType

PUSH, PRODUCER, CLIENT = PushConsumerSettings(), ProducerSettings(), ClientSettings()

DOCUMENTED = {
    # the document's name: what it says, what the client has
    "sendMsgTimeout 3 s": (3.0, PRODUCER.send_timeout),
    "retryTimesWhenSendFailed 2": (2, PRODUCER.retries),
    "retryTimesWhenSendAsyncFailed 2": (2, PRODUCER.async_retries),
    "retryAnotherBrokerWhenNotStoreOK false": (False, PRODUCER.retry_another_broker_when_not_store_ok),
    "sendLatencyFaultEnable false": (False, PRODUCER.send_latency_fault_enable),
    # The first document says 4 MB, the fifth 4 KB; 4 KB is what RocketMQ has.
    "compressMsgBodyOverHowmuch 4 KB": (4096, PRODUCER.compress_over),
    "compressType zlib": (CompressionType.ZLIB, PRODUCER.compress_type),
    "maxMessageSize 4 MB": (4 << 20, PRODUCER.max_message_size),
    "createTopicKey TBW102": ("TBW102", PRODUCER.template_topic),
    "defaultTopicQueueNums 4": (4, PRODUCER.template_queues),
    "messageModel CLUSTERING": (MessageModel.CLUSTERING, PUSH.message_model),
    "consumeFromWhere LAST_OFFSET": (ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, PUSH.consume_from),
    "consumeTimestamp half an hour ago": (None, PUSH.consume_timestamp),
    "allocateMessageQueueStrategy averagely": (Averagely, type(PUSH.strategy)),
    "consumeThreadMin and consumeThreadMax 20": (20, PUSH.max_concurrency),
    "consumeMessageBatchMaxSize 1": (1, PUSH.consume_message_batch_max_size),
    "pullBatchSize 32": (32, PUSH.pull_batch_size),
    "pullInterval 0": (0.0, PUSH.pull_interval),
    "consumeTimeout 15 min": (15 * 60.0, PUSH.consume_timeout),
    "consumeConcurrentlyMaxSpan 2000": (2000, PUSH.consume_concurrently_max_span),
    "pullThresholdForQueue 1000": (1000, PUSH.pull_threshold_for_queue),
    "pullThresholdSizeForQueue 100 MB": (100, PUSH.pull_threshold_size_for_queue),
    "maxReconsumeTimes -1: 16, in order without end": (-1, PUSH.max_reconsume_times),
    "suspendCurrentQueueTimeMillis 1 s": (1.0, PUSH.suspend_current_queue),
    "persistConsumerOffsetInterval 5 s": (5.0, PUSH.persist_interval),
    "pollNameServerInterval 30 s": (30.0, CLIENT.route_refresh),
    "heartbeatBrokerInterval 30 s": (30.0, CLIENT.heartbeat_interval),
    "instanceName DEFAULT": (("DEFAULT", "DEFAULT"), (DEFAULT_INSTANCE, CLIENT.instance_name)),
    "vipChannelEnabled false": (False, CLIENT.vip_channel),
    "rebalance every 20 s": (20.0, rebalance.WAIT_SECONDS),
    "lock renewal every 20 s": (20.0, queue_locks.RENEW_SECONDS),
    "a lock is trusted for 30 s": (30.0, process_queue.LOCK_TRUSTED),
    "a queue that is not pulled for 120 s is dropped": (120.0, process_queue.PULL_IDLE),
    "what cannot be sent back is consumed again after 5 s": (5.0, concurrent_consumption.RESUBMIT_SECONDS),
    "a broker holds a push consumer's pull for 15 s": (15.0, PullRules().suspend),
    "RocketMQ 5: isolation counts as 10 s": (10_000, broker_faults.ISOLATION_LATENCY_MS),
}


@pytest.mark.requirement("C052", "C054", "C115", "C116", "C128", "C148", "E015", "E018")
@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_default_of_the_client_is_that_of_the_documents(name: str) -> None:
    wanted, found = DOCUMENTED[name]
    assert found == wanted


def test_a_puller_goes_by_the_limits_of_its_settings_by_default() -> None:
    assert FlowLimits() == FlowLimits(
        PUSH.pull_threshold_for_queue, PUSH.pull_threshold_size_for_queue, PUSH.consume_concurrently_max_span
    )
