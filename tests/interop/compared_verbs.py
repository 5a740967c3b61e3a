"""mqadmin's names, run by RocketMQ's tool and by ours against the same server: the commands, and where rows may differ.

Placeholders: {n} name server, {b} broker, {id} and {unique} ids of the message `body-3` with key `key-3`, {client} a
client of the group Readers, {out} a directory, {x} J for RocketMQ's tool and S for ours: what is changed has it in its
name, so that both begin with the same cluster.
"""

from dataclasses import dataclass

ALL = ("skyrocket", "5.4.0", "4.9.7")
SINCE_5 = ("skyrocket", "5.4.0")


@dataclass(frozen=True)
class Compared:
    """A command; `reason` says why rows differ, where they do."""

    command: str
    servers: tuple[str, ...] = ALL
    reason: str = ""
    at_4: str = ""  # why rows differ at 4.9.7 alone

    def reason_at(self, server: str) -> str:
        return self.reason or (self.at_4 if server == "4.9.7" else "")

    @property
    def name(self) -> str:
        return self.command.split()[0]

    @property
    def phase(self) -> int:
        """0 looks, 1 changes what others show, 2 sends; both tools are done with one before the next begins."""
        if self.name.startswith(("send", "checkMsg")):
            return 2
        return 0 if self.name.startswith(_LOOKS) else 1


_LOOKS = ("cluster", "topic", "allocate", "broker", "stats", "consume", "producer", "query", "print", "get", "ha")


def same(command: str, servers: tuple[str, ...] = ALL) -> Compared:
    return Compared(command, servers)


def differs(command: str, reason: str, servers: tuple[str, ...] = ALL) -> Compared:
    return Compared(command, servers, reason)


# RocketMQ's tool of 5.4.0 asks every broker for static topics; one of 4.9 does not know the question.
STATIC = "RocketMQ's tool fails: it asks a 4.9 broker for static topics; ours shows the rows"


def fails_at_4(command: str, reason: str = STATIC) -> Compared:
    return Compared(command, at_4=reason)


