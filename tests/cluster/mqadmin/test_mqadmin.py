"""What the names of mqadmin show and change; the comparison with RocketMQ's own tool is in tests/interop."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.client import Message, ReceivedMessage
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import Done, skyrocket
from tests.waiting import wait_until


@pytest.fixture
def shop(rocketmq: LocalCluster) -> Iterator[dict[str, str]]:
    """Orders with four messages, all consumed by Billing, whose consumer runs; the words that commands are made of."""
    rocketmq.create_topic("Orders", queues=2)
    seen: list[ReceivedMessage] = []
    consumer = rocketmq.push_consumer("Billing")
    consumer.on("Orders")(seen.append)
    with rocketmq.producer("Shop") as producer, consumer, rocketmq.admin() as admin:
        sent = [producer.send(Message("Orders", b"body-%d" % i, "paid", [f"key-{i}"])) for i in range(4)]
        wait_until(lambda: len(seen) == 4)
        wait_until(lambda: sum(each.lag for each in admin.consumer_lag("Billing", "Orders")) == 0)
        wait_until(lambda: any("Shop" in table.groups for table in admin.producers().values()))  # its first heartbeat
        (member,) = admin.consumer_connections("Billing").connections
        yield {
            "b": rocketmq.broker_addresses["broker-a"],
            "id": sent[3].offset_message_id,
            "unique": sent[3].message_id,
            "client": member.client_id,
        }


def run(rocketmq: LocalCluster, command: str) -> Done:
    return skyrocket(rocketmq, "mqadmin", *command.split())


def said(rocketmq: LocalCluster, command: str) -> str:
    done = run(rocketmq, command)
    assert done.code == 0, f"{command}: {done.errors}"
    return done.output


# What must be printed; the placeholders are those of the fixture.
SHOWN = [
    ("clusterList", r"DefaultCluster +broker-a +0 +{b} +V\d"),
    ("clusterList -m", r"DefaultCluster +broker-a +\d+ +\d+ +\d+ +\d+"),
    ("topicList", r"(?m)^Orders$"),
    ("topicList -c", r"DefaultCluster +Orders +Billing"),
    ("topicRoute -t Orders", r'"writeQueueNums": 2'),
    ("topicRoute -t Orders -l", r"DefaultCluster +broker-a +\{{0={b}\}} +2 +2 +6"),
    ("topicClusterList -t Orders", r"(?m)^DefaultCluster$"),
    ("topicStatus -t Orders", r"broker-a +1 +0 +2 +20\d\d-"),
    ("brokerStatus -b {b}", r"(?m)^brokerVersionDesc +: V\d"),
    ("brokerStatus -c DefaultCluster", r"(?m)^{b} +brokerVersionDesc +: V\d"),
    ("statsAll", r"(?m)^Orders +Billing +0 "),
    ("allocateMQ -t Orders -i 10.0.0.5,10.0.0.6", r'"10.0.0.6":\[\{{"brokerName":"broker-a","queueId":1'),
    ("queryMsgById -i {id} -t Orders", r"Keys: +\[key-3\]"),
    ("queryMsgById -i {id} -t Orders", r"trackType=CONSUMED"),
    ("queryMsgById -i {id} -t Orders -f UTF-8", r"Message Body: +body-3"),
    ("queryMsgById -i {id} -t Orders -g Billing -d {client}", r"consumeResult=CR_SUCCESS"),
    ("queryMsgByKey -t Orders -k key-3", r"{unique} +\d"),
    ("queryMsgByUniqueKey -i {unique} -t Orders", r"Keys: +\[key-3\]"),
    ("queryMsgByOffset -t Orders -b broker-a -i 0 -o 1", r"Queue Offset: +1"),
    ("printMsg -t Orders -d true", r"BODY: body-3"),
    ("printMsgByQueue -t Orders -a broker-a -i 0 -p true -d true", r"queueId=0.*BODY: body-\d"),
    ("printMsgByQueue -t Orders -a broker-a -i 0 -f true", r"Tag: paid +Count: 2"),
    ("consumeMessage -t Orders -b broker-a -i 0 -o 0 -c 1", r"Consume ok"),
    ("consumeMessage -t Orders", r"queueId=1\] print msg finished. status=NO_NEW_MSG, offset=2"),
    ("getColdDataFlowCtrInfo -c DefaultCluster", r"============Master: {b}============"),
    ("queryMsgByKey -t Orders -k paid -p T", r"{unique} +\d"),
    ("queryMsgByUniqueKey -t Orders -i {unique} -s 0", r"Keys: +\[key-3\]"),
    ("queryCq -t Orders -q 0 -i 0 -c 3 -b {b}", r"max: 2, min: 0"),
    ("consumerConnection -g Billing", r"Orders +\*"),
    ("consumerConnection -g Billing", r"MessageModel: CLUSTERING"),
    ("consumerStatus -g Billing -i {client}", r"#Consumer Properties#"),
    ("producerConnection -g Shop -t Orders", r"0001 +\S+ +127.0.0.1:\d+ +PYTHON"),
    ("producer -b {b}", r"producer group \(Shop\) instance : clientId="),
    ("consumerProgress -g Billing", r"Orders +broker-a +0 +2 +2 +0 "),
    ("consumerProgress -g Billing -s true", r"Orders +broker-a +0 +2 +2 +\d+\.\d+\.\d+\.\d+ +0 "),
    ("consumerProgress", r"Billing +1 +V"),
    ("brokerConsumeStats -b {b}", r"Orders +Billing +broker-a +0 +2 +2 +0"),
    ("sendMessage -t Orders -p text -k adminKey -c TagA", r"broker-a +\d +SEND_OK"),
    ("sendMsgStatus -b broker-a -s 10 -c 1", r"rt=\d+ms, SendResult=SendResult \[sendStatus=SEND_OK"),
    ("checkMsgSendRT -t Orders -a 2 -s 10", r"Avg RT: \d"),
    ("getConsumerConfig -g Billing", r"retryMaxTimes += +16"),
    ("getBrokerConfig -b {b}", r"brokerName += +broker-a"),
    ("getBrokerConfig -c DefaultCluster", r"Master: {b}"),
    ("getNamesrvConfig", r"orderMessageEnable += +false"),
    ("haStatus -b {b}", r"#MasterAddr\s+{b}"),
    ("getColdDataFlowCtrInfo -b {b}", r"cgColdReadThreshold"),
    ("exportPopRecord -b {b} -d true", r"brokerAddr={b}, dryRun=true"),
    ("cleanExpiredCQ", r"success"),
    ("cleanUnusedTopic -b {b}", r"success"),
    ("deleteExpiredCommitLog -c DefaultCluster", r"success"),
    ("resetMasterFlushOffset -b {b} -o 7", r"reset master flush offset to 7 success"),
    ("setCommitLogReadAheadMode -b {b} -m 0", r"readahead mode success, mode: 0"),
    ("checkRocksdbCqWriteProgress -c DefaultCluster -t Orders", r"broker-a check doing"),
]


def test_every_reading_name_shows_what_rocketmqs_shows(rocketmq: LocalCluster, shop: dict[str, str]) -> None:
    for command, pattern in SHOWN:
        printed = said(rocketmq, command.format(**shop))
        wanted = pattern.format(**{name: re.escape(text) for name, text in shop.items()})
        assert re.search(wanted, printed), f"{command}: no {wanted} in\n{printed}"


def test_what_is_not_there_is_4_with_rocketmqs_code(rocketmq: LocalCluster, shop: dict[str, str]) -> None:
    for command, words in [
        ("topicRoute -t Nowhere", "CODE: 17  DESC: No topic route info in name server for the topic: Nowhere"),
        ("consumerProgress -g Nobody", "CODE: 17  DESC: No topic route info in name server for the topic: %RETRY%"),
        ("resetOffsetByTime -g Nobody -t Orders -s now", "CODE: 26"),
        ("queryMsgById -i 7F000001000078BF00000000000FFFFF -t Orders", "CODE: 208"),
        ("queryMsgByKey -t Orders -k nobody", "CODE: 208"),
        ("queryMsgByUniqueKey -t Orders -i {unique} -s 0 -e 5", "CODE: 208"),
        ("queryMsgByOffset -t Orders -b broker-a -i 0 -o 999", "has no offset 999"),
        ("getConsumerConfig -g Nobody", "there is no group Nobody"),
        ("updateOrderConf -t Orders -m get", "CODE: 22"),
    ]:
        done = run(rocketmq, command.format(**shop))
        assert words in done.errors, f"{command}: {done}"
        assert done.code in (1, 4), command
    for command in (
        "cloneGroupOffset -s Nobody -d Billing -t Orders",
        "statsAll -t Nowhere",
        "printMsgByQueue -t Orders -a broker-a -i 99",
        "consumeMessage -t Orders -b broker-z",
        "consumeMessage -t Orders -b broker-a -i -1",
        "resetOffsetByTime -g Billing -t Orders -s now -b {b} -q 99",
    ):
        assert run(rocketmq, command.format(**shop)).code == 4, command
    assert run(rocketmq, "updateStaticTopic -c DefaultCluster -t S -qn 4").code == 1
    assert run(rocketmq, "noSuchName").code == 2
    assert run(rocketmq, "topicStatus").code == 2
    assert run(rocketmq, "allocateMQ -t Orders -i ,").code == 2
    assert run(rocketmq, "queryMsgById -t Orders -i ,").code == 2
    assert run(rocketmq, "brokerConsumeStats -b {b} -t soon".format(**shop)).code == 2


def test_words_that_belong_to_no_option_are_named_and_change_nothing(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    done = run(rocketmq, "topicStatus extra -t Orders more -- -h")
    assert done.code == 0, done.errors
    assert done.output == run(rocketmq, "topicStatus -t Orders").output
    assert "no option takes 'extra' 'more' '-h': ignored" in done.errors


def test_topics_change_in_what_is_named_alone(rocketmq: LocalCluster) -> None:
    broker = rocketmq.broker_addresses["broker-a"]
    said(rocketmq, f"updateTopic -b {broker} -t Orders -r 4 -w 4 -p 6 -a +message.type=FIFO")
    text = said(rocketmq, f"updateTopic -b {broker} -t Orders -p 4")  # RocketMQ would make 8 queues of it
    assert "readQueueNums=4, writeQueueNums=4, perm=R--" in text
    route = json.loads(said(rocketmq, "topicRoute -t Orders"))
    assert (route["queueDatas"][0]["readQueueNums"], route["queueDatas"][0]["perm"]) == (4, 4)
    said(rocketmq, f"updateTopicPerm -b {broker} -t Orders -p 6")
    with rocketmq.admin() as admin:
        assert admin.topic_config("Orders").message_type == "FIFO"
    assert "set cluster orderConf" in said(rocketmq, "updateTopic -c DefaultCluster -t Orders -o true")
    assert "[broker-a:4]" in said(rocketmq, "updateOrderConf -t Orders -m get")
    said(rocketmq, "updateOrderConf -t Orders -m delete")
    said(rocketmq, "deleteTopic -c DefaultCluster -t Orders")
    assert run(rocketmq, "topicRoute -t Orders").code == 4


def test_lists_of_topics_and_groups_come_from_files(rocketmq: LocalCluster, tmp_path: Path) -> None:
    topics, groups = tmp_path / "topics.json", tmp_path / "groups.json"
    topics.write_text(json.dumps([{"topicName": "Listed", "readQueueNums": 3, "writeQueueNums": 3, "perm": 6}]))
    groups.write_text(json.dumps([{"groupName": "ListedGroup", "retryMaxTimes": 7}]))
    printed = said(rocketmq, f"updateTopicList -c DefaultCluster -f {topics}")
    assert "please check the result later" in printed
    assert "usage" not in printed
    said(rocketmq, f"updateSubGroupList -c DefaultCluster -f {groups}")
    assert re.search(r"retryMaxTimes += +7", said(rocketmq, "getConsumerConfig -g ListedGroup"))
    assert '"readQueueNums": 3' in said(rocketmq, "topicRoute -t Listed")
    for name in ("exportMetadata", "exportConfigs", "exportMetrics"):
        said(rocketmq, f"{name} -c DefaultCluster -f {tmp_path}")
    metadata = json.loads((tmp_path / "metadata.json").read_text())
    assert metadata["topicConfigTable"]["Listed"]["readQueueNums"] == 3
    assert metadata["subscriptionGroupTable"]["ListedGroup"]["retryMaxTimes"] == 7
    assert json.loads((tmp_path / "configs.json").read_text())["clusterScale"]["masterBrokerSize"] == 1
    quota = json.loads((tmp_path / "metrics.json").read_text())["evaluateReport"]["broker-a"]["runtimeQuota"]
    assert quota["topicSize"] == 1  # not those that are named after broker and cluster


def test_groups_and_offsets_are_changed(rocketmq: LocalCluster, shop: dict[str, str]) -> None:
    broker = shop["b"]
    policy = '{"type":"EXPONENTIAL","exponentialRetryPolicy":{"initial":5000,"max":60000,"multiplier":2}}'
    said(rocketmq, f"updateSubGroup -b {broker} -g New -q 2 -r 5 -p {policy}")
    text = said(rocketmq, f"updateSubGroup -b {broker} -g New -s false")  # RocketMQ would reset the rest
    assert "consumeEnable=false" in text
    assert "retryMaxTimes=5" in text
    assert "ExponentialRetryPolicy{initial=5000" in text
    said(rocketmq, f"setConsumeMode -b {broker} -t Orders -g New -m POP -q 4")
    said(rocketmq, "cloneGroupOffset -s Billing -d New -t Orders")
    with rocketmq.admin() as admin:
        assert {each.lag for each in admin.consumer_lag("New", "Orders")} == {0}
    moved = said(rocketmq, "resetOffsetByTime -g New -t Orders -s 1700000000000")
    assert re.search(r"broker-a +1 +0 ", moved)
    one = said(rocketmq, f"resetOffsetByTime -g New -t Orders -s 0 -b {broker} -q 0 -o 0")
    assert "reset consumer offset to 0" in one
    assert re.search(r"broker-a +0 +2 ", said(rocketmq, "skipAccumulatedMessage -g New -t Orders"))
    online = said(rocketmq, "resetOffsetByTime -g Billing -t Orders -s now")
    assert "start reset consumer offset by specified, group[Billing]" in online
    said(rocketmq, "deleteSubGroup -c DefaultCluster -g New -r true")
    assert run(rocketmq, "getConsumerConfig -g New").code == 4


def test_settings_and_values_are_changed(rocketmq: LocalCluster) -> None:
    broker = rocketmq.broker_addresses["broker-a"]
    said(rocketmq, f"updateBrokerConfig -b {broker} -k waitTimeMillsInSendQueue -v 300")
    assert re.search(r"waitTimeMillsInSendQueue += +300", said(rocketmq, f"getBrokerConfig -b {broker}"))
    said(rocketmq, "updateNamesrvConfig -k orderMessageEnable -v true")
    said(rocketmq, "updateKvConfig -s Space -k key -v value")
    said(rocketmq, "deleteKvConfig -s Space -k key")
    assert re.search(r"OK, \d+", said(rocketmq, "wipeWritePerm -b broker-a"))
    assert re.search(r"OK, \d+", said(rocketmq, "addWritePerm -b broker-a"))
    said(rocketmq, f"updateColdDataFlowCtrGroupConfig -b {broker} -g Billing -v 1048576")
    said(rocketmq, f"removeColdDataFlowCtrGroupConfig -b {broker} -g Billing")


def test_a_body_that_was_unpacked_is_not_marked_as_packed(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.producer() as producer:
        producer.send(Message("Orders", b"paid" * 5000))
    assert "sysFlag=768," in said(rocketmq, "printMsg -t Orders")
    assert re.search(r"System Flag: +768\n", said(rocketmq, "queryMsgByOffset -t Orders -b broker-a -i 0 -o 0"))


def test_tables_are_also_rows_of_json(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=2)
    rows = json.loads(said(rocketmq, "topicStatus -t Orders --output json"))
    assert [(row["Broker Name"], row["QID"]) for row in rows] == [("broker-a", 0), ("broker-a", 1)]
    assert {"Topic": "Orders"} in json.loads(said(rocketmq, "topicList --output json"))


def test_the_status_of_a_group_finds_differing_subscriptions(
    rocketmq: LocalCluster, shop: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = said(rocketmq, "consumerStatus -g Billing")
    assert "Same subscription in the same group of consumer" in text
    assert "Rebalance OK" in text
    (file,) = tmp_path.glob("*/*")
    assert "#Consumer RT&TPS#" in file.read_text()


def test_the_account_of_rocketmqs_tools_is_used(
    rocketmq: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "tools.yml").write_text("accessKey: [broken\n")
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path))
    done = run(rocketmq, "topicList")
    assert done.code == 2
    assert "tools.yml cannot be read" in done.errors
