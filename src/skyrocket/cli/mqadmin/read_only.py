"""Which commands of mqadmin change nothing: a read-only context lets these pass, and no others."""

from typing import Final

from skyrocket.cli.mqadmin.options import Given

# What is not here counts as a change, so that a new name is refused until somebody has thought about it.
READING: Final = frozenset(
    {
        *("topicList", "topicRoute", "topicStatus", "topicClusterList", "allocateMQ"),
        *("getConsumerConfig", "consumerConnection", "consumerStatus", "producerConnection", "producer"),
        *("startMonitoring", "consumerProgress", "brokerConsumeStats", "statsAll"),
        *("clusterList", "brokerStatus", "haStatus", "getBrokerEpoch", "getBrokerConfig", "getColdDataFlowCtrInfo"),
        *("checkRocksdbCqWriteProgress", "queryMsgById", "queryMsgByKey", "queryMsgByUniqueKey", "queryMsgByOffset"),
        *("queryMsgTraceById", "queryCq", "printMsg", "printMsgByQueue", "consumeMessage", "dumpCompactionLog"),
        *("getNamesrvConfig", "getControllerMetaData", "getSyncStateSet", "getControllerConfig"),
        *("exportMetadata", "exportConfigs", "exportMetrics", "exportMetadataInRocksDB"),
        *("getUser", "listUser", "getAcl", "listAcl"),
    }
)


def changes_something(command: str, given: Given) -> bool:
    """Whether a cluster is different afterwards; some names only look, or do, by their options."""
    if command == "updateOrderConf":
        return given.text("method", "").strip().lower() != "get"
    if command in ("queryMsgById", "queryMsgByUniqueKey"):  # these also send a message again, or hand it to a client
        return given.is_true("sendMessage") or "clientId" in given
    return command not in READING
