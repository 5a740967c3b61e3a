"""Bodies that the captures do not show, and what they must survive."""

import zlib

import pytest

from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.batch_ack import BatchAck, BatchAckEntry
from skyrocket.protocol.bodies.heartbeat import Heartbeat
from skyrocket.protocol.bodies.offsets import ConsumerOffsetTable, CorrectionOffsets, ResetOffsets
from skyrocket.protocol.bodies.registration import BrokerRegistration, body_crc, decode_registration
from skyrocket.protocol.bodies.route import BrokerData, QueueData, TopicRoute, encode_route
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo
from skyrocket.protocol.bodies.statistics import BrokerConsumeStats, BrokerStatsData, ConsumeTimeSpans
from skyrocket.protocol.bodies.topics import DATA_VERSION, TopicTable
from skyrocket.protocol.codes import Version
from skyrocket.protocol.errors import MalformedBody
from tests.packed_registrations import encode_compressed

ROUTE = TopicRoute(
    brokers=(BrokerData("broker-a", "DefaultCluster", {1: "192.168.0.2:10911", 0: "192.168.0.1:10911"}),),
    queues=(QueueData("broker-a", 4, 4, 6, 0),),
)
REST = (
    b',"brokerName":"broker-a","cluster":"DefaultCluster","enableActingMaster":false}],"filterServerTable":{},'
    b'"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
)


def test_a_route_has_a_strict_and_an_old_form() -> None:
    strict = b'{"brokerDatas":[{"brokerAddrs":{"0":"192.168.0.1:10911","1":"192.168.0.2:10911"}' + REST
    old = b'{"brokerDatas":[{"brokerAddrs":{1:"192.168.0.2:10911",0:"192.168.0.1:10911"}' + REST
    assert encode_route(ROUTE, strict=True) == strict
    assert encode_route(ROUTE, strict=False) == old
    assert TopicRoute.decode(strict) == TopicRoute.decode(old) == ROUTE
    assert b'"orderTopicConf":"broker-a:4"' in encode_route(
        TopicRoute(order_topic_conf="broker-a:4", mappings_by_broker={}), strict=True
    )


EXACT = [
    (
        ResetOffsets,
        b'{"offsetTable":{{"brokerName":"broker-a","queueId":1,"topic":"TopicA"}:6,'
        b'{"brokerName":"broker-a","queueId":0,"topic":"TopicA"}:5}}',
    ),
    (CorrectionOffsets, b'{"correctionOffsets":{0:9223372036854775807}}'),
    (
        ConsumerOffsetTable,
        b'{"dataVersion":{"counter":7,"stateVersion":0,"timestamp":1},"groupTopicMap":{"CG":["TopicA"]},'
        b'"offsetTable":{"TopicA@CG":{0:12,1:3}}}',
    ),
    (
        BrokerConsumeStats,
        b'{"brokerAddr":"192.168.0.1:10911","consumeStatsList":[{"CG":[{"consumeTps":0.0,"offsetTable":{}}]}],'
        b'"totalDiff":0,"totalInflightDiff":0}',
    ),
    (
        BrokerStatsData,
        b'{"statsDay":{"avgpt":0.0,"sum":0,"tps":0.0},"statsHour":{"avgpt":0.0,"sum":0,"tps":0.0},'
        b'"statsMinute":{"avgpt":0.0,"sum":0,"tps":0.0}}',
    ),
    (
        ConsumeTimeSpans,
        b'{"consumeTimeSpanSet":[{"consumeTimeStamp":1,"consumeTimeStampStr":"x","delayTime":3,"maxTimeStamp":2,'
        b'"messageQueue":{"brokerName":"b","queueId":0,"topic":"t"},"minTimeStamp":1}]}',
    ),
    (
        BatchAck,
        b'{"acks":[{"b":"AQI=","c":"CG","it":60000,"pt":1700000000000,"q":2,"r":"0","rq":3,"so":100,"t":"TopicA"}],'
        b'"brokerName":"broker-a"}',
    ),
]


@pytest.mark.parametrize(("kind", "text"), EXACT)
def test_bodies_of_the_catalogue_are_written_again_byte_for_byte(kind: object, text: bytes) -> None:
    assert kind.encode(kind.decode(text)) == text  # type: ignore[attr-defined]


def test_object_keys_in_quotes_are_read() -> None:
    text = rb'{"offsetTable":{"{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"t\"}":6}}'
    assert ResetOffsets.decode(text).offsets == {MessageQueue("t", "b", 1): 6}


