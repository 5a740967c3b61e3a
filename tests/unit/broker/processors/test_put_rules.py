"""Messages of special kinds before they are put: delay levels, timers, halves of transactions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.broker.rules.put_rules import (
    PutRules,
    check_key,
    delay_level,
    delays_of_levels,
    is_special,
    queue_by_priority,
)
from skyrocket.errors import ConfigError
from skyrocket.format import sys_flag as flags
from skyrocket.format.properties import decode_properties, encode_properties
from skyrocket.model.delay_level import DEFAULT_DELAY_LEVELS
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.errors import MessageIllegal, NoPermission, SystemFailure
from skyrocket.store.commit_log import PutMessage

STANDARD = delays_of_levels(DEFAULT_DELAY_LEVELS)


def applied(sys_flag: int = 0, reconsume_times: int = 0, **properties: str) -> PutMessage:
    message = PutMessage("Orders", 3, b"body", encode_properties(properties), sys_flag=sys_flag)
    message.reconsume_times = reconsume_times
    PutRules(STANDARD).apply(message)
    return message


@pytest.mark.requirement("A045", "C019")
def test_the_levels_are_those_of_rocketmq_unless_the_setting_says_otherwise() -> None:
    seconds = [1, 5, 10, 30, *(60 * minutes for minutes in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30)), 3600, 7200]
    assert delays_of_levels(DEFAULT_DELAY_LEVELS) == tuple(1000 * each for each in seconds)
    assert delays_of_levels("0s 2m 1d") == (0, 120_000, 86_400_000)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [("1s 5x", "'5x' is not a delay level"), ("1s 5", "'5' is not"), ("", "is empty"), ("  ", "empty")],
)
def test_a_setting_that_is_no_list_of_durations_is_refused_with_its_name(setting: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=f"messageDelayLevel.*{complaint}"):
        delays_of_levels(setting)


@pytest.mark.requirement("A047")
@pytest.mark.requirement("A048")
@pytest.mark.requirement("C135")
@given(st.integers(min_value=1, max_value=2**31 - 1))
def test_a_level_leads_to_its_queue_of_the_schedule_topic_and_one_too_high_to_the_last(level: int) -> None:
    message = applied(DELAY=str(level), TAGS="red")
    expected = min(level, 18)
    assert (message.topic, message.queue_id) == ("SCHEDULE_TOPIC_XXXX", expected - 1)
    assert decode_properties(message.properties) == {
        "DELAY": str(expected),
        "TAGS": "red",
        "REAL_TOPIC": "Orders",
        "REAL_QID": "3",
    }


@pytest.mark.requirement("A047")
@pytest.mark.parametrize("level", ["0", "-1", "-2147483648"])
def test_no_level_means_no_delay(level: str) -> None:
    message = applied(DELAY=level)
    assert (message.topic, message.queue_id) == ("Orders", 3)
    assert decode_properties(message.properties) == {"DELAY": level}


@pytest.mark.parametrize("level", ["three", " 3", "3 ", "1.5", "2147483648", "٣"])
def test_a_level_that_is_no_number_is_refused(level: str) -> None:
    with pytest.raises(SystemFailure, match="a delay level is a whole number"):
        applied(DELAY=level)


def test_the_place_of_an_earlier_attempt_is_replaced() -> None:
    message = applied(DELAY="4", REAL_TOPIC="Elsewhere", REAL_QID="9", reconsume_times=2)
    assert message.properties.count(b"REAL_TOPIC\x01") == message.properties.count(b"REAL_QID\x01") == 1
    assert decode_properties(message.properties)["REAL_TOPIC"] == "Orders"


def test_a_level_counts_more_than_a_timer() -> None:
    message = applied(DELAY="2", TIMER_DELAY_SEC="7", TIMER_DELIVER_MS="1", TIMER_DELAY_MS="3")
    assert message.topic == "SCHEDULE_TOPIC_XXXX"
    assert not decode_properties(message.properties).keys() & {"TIMER_DELAY_SEC", "TIMER_DELIVER_MS", "TIMER_DELAY_MS"}


@pytest.mark.parametrize("name", ["TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"])
def test_a_timer_is_refused_instead_of_delivered_at_once(name: str) -> None:
    with pytest.raises(SystemFailure, match="accurate timer message is not enabled, timerWheelEnable is false"):
        applied(0, 0, **{name: "5000"})
    assert applied(0, 0, **{name: "5000", "TIMER_OUT_MS": "9"}).topic == "Orders"  # it has waited already


def test_a_half_message_waits_for_its_end_but_not_a_retry_of_one() -> None:
    for text in ("true", "TRUE"):
        half = applied(sys_flag=flags.TRANSACTION_PREPARED | flags.COMPRESSED, TRAN_MSG=text, UNIQ_KEY="U1", DELAY="3")
        assert (half.topic, half.queue_id, half.sys_flag) == ("RMQ_SYS_TRANS_HALF_TOPIC", 0, flags.COMPRESSED)
        properties = decode_properties(half.properties)
        assert properties["REAL_TOPIC"] == "Orders"
        assert properties["__transactionId__"] == "U1"
        assert properties["DELAY"] == "3"  # counts when it is committed
    assert applied(TRAN_MSG="true", DELAY="3", reconsume_times=1).topic == "SCHEDULE_TOPIC_XXXX"
    assert applied(TRAN_MSG="false").topic == "Orders"


def test_who_keeps_half_messages_may_refuse_them() -> None:
    class Refusing:
        def accept(self, topic: str) -> None:
            raise NoPermission(f"no halves for {topic}")

    rules = PutRules(STANDARD)
    rules.halves = Refusing()
    with pytest.raises(NoPermission, match="no halves for Orders"):
        rules.apply(PutMessage("Orders", 3, b"body", encode_properties({"TRAN_MSG": "true"})))


def test_what_a_consumer_sends_back_is_no_half_again() -> None:
    message = PutMessage("%DLQ%Shop", 0, b"body", encode_properties({"TRAN_MSG": "true", "DELAY": "0"}), sys_flag=8)
    PutRules(STANDARD).postpone(message)
    assert message.topic == "%DLQ%Shop"


@pytest.mark.parametrize(
    ("transaction", "is_delayed"),
    [(flags.TRANSACTION_PREPARED, False), (flags.TRANSACTION_ROLLBACK, False), (flags.TRANSACTION_COMMIT, True)],
)
def test_only_messages_that_enter_a_queue_are_delayed(transaction: int, is_delayed: bool) -> None:
    assert (applied(sys_flag=transaction, DELAY="1").topic == "SCHEDULE_TOPIC_XXXX") is is_delayed


def test_plain_messages_need_no_rules() -> None:
    assert not is_special(encode_properties({"TAGS": "DELAYED", "KEYS": "k", "UNIQ_KEY": "U", "WAIT": "true"}))
    for name in ("DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS", "TRAN_MSG"):
        assert is_special(encode_properties({"TAGS": "red", name: "1"}))


@pytest.mark.parametrize(("priority", "queue_id"), [("0", 0), ("1", 1), ("3", 3), ("4", 3), ("2147483647", 3)])
def test_a_priority_chooses_the_queue(priority: str, queue_id: int) -> None:
    properties = encode_properties({"_SYS_MSG_PRIORITY_": priority, "TAGS": "red"})
    assert queue_by_priority(properties, 2, 4) == (queue_id, properties)


@pytest.mark.parametrize("priority", ["-1", "high", "2147483648", "9" * 5000])
def test_what_is_no_priority_is_stored_and_ignored(priority: str) -> None:
    properties = encode_properties({"_SYS_MSG_PRIORITY_": priority})
    assert queue_by_priority(properties, 2, 4) == (2, properties)


@pytest.mark.parametrize(
    "kind",
    [{"DELAY": "1"}, {"TIMER_DELAY_SEC": "1"}, {"TIMER_DELIVER_MS": "1"}, {"TRAN_MSG": "true"}, {"__SHARDINGKEY": "k"}],
)
def test_other_kinds_of_messages_have_no_priority(kind: dict[str, str]) -> None:
    properties = encode_properties({"_SYS_MSG_PRIORITY_": "1", **kind})
    assert queue_by_priority(properties, 2, 4) == (2, encode_properties(kind))


def test_a_message_for_a_compacted_topic_needs_a_key() -> None:
    compacted = TopicConfig("Orders", attributes={"cleanup.policy": "COMPACTION"})
    check_key(TopicConfig("Orders"), b"")
    check_key(compacted, b"KEYS\x01k\x02")
    for properties in (b"", b"KEYS\x01 \x02"):
        with pytest.raises(MessageIllegal, match="Required message key is missing"):
            check_key(compacted, properties)


def test_a_batch_may_not_be_delayed_as_a_whole() -> None:
    rules = PutRules(STANDARD)
    assert rules.refuses_in_batch(b"WAIT\x01true\x02DELAY\x013\x02")
    assert not rules.refuses_in_batch(b"WAIT\x01true\x02DELAY\x010\x02")
    assert delay_level(b"MY_DELAY\x013\x02") == 0
