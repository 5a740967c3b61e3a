"""RocketMQ's mqadmin as data: its 89 names, the family that answers each, and their options.

An option is `-s --long`, with `!` where it is required, `|` where one of those so marked is, and `?` where it is a flag
without a value; `--long` alone has no short form. Every command also takes `-n --namesrvAddr` and `-h --help?`.
"""

from typing import Final, NamedTuple


class Command(NamedTuple):
    """One name of mqadmin."""

    family: str  # the module that answers it
    line: str  # what it does
    options: str


COMMANDS: Final[dict[str, Command]] = {
    "updateTopic": Command(
        "topics",
        "Create or change a topic.",
        "-b --brokerAddr|  -c --clusterName|  -a --attributes  -t --topic!  -r --readQueueNums  "
        "-w --writeQueueNums  -p --perm  -o --order  -u --unit  -s --hasUnitSub",
    ),
    "updateTopicList": Command(
        "topics",
        "Create or change many topics.",
        "-b --brokerAddr|  -c --clusterName|  -f --filename!",
    ),
    "deleteTopic": Command(
        "topics",
        "Delete a topic.",
        "-t --topic!  -c --clusterName!",
    ),
    "updateTopicPerm": Command(
        "topics",
        "Change who may read and write a topic.",
        "-b --brokerAddr  -c --clusterName  -t --topic!  -p --perm!",
    ),
    "topicList": Command(
        "topics",
        "All topics.",
        "-c --clusterModel?",
    ),
    "topicRoute": Command(
        "topics",
        "Where a topic is.",
        "-t --topic!  -l --list?",
    ),
    "topicStatus": Command(
        "topics",
        "The offsets of a topic's queues.",
        "-t --topic!  -c --cluster",
    ),
    "topicClusterList": Command(
        "topics",
        "The clusters that have a topic.",
        "-t --topic!",
    ),
    "allocateMQ": Command(
        "topics",
        "How queues of a topic would be shared out.",
        "-t --topic!  -i --ipList!",
    ),
    "updateOrderConf": Command(
        "topics",
        "The queues of an ordered topic.",
        "-t --topic!  -v --orderConf  -m --method!",
    ),
    "updateStaticTopic": Command(
        "static_topics",
        "Create or widen a static topic.",
        "-c --clusters|  -b --brokers|  -t --topic!  -qn --totalQueueNum!  -mf --mapFile  -fr --forceReplace",
    ),
    "remappingStaticTopic": Command(
        "static_topics",
        "Move the queues of a static topic to other brokers.",
        "-c --clusters|  -b --brokers|  -t --topic!  -mf --mapFile  -fr --forceReplace",
    ),
    "updateSubGroup": Command(
        "groups",
        "Create or change a group.",
        "-b --brokerAddr  -c --clusterName  -g --groupName!  -s --consumeEnable  -m --consumeFromMinEnable  "
        "-d --consumeBroadcastEnable  -o --consumeMessageOrderly  -q --retryQueueNums  -r --retryMaxTimes  "
        "-p --groupRetryPolicy  -i --brokerId  -w --whichBrokerWhenConsumeSlowly  "
        "-a --notifyConsumerIdsChanged  --attributes",
    ),
    "updateSubGroupList": Command(
        "groups",
        "Create or change many groups.",
        "-b --brokerAddr|  -c --clusterName|  -f --filename!",
    ),
    "deleteSubGroup": Command(
        "groups",
        "Delete a group.",
        "-b --brokerAddr  -c --clusterName  -g --groupName!  -r --removeOffset",
    ),
    "getConsumerConfig": Command(
        "groups",
        "The settings of a group.",
        "-g --groupName!",
    ),
    "setConsumeMode": Command(
        "groups",
        "Let a group pull or pop a topic.",
        "-b --brokerAddr  -c --clusterName  -t --topicName!  -g --groupName!  -m --mode!  -q --popShareQueueNum",
    ),
    "consumerConnection": Command(
        "clients",
        "The clients of a group and their subscriptions.",
        "-g --consumerGroup!  -b --brokerAddr",
    ),
    "consumerStatus": Command(
        "clients",
        "What the clients of a group tell of themselves.",
        "-g --consumerGroup!  -i --clientId  -b --brokerAddr  -s --jstack?",
    ),
    "producerConnection": Command(
        "clients",
        "The clients of a producer group.",
        "-g --producerGroup!  -t --topic!",
    ),
    "producer": Command(
        "clients",
        "The producers that are connected to a broker.",
        "-b --broker!",
    ),
    "startMonitoring": Command(
        "clients",
        "Watch groups for lag and stuck clients, until stopped.",
        "",
    ),
    "consumerProgress": Command(
        "progress",
        "How far groups are.",
        "-g --groupName  -t --topicName  -s --showClientIP  -c --cluster",
    ),
    "brokerConsumeStats": Command(
        "progress",
        "How far all groups are in all topics of a broker.",
        "-b --brokerAddr!  -t --timeoutMillis  -l --level  -o --order",
    ),
    "statsAll": Command(
        "progress",
        "Rates of topics and groups.",
        "-a --activeTopic?  -t --topic",
    ),
    "resetOffsetByTime": Command(
        "offsets",
        "Move a group to a moment.",
        "-g --group!  -t --topic!  -s --timestamp!  -f --force  -c --cluster  -b --broker  -q --queue  -o --offset",
    ),
    "skipAccumulatedMessage": Command(
        "offsets",
        "Move a group to the end.",
        "-g --group!  -t --topic!  -f --force  -c --cluster",
    ),
    "cloneGroupOffset": Command(
        "offsets",
        "A group goes on in a topic where another one is.",
        "-s --srcGroup!  -d --destGroup!  -t --topic!  -o --offline",
    ),
    "clusterList": Command(
        "cluster",
        "Brokers with their rates.",
        "-m --moreStats?  -i --interval  -c --clusterName",
    ),
    "brokerStatus": Command(
        "cluster",
        "Everything that a broker counts.",
        "-b --brokerAddr|  -c --clusterName|",
    ),
    "haStatus": Command(
        "cluster",
        "How far slaves are behind their masters.",
        "-c --clusterName  -b --brokerAddr  -i --interval",
    ),
    "getBrokerEpoch": Command(
        "cluster",
        "The epochs of logs under a controller.",
        "-c --clusterName  -b --brokerName  -i --interval",
    ),
    "getBrokerConfig": Command(
        "brokers",
        "The settings of brokers.",
        "-b --brokerAddr  -c --clusterName",
    ),
    "updateBrokerConfig": Command(
        "brokers",
        "Change a setting of brokers.",
        "-b --brokerAddr  -c --clusterName  -a --updateAllBroker  -k --key!  -v --value!",
    ),
    "cleanExpiredCQ": Command(
        "brokers",
        "Remove queue files whose messages are gone.",
        "-b --brokerAddr  -c --cluster",
    ),
    "cleanUnusedTopic": Command(
        "brokers",
        "Remove queue files of topics that are gone.",
        "-b --brokerAddr  -c --cluster",
    ),
    "deleteExpiredCommitLog": Command(
        "brokers",
        "Remove log files that are old enough, now.",
        "-b --brokerAddr  -c --cluster",
    ),
    "resetMasterFlushOffset": Command(
        "brokers",
        "Tell a slave where its master's log is on disk.",
        "-b --brokerAddr  -o --offset",
    ),
    "setCommitLogReadAheadMode": Command(
        "brokers",
        "How far the system reads ahead in logs.",
        "-b --brokerAddr  -c --clusterName  -m --commitLogReadAheadMode!",
    ),
    "getColdDataFlowCtrInfo": Command(
        "brokers",
        "Limits for reading old data.",
        "-b --brokerAddr  -c --clusterName",
    ),
    "updateColdDataFlowCtrGroupConfig": Command(
        "brokers",
        "Limit how much old data a group reads.",
        "-b --brokerAddr  -c --clusterName  -g --consumerGroup!  -v --threshold!",
    ),
    "removeColdDataFlowCtrGroupConfig": Command(
        "brokers",
        "Forget a group's limit for reading old data.",
        "-b --brokerAddr  -c --clusterName  -g --consumerGroup!",
    ),
    "exportPopRecord": Command(
        "brokers",
        "Brokers write down their records of pops.",
        "-c --clusterName  -b --brokerAddr  -d --dryRun",
    ),
    "checkRocksdbCqWriteProgress": Command(
        "brokers",
        "Whether queues in files and in RocksDB are equal.",
        "-c --cluster!  --nameserverAddr  -t --topic  -cf --checkFrom",
    ),
    "addBroker": Command(
        "brokers",
        "A broker joins a container.",
        "-c --brokerContainerAddr!  -b --brokerConfigPath!",
    ),
    "removeBroker": Command(
        "brokers",
        "A broker leaves a container.",
        "-c --brokerContainerAddr!  -b --brokerIdentity!",
    ),
    "queryMsgById": Command(
        "messages",
        "Find a message by its id.",
        "-t --topic!  -i --msgId!  -g --consumerGroup  -d --clientId  -s --sendMessage  -u --unitName  "
        "-f --bodyFormat  -c --cluster",
    ),
    "queryMsgByKey": Command(
        "messages",
        "Find messages by a key.",
        "-t --topic!  -k --msgKey!  -b --beginTimestamp  -e --endTimestamp  -m --maxNum  -c --cluster  "
        "-p --keyType  -l --lastKey",
    ),
    "queryMsgByUniqueKey": Command(
        "messages",
        "Find a message by its unique key.",
        "-i --msgId!  -g --consumerGroup  -d --clientId  -t --topic!  -a --showAll?  -c --cluster  "
        "-s --startTime  -e --endTime",
    ),
    "queryMsgByOffset": Command(
        "messages",
        "Find a message by its place in a queue.",
        "-t --topic!  -b --brokerName!  -i --queueId!  -o --offset!  -f --bodyFormat",
    ),
    "queryMsgTraceById": Command(
        "messages",
        "What clients have told about a message.",
        "-i --msgId!  -t --traceTopic  -b --beginTimestamp  -e --endTimestamp  -c --maxNum",
    ),
    "queryCq": Command(
        "messages",
        "Entries of a consume queue.",
        "-t --topic!  -q --queue!  -i --index!  -c --count  -b --broker  -g --consumer",
    ),
    "printMsg": Command(
        "reading",
        "Show the messages of a topic.",
        "-t --topic!  -c --charsetName  -s --subExpression  -b --beginTimestamp  -e --endTimestamp  "
        "-d --printBody  -l --lmqParentTopic",
    ),
    "printMsgByQueue": Command(
        "reading",
        "Show the messages of a queue.",
        "-t --topic!  -a --brokerName!  -i --queueId!  -c --charsetName  -s --subExpression  "
        "-b --beginTimestamp  -e --endTimestamp  -p --print-msg  -d --printBody  -f --calculate",
    ),
    "consumeMessage": Command(
        "reading",
        "Show messages of a topic.",
        "-t --topic!  -b --brokerName  -i --queueId  -o --offset  -g --consumerGroup  -s --beginTimestamp  "
        "-e --endTimestamp  -c --MessageNumber",
    ),
    "dumpCompactionLog": Command(
        "reading",
        "Show the records of a log of a compacted topic.",
        "-f --file",
    ),
    "sendMessage": Command(
        "sending",
        "Send a message.",
        "-t --topic!  -p --body!  -k --key  -c --tags  -b --broker  -i --qid  -m --msgTraceEnable",
    ),
    "checkMsgSendRT": Command(
        "sending",
        "How long sends to a topic take.",
        "-t --topic!  -a --amount  -s --size",
    ),
    "sendMsgStatus": Command(
        "sending",
        "Send messages to the topic of a broker.",
        "-b --brokerName!  -s --messageSize  -c --count",
    ),
    "clusterRT": Command(
        "sending",
        "How long sends to each broker take, again and again.",
        "-a --amount  -s --size  -c --cluster  -p --print-log  -m --machine-room  -i --interval",
    ),
    "wipeWritePerm": Command(
        "name_servers",
        "Name servers send no producer to a broker any more.",
        "-b --brokerName!",
    ),
    "addWritePerm": Command(
        "name_servers",
        "Name servers send producers to a broker again.",
        "-b --brokerName!",
    ),
    "updateKvConfig": Command(
        "name_servers",
        "Name servers keep a value.",
        "-s --namespace!  -k --key!  -v --value!",
    ),
    "deleteKvConfig": Command(
        "name_servers",
        "Name servers forget a value.",
        "-s --namespace!  -k --key!",
    ),
    "getNamesrvConfig": Command(
        "name_servers",
        "The settings of name servers.",
        "",
    ),
    "updateNamesrvConfig": Command(
        "name_servers",
        "Change a setting of name servers.",
        "-k --key!  -v --value!",
    ),
    "getControllerMetaData": Command(
        "controllers",
        "Who leads the controllers.",
        "-a --controllerAddress!",
    ),
    "getSyncStateSet": Command(
        "controllers",
        "The replicas of sets that are in sync.",
        "-a --controllerAddress!  -c --clusterName  -b --brokerName  -i --interval",
    ),
    "electMaster": Command(
        "controllers",
        "Make a replica the master of its set.",
        "-a --controllerAddress!  -b --brokerId!  -bn --brokerName!  -c --clusterName!",
    ),
    "cleanBrokerMetadata": Command(
        "controllers",
        "Controllers forget a set of replicas, or some of it.",
        "-a --controllerAddress!  -b --brokerControllerIdsToClean  -bn --brokerName!  -c --clusterName  "
        "-l --cleanLivingBroker?",
    ),
    "getControllerConfig": Command(
        "controllers",
        "The settings of controllers.",
        "-a --controllerAddress!",
    ),
    "updateControllerConfig": Command(
        "controllers",
        "Change a setting of controllers.",
        "-a --controllerAddress!  -k --key!  -v --value!",
    ),
    "exportMetadata": Command(
        "exports",
        "Topics and groups, to a file.",
        "-c --clusterName  -b --brokerAddr  -f --filePath  -t --topic?  -g --subscriptionGroup?  -s --specialTopic?",
    ),
    "exportConfigs": Command(
        "exports",
        "Settings of brokers, to a file.",
        "-c --clusterName!  -f --filePath",
    ),
    "exportMetrics": Command(
        "exports",
        "Rates and versions of a cluster, to a file.",
        "-c --clusterName!  -f --filePath",
    ),
    "rocksDBConfigToJson": Command(
        "exports",
        "Settings in RocksDB become JSON files.",
        "-t --configType  -p --configPath  -e --exportFile  -j --jsonEnable  --nameserverAddr  -c --cluster  "
        "-b --brokerAddr",
    ),
    "exportMetadataInRocksDB": Command(
        "exports",
        "Topics or groups out of a RocksDB directory.",
        "-p --path!  -t --configType!  -j --jsonEnable",
    ),
    "createUser": Command(
        "accounts",
        "Create a user.",
        "-c --clusterName|  -b --brokerAddr|  -u --username!  -p --password!  -t --userType",
    ),
    "updateUser": Command(
        "accounts",
        "Change a user.",
        "-c --clusterName|  -b --brokerAddr|  -u --username!  -p --password|  -t --userType|  -s --userStatus|",
    ),
    "deleteUser": Command(
        "accounts",
        "Delete a user.",
        "-c --clusterName|  -b --brokerAddr|  -u --username!",
    ),
    "getUser": Command(
        "accounts",
        "One user.",
        "-b --brokerAddr|  -c --clusterName|  -u --username",
    ),
    "listUser": Command(
        "accounts",
        "Users.",
        "-b --brokerAddr|  -c --clusterName|  -f --filter",
    ),
    "copyUser": Command(
        "accounts",
        "Users of one broker are given to others.",
        "-f --fromBroker!  -t --toBroker!  -u --usernames",
    ),
    "createAcl": Command(
        "accounts",
        "Give rights to a user.",
        "-c --clusterName|  -b --brokerAddr|  -s --subject!  -r --resources!  -a --actions!  -i --sourceIp  "
        "-d --decision!",
    ),
    "updateAcl": Command(
        "accounts",
        "Give other rights to a user.",
        "-c --clusterName|  -b --brokerAddr|  -s --subject!  -r --resources!  -a --actions!  -d --decision!  "
        "-i --sourceIp",
    ),
    "deleteAcl": Command(
        "accounts",
        "Take rights from a user.",
        "-c --clusterName|  -b --brokerAddr|  -s --subject!  -r --resources",
    ),
    "getAcl": Command(
        "accounts",
        "The rights of a user.",
        "-b --brokerAddr|  -c --clusterName|  -s --subject",
    ),
    "listAcl": Command(
        "accounts",
        "The rights of users.",
        "-b --brokerAddr|  -c --clusterName|  -s --subject  -r --resource",
    ),
    "copyAcl": Command(
        "accounts",
        "Rights of one broker are given to others.",
        "-f --fromBroker!  -t --toBroker!  -s --subjects",
    ),
}