COMPARED = (
    same("clusterList -n {n}"),
    same("clusterList -n {n} -m"),
    same("topicList -n {n}"),
    same("topicList -n {n} -c"),
    same("topicRoute -n {n} -t Orders"),
    same("topicRoute -n {n} -t Orders -l"),
    same("topicRoute -n {n} -t Nowhere"),
    fails_at_4("topicStatus -n {n} -t Orders"),
    same("topicClusterList -n {n} -t Orders"),
    differs("allocateMQ -n {n} -t Orders -i 10.0.0.5,10.0.0.6", "RocketMQ shares out queues in a hash set's order"),
    same("brokerStatus -n {n} -b {b}"),
    same("brokerStatus -n {n} -c DefaultCluster"),
    same("statsAll -n {n} -t Orders"),
    same("consumerConnection -n {n} -g Readers"),
    same("consumerConnection -n {n} -g Nobody"),
    differs("consumerStatus -n {n} -g Readers", "the file's folder is the millisecond of the call"),
    same("consumerStatus -n {n} -g Readers -i {client}"),
    same("producerConnection -n {n} -g Senders -t Orders"),
    same("producer -b {b}"),
    fails_at_4("consumerProgress -n {n} -g Readers"),
    fails_at_4("consumerProgress -n {n} -g Readers -s true"),
    same("consumerProgress -n {n}"),
    same("consumerProgress -n {n} -g Nobody"),
    same("brokerConsumeStats -n {n} -b {b}"),
    fails_at_4("queryMsgById -n {n} -i {id} -t Orders"),
    same("queryMsgById -n {n} -i {id} -t Orders -g Readers -d {client}"),
    same("queryMsgById -n {n} -i 7F000001000078BF00000000000FFFFF -t Orders"),
    differs(
        "queryMsgByKey -n {n} -t Orders -k key-3", "5.4.0's has a column more than 5.3's, with RocksDB's key of it"
    ),
    fails_at_4("queryMsgByUniqueKey -n {n} -i {unique} -t Orders"),
    fails_at_4("queryMsgByOffset -n {n} -t Orders -b broker-a -i 0 -o 1"),
    same("printMsg -n {n} -t Orders -d true"),
    same("printMsgByQueue -n {n} -t Orders -a broker-a -i 0 -p true -d true"),
    same("printMsgByQueue -n {n} -t Orders -a broker-a -i 0 -f true"),
    same("consumeMessage -n {n} -t Orders -b broker-a -i 0 -o 0 -c 2"),
    same("queryCq -n {n} -t Orders -q 0 -i 0 -c 3 -b {b}"),
    same("getBrokerConfig -n {n} -b {b}"),
    same("getNamesrvConfig -n {n}"),
    same("getConsumerConfig -n {n} -g Readers"),
    same("haStatus -n {n} -b {b}", SINCE_5),
    same("getColdDataFlowCtrInfo -n {n} -b {b}", SINCE_5),
    same("getBrokerEpoch -n {n} -b broker-a", SINCE_5),
    same("updateTopic -n {n} -b {b} -t New{x} -r 4 -w 4 -p 6"),
    same("updateTopic -n {n} -c DefaultCluster -t Fifo{x} -r 2 -w 2 -a +message.type=FIFO", SINCE_5),
    same("updateTopic -n {n} -b {b} -t Bad{x} -r 4 -w 4 -a +no.such=1", SINCE_5),
    same("updateTopicPerm -n {n} -b {b} -t New{x} -p 4"),
    differs("updateTopic -n {n} -b {b} -t New{x} -p 6", "RocketMQ resets queues that are not named to 8"),
    same("updateTopicList -n {n} -b {b} -f {out}/topics{x}.json", SINCE_5),
    same("updateSubGroup -n {n} -b {b} -g Group{x} -s true -m true -d true -q 2 -r 5 -i 0 -w 1 -a true"),
    differs("updateSubGroup -n {n} -b {b} -g Group{x} -r 6", "RocketMQ resets fields that are not named"),
    same("updateSubGroupList -n {n} -b {b} -f {out}/groups{x}.json", SINCE_5),
    same("setConsumeMode -n {n} -b {b} -t Orders -g Group{x} -m POP -q 4", SINCE_5),
    fails_at_4("cloneGroupOffset -n {n} -s Readers -d Group{x} -t Orders"),
    differs("resetOffsetByTime -n {n} -g Group{x} -t Orders -s 1700000000000", "RocketMQ 4.9 resets without a word"),
    differs("skipAccumulatedMessage -n {n} -g Group{x} -t Orders", "a group without clients: see resetOffsetByTime"),
    same("resetOffsetByTime -n {n} -g Readers -t Orders -s 1700000000000"),
    same("skipAccumulatedMessage -n {n} -g Readers -t Orders"),
    same("deleteSubGroup -n {n} -b {b} -g Group{x} -r true"),
    same("deleteTopic -n {n} -c DefaultCluster -t New{x}"),
    same("updateBrokerConfig -n {n} -b {b} -k waitTimeMillsInSendQueue -v 300"),
    same("updateNamesrvConfig -n {n} -k clusterTest -v false"),
    same("updateKvConfig -n {n} -s Space{x} -k k1 -v v1"),
    same("deleteKvConfig -n {n} -s Space{x} -k k1"),
    same("updateOrderConf -n {n} -t Orders -m put -v broker-a:4"),
    same("updateOrderConf -n {n} -t Orders -m get"),
    same("updateOrderConf -n {n} -t Orders -m delete"),
    same("wipeWritePerm -n {n} -b broker-a"),
    same("addWritePerm -n {n} -b broker-a"),
    same("cleanExpiredCQ -n {n} -b {b}"),
    same("cleanUnusedTopic -n {n} -b {b}"),
    same("deleteExpiredCommitLog -n {n} -b {b}"),
    same("setCommitLogReadAheadMode -n {n} -b {b} -m 0", SINCE_5),
    same("updateColdDataFlowCtrGroupConfig -n {n} -b {b} -g Readers -v 1048576", SINCE_5),
    same("removeColdDataFlowCtrGroupConfig -n {n} -b {b} -g Readers", SINCE_5),
    same("resetMasterFlushOffset -n {n} -b {b} -o 7", SINCE_5),
    same("checkRocksdbCqWriteProgress -n {n} -c DefaultCluster -t Orders", SINCE_5),
    differs("exportPopRecord -n {n} -b {b}", "RocketMQ takes -d false for a dry run, we -d true", SINCE_5),
    same("exportMetadata -n {n} -c DefaultCluster -f {out}"),
    same("exportConfigs -n {n} -c DefaultCluster -f {out}"),
    fails_at_4("exportMetrics -n {n} -c DefaultCluster -f {out}", "RocketMQ's tool falls over what 4.9 does not count"),
    same("sendMessage -n {n} -t Orders -p text -k adminKey -c TagA"),
    same("sendMsgStatus -n {n} -b broker-a -s 128 -c 2"),
    same("checkMsgSendRT -n {n} -t Orders -a 3 -s 10"),
)

# The other names, and why this table does not run them.
ELSEWHERE = {
    "clusterRT": "never ends, and its rows are times",
    "startMonitoring": "never ends, and RocketMQ's prints nothing",
    "queryMsgTraceById": "needs traces: tests/cluster/mqadmin/test_accounts_and_traces.py",
    "createUser": "tests/cluster/mqadmin/test_accounts_and_traces.py; passwords are not printed",
    "updateUser": "as createUser",
    "deleteUser": "as createUser",
    "getUser": "as createUser; RocketMQ prints the password",
    "listUser": "as createUser; RocketMQ prints passwords",
    "copyUser": "as createUser",
    "createAcl": "as createUser",
    "updateAcl": "as createUser",
    "deleteAcl": "as createUser",
    "getAcl": "as createUser",
    "listAcl": "as createUser",
    "copyAcl": "as createUser",
    "getSyncStateSet": "needs a controller",
    "getControllerMetaData": "needs a controller",
    "getControllerConfig": "needs a controller",
    "updateControllerConfig": "needs a controller",
    "electMaster": "needs a controller",
    "cleanBrokerMetadata": "needs a controller",
    "addBroker": "needs RocketMQ's broker container",
    "removeBroker": "needs RocketMQ's broker container",
    "dumpCompactionLog": "reads a local file: tests/cluster/mqadmin/test_accounts_and_traces.py",
    "rocksDBConfigToJson": "reads RocksDB, which neither server uses here",
    "exportMetadataInRocksDB": "reads RocksDB, which neither server uses here",
    "updateStaticTopic": "not made by our tool: it says so and leaves with 1",
    "remappingStaticTopic": "not made by our tool: it says so and leaves with 1",
}
