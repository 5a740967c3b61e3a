"""What a message of a set without master looks like when another set gets it."""

from skyrocket.broker.acting.escaped_message import escaped
from skyrocket.format import sys_flag as flags
from skyrocket.format.properties import decode_properties, encode_properties
from skyrocket.model.topic import TIMER_TOPIC
from skyrocket.store.commit_log import PutMessage

REVIVE_LOG = "rmq_sys_REVIVE_LOG_DefaultCluster"


def sent(topic: str, properties: dict[str, str], sys_flag: int = 0) -> tuple[PutMessage, dict[str, str]]:
    message = escaped(PutMessage(topic, 1, b"x", encode_properties(properties), sys_flag=sys_flag))
    return message, dict(decode_properties(message.properties))


def test_what_has_waited_does_not_wait_again() -> None:
    waited = {"REAL_TOPIC": "Orders", "REAL_QID": "1", "UNIQ_KEY": "k", "TAGS": "t"}
    for asked in ({"DELAY": "3"}, {"TIMER_DELAY_MS": "5000", "TIMER_OUT_MS": "7000", "TIMER_ENQUEUE_MS": "1"}):
        message, properties = sent("Orders", {**waited, **asked})
        assert (message.topic, properties) == ("Orders", {"UNIQ_KEY": "k", "TAGS": "t"})


def test_a_timer_that_rolls_waits_on_at_the_other_broker() -> None:
    rolled = {"REAL_TOPIC": "Orders", "REAL_QID": "1", "TIMER_DELAY_SEC": "9", "TIMER_OUT_MS": "7000", "UNIQ_KEY": "k"}
    message, properties = sent(TIMER_TOPIC, rolled)
    assert (message.topic, properties) == ("Orders", {"UNIQ_KEY": "k", "TIMER_DELIVER_MS": "7000"})


def test_a_check_point_keeps_its_time() -> None:
    waited = {
        "REAL_TOPIC": REVIVE_LOG,
        "REAL_QID": "1",
        "TIMER_OUT_MS": "7000",
        "TIMER_DELIVER_MS": "6500",
        "TAGS": "ck",
    }
    assert sent(REVIVE_LOG, waited)[1] == {"TAGS": "ck", "TIMER_DELIVER_MS": "6500"}
    assert sent(REVIVE_LOG, {"TAGS": "ck", "TIMER_DELIVER_MS": "6500"})[1] == {"TAGS": "ck", "TIMER_DELIVER_MS": "6500"}


def test_what_was_committed_does_not_become_half_and_a_half_stays_one() -> None:
    message, properties = sent("Orders", {"TRAN_MSG": "true", "UNIQ_KEY": "k"}, flags.TRANSACTION_COMMIT)
    assert (message.sys_flag, properties) == (0, {"UNIQ_KEY": "k"})
    message, properties = sent("Orders", {"TRAN_MSG": "true", "UNIQ_KEY": "k"}, flags.TRANSACTION_PREPARED)
    assert (message.sys_flag, properties) == (flags.TRANSACTION_PREPARED, {"TRAN_MSG": "true", "UNIQ_KEY": "k"})


def test_the_number_that_a_producer_gave_it_is_not_another_queues() -> None:
    assert sent("Orders", {"SKY_MSG_PID": "p", "SKY_MSG_SEQ": "7", "UNIQ_KEY": "k"})[1] == {"UNIQ_KEY": "k"}