def test_the_acked_bits_are_little_endian() -> None:
    ack = BatchAck.decode(EXACT[-1][1])
    assert ack.entries[0].acked == {0, 9}
    again = BatchAck.decode(BatchAck("b", (BatchAckEntry(acked=frozenset({3, 64})),)).encode())
    assert again.entries[0].acked == {3, 64}
    long_names = b'{"acks":[{"consumerGroup":"CG","topic":"T","startOffset":5,"bitSet":"AQ=="}]}'
    assert BatchAck.decode(long_names).entries == (BatchAckEntry("CG", "T", start_offset=5, acked=frozenset({0})),)
    with pytest.raises(MalformedBody):
        BatchAck.decode(b'{"acks":[{"b":"!"}]}')
    with pytest.raises(MalformedBody):
        BatchAck.decode(b'{"acks":[{"b":"' + b"/" * 100_000 + b'"}]}')


def test_a_heartbeat_of_another_language_is_understood() -> None:
    text = (
        b'{"clientID":"c","consumerDataSet":[{"consumeFromWhere":4,"consumeType":1,"groupName":"CG","messageModel":1,'
        b'"subscriptionDataSet":[{"subString":"*","topic":"T"}]},{"groupName":"X","consumeType":"nonsense"}]}'
    )
    heartbeat = Heartbeat.decode(text)
    first, second = heartbeat.consumers
    assert (first.consume_type, first.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert first.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    assert first.subscriptions[0].expression_type == "TAG"
    assert second.consume_type is None
    assert heartbeat.producers == ()


def test_what_a_body_has_beyond_its_type_is_kept() -> None:
    text = b'{"mqTable":{},"properties":{},"statusTable":{},"subscriptionSet":[],"x":{"y":[1]}}'
    info = ConsumerRunningInfo.decode(text)
    assert info.unknown == {"x": {"y": [1]}}
    assert info.encode() == text


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"7", b'{"clientID":{}}', b'{"consumerDataSet":7}', b"\xff"])
def test_a_malformed_body_is_refused_with_code_1(text: bytes) -> None:
    with pytest.raises(MalformedBody) as caught:
        Heartbeat.decode(text)
    assert caught.value.code == 1


TOPIC = TopicConfig("TopicA", 4, 4, 6, attributes={"+message.type": "FIFO"})
REGISTERED = BrokerRegistration(
    TopicTable(DATA_VERSION.decode(b'{"counter":7,"stateVersion":0,"timestamp":1700000000000}'), {"TopicA": TOPIC})
)


def test_a_compressed_registration_is_one_deflated_stream() -> None:
    plain = BrokerRegistration(TopicTable(REGISTERED.table.data_version, {"TopicA": TopicConfig("TopicA", 4, 4)}))
    inflated = zlib.decompress(encode_compressed(plain))
    assert inflated == (
        b'\0\0\0\x38{"counter":7,"stateVersion":0,"timestamp":1700000000000}'
        b"\0\0\0\x01\0\0\0\x1aTopicA 4 4 6 SINGLE_TAG {}\0\0\0\x02[]\0\0\0\0"
    )


@pytest.mark.parametrize("compressed", [True, False])
def test_a_compressed_registration_is_read_even_when_it_does_not_say_so(compressed: bool) -> None:
    body = encode_compressed(REGISTERED)
    read = decode_registration(body, compressed=compressed, requester_version=Version.V5_4_0)
    assert read.table.topics == {"TopicA": TOPIC}
    assert read.table.data_version == REGISTERED.table.data_version


def test_registrations_of_old_brokers_are_read() -> None:
    old = decode_registration(
        encode_compressed(REGISTERED, version=Version.V4_9_7), compressed=True, requester_version=Version.V4_9_7
    )
    assert old.table.topics == {"TopicA": TopicConfig("TopicA", 4, 4)}
    oldest = decode_registration(REGISTERED.table.encode(), compressed=False, requester_version=30)
    assert oldest.table.topics == {"TopicA": TOPIC}
    plain = decode_registration(REGISTERED.encode(), compressed=False, requester_version=493)
    assert plain.table.topics == {"TopicA": TOPIC}
    assert decode_registration(b"", compressed=False, requester_version=493) == BrokerRegistration()


def test_a_broken_compressed_registration_is_refused() -> None:
    body = encode_compressed(REGISTERED)
    inflated = zlib.decompress(body)
    for end in range(len(body)):
        if end > 1:
            with pytest.raises(MalformedBody):
                decode_registration(body[:end], compressed=True, requester_version=493)
    for end in range(len(inflated)):
        with pytest.raises(MalformedBody):
            decode_registration(zlib.compress(inflated[:end]), compressed=True, requester_version=493)
    for count in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"):
        with pytest.raises(MalformedBody):
            decode_registration(zlib.compress(count + inflated[4:]), compressed=True, requester_version=493)


def test_the_crc_has_31_bits() -> None:
    assert body_crc(b"hello") == zlib.crc32(b"hello") & 0x7FFFFFFF
