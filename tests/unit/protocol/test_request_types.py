"""The rules of header fields, and that the catalogue is whole."""

import pytest

from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.errors import MissingField, RequestError
from skyrocket.protocol.requests.admin_topics import UpdateAndCreateTopic
from skyrocket.protocol.requests.catalogue import REQUESTS
from skyrocket.protocol.requests.header import BoundaryType, Header, Int, NoAnswerFields, answer
from skyrocket.protocol.requests.messaging import SendBatchMessage, SendMessage, SendMessageAnswer, SendMessageV2
from skyrocket.protocol.requests.offsets import GetMaxOffset, SearchOffsetByTimestamp, UpdateConsumerOffset
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.protocol.requests.transaction import EndTransaction
from tests.unit.protocol.samples import SEND_FIELDS

DECLARED_BUT_UNUSED = {13, 22, 23, 27, 47, *range(209, 215), 301, 302}
RAFT = {*range(1014, 1019)}

QUEUE = {"topic": "T", "queueId": "3"}


def test_every_code_in_use_has_a_type() -> None:
    assert set(RequestCode) - REQUESTS.keys() == DECLARED_BUT_UNUSED | RAFT
    assert all(kind.code == code for code, kind in REQUESTS.items())
    assert all(isinstance(kind.answer, type) for kind in REQUESTS.values())


def test_no_two_fields_of_a_header_share_a_name() -> None:
    for kind in {*REQUESTS.values(), *(kind.answer for kind in REQUESTS.values())}:
        names = [field.name for field in kind.wire_fields]
        assert len(names) == len(set(names)), kind


def test_the_letters_and_the_long_names_mean_the_same() -> None:
    short = SendMessageV2.from_fields(SEND_FIELDS)
    long = SendMessage(**{field.attribute: getattr(short, field.attribute) for field in SendMessageV2.wire_fields})
    assert SendMessage.from_fields(long.to_fields()) == long
    assert long.topic == short.topic == "TopicA"
    assert long.broker_name == short.broker_name == "broker-a"
    assert short.to_fields() == SEND_FIELDS
    assert "defaultTopicQueueNums" in long.to_fields()
    assert isinstance(short, SendMessage)
    assert SendBatchMessage.from_fields({**SEND_FIELDS, "m": "TRUE", "l": "-1"}).max_reconsume_times == -1


def test_headers_are_equal_by_value() -> None:
    header = GetMaxOffset.from_fields(QUEUE)
    assert header == GetMaxOffset(topic="T", queue_id=3)
    assert hash(header) == hash(GetMaxOffset(topic="T", queue_id=3))
    assert header != GetMaxOffset(topic="U", queue_id=3)
    assert repr(header).startswith("GetMaxOffset(topic='T', queue_id=3")


def test_a_missing_required_field_is_refused_with_code_1() -> None:
    for fields in (None, {}, {"topic": "T"}):
        with pytest.raises(MissingField) as caught:
            GetMaxOffset.from_fields(fields)
        assert caught.value.code == 1


def test_fields_whose_absence_has_an_answer_of_its_own_may_be_missing() -> None:
    assert GetRouteInfoByTopic.from_fields(None).topic is None
    update = UpdateConsumerOffset.from_fields({"topic": "T", "consumerGroup": "G"})
    assert update.queue_id is None
    assert update.commit_offset is None


@pytest.mark.parametrize(
    "text", ["", "abc", " 5", "5 ", "1_000", "0x10", "1.0", "2147483648", "-2147483649", "--1", "9" * 30]
)
def test_a_malformed_number_counts_as_missing_or_is_refused(text: str) -> None:
    assert UpdateConsumerOffset.from_fields({"topic": "T", "consumerGroup": "G", "queueId": text}).queue_id is None
    with pytest.raises(MissingField):
        GetMaxOffset.from_fields({"topic": "T", "queueId": text})
    with pytest.raises(MissingField, match="NumberFormatException: For input string"):
        SendMessageV2.from_fields({**SEND_FIELDS, "j": text})


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("-1", -1), ("+7", 7), ("0012", 12), ("2147483647", (1 << 31) - 1)]
)
def test_decimal_numbers_with_a_sign_are_read(text: str, number: int) -> None:
    assert GetMaxOffset.from_fields({"topic": "T", "queueId": text}).queue_id == number


def test_longs_have_64_bits() -> None:
    fields = {**QUEUE, "timestamp": str((1 << 63) - 1)}
    assert SearchOffsetByTimestamp.from_fields(fields).timestamp == (1 << 63) - 1
    with pytest.raises(MissingField):
        SearchOffsetByTimestamp.from_fields({**QUEUE, "timestamp": str(1 << 63)})


@pytest.mark.parametrize(
    ("text", "flag"), [("true", True), ("TRUE", True), ("True", True), ("1", False), ("", False), ("yes", False)]
)
def test_all_but_true_is_false(text: str, flag: bool) -> None:
    assert GetMaxOffset.from_fields({**QUEUE, "committed": text}).committed is flag


def test_all_but_upper_is_lower() -> None:
    for text, boundary in (("upper", BoundaryType.UPPER), ("UPPER", BoundaryType.UPPER), ("x", BoundaryType.LOWER)):
        header = SearchOffsetByTimestamp.from_fields({**QUEUE, "timestamp": "1", "boundaryType": text})
        assert header.boundary_type is boundary
        assert header.to_fields()["boundaryType"] == boundary.value


def test_primitives_are_always_written_and_none_never() -> None:
    assert GetMaxOffset(topic="T", queue_id=0, committed=False).to_fields() == {
        "queueId": "0",
        "committed": "false",
        "topic": "T",
    }


def test_headers_with_rules_check_what_they_receive() -> None:
    end = {"producerGroup": "P", "tranStateTableOffset": "1", "commitLogOffset": "2", "commitOrRollback": "8"}
    assert EndTransaction.from_fields(end).commit_or_rollback == 8
    with pytest.raises(RequestError, match="commitOrRollback field wrong"):
        EndTransaction.from_fields({**end, "commitOrRollback": "3"})
    topic = UpdateAndCreateTopic(
        topic="T", default_topic="D", read_queue_nums=1, write_queue_nums=1, perm=6, topic_filter_type="SINGLE_TAG"
    ).to_fields()
    assert UpdateAndCreateTopic.from_fields(topic).perm == 6
    with pytest.raises(RequestError, match=r"topicFilterType = \[FOO\]"):
        UpdateAndCreateTopic.from_fields({**topic, "topicFilterType": "FOO"})


def test_absent_and_empty_ext_fields_are_known_per_type() -> None:
    assert NoAnswerFields().ext_fields() is None
    assert REQUESTS[RequestCode.UPDATE_CONSUMER_OFFSET].answer().ext_fields() == {}
    assert REQUESTS[RequestCode.HEART_BEAT]().ext_fields() == {}
    assert REQUESTS[RequestCode.GET_BROKER_CLUSTER_INFO]().ext_fields() is None
    assert SendMessageAnswer(msg_id="x", queue_id=0, queue_offset=0).ext_fields() is not None


def test_a_header_compiles_its_init_when_the_first_one_is_made() -> None:
    @answer
    class Counted(Header):
        """Two fields, one with a default."""

        count: Int
        topic: str | None = None

    late = vars(Counted)["__init__"]
    assert Counted(count=1) == Counted(count=1, topic=None)
    assert vars(Counted)["__init__"] is not late
    with pytest.raises(TypeError, match="count"):
        Counted()  # type: ignore[call-arg]
    assert not hasattr(Counted(count=1), "__dict__")
