"""Receipts of messages that came in one request are filled in when they are read, and are receipts like any other."""

import copy
import pickle
from dataclasses import replace

import pytest

from skyrocket.client.core.send_receipt import BatchReceipt, SendReceipt, SendStatus
from skyrocket.model.message_queue import MessageQueue

QUEUE = MessageQueue("Orders", "broker-a", 3)
WHOLE = SendReceipt(
    SendStatus.FLUSH_DISK_TIMEOUT, "key-0", "id-0,id-1,id-2", QUEUE, 40, None, "east", False, None, 2, 1
)
KEYS = ["key-0", "key-1", "key-2"]
SECOND = SendReceipt(SendStatus.FLUSH_DISK_TIMEOUT, "key-1", "id-1", QUEUE, 41, None, "east", False, None, 2, 1)


def second() -> SendReceipt:
    return BatchReceipt(WHOLE, KEYS).member(1)


def test_each_message_has_its_own_key_id_and_offset_and_the_rest_of_the_request() -> None:
    assert second() == SECOND
    assert second() == SECOND
    assert repr(second()) == repr(SECOND)
    assert not second().is_durable
    assert BatchReceipt(WHOLE, KEYS).member(0) != second()


def test_it_can_be_copied_pickled_and_changed() -> None:
    for made in (copy.copy(second()), copy.deepcopy(second()), pickle.loads(pickle.dumps(second()))):
        assert made == SECOND
    assert replace(second(), queue_offset=7) == replace(SECOND, queue_offset=7)
    changed = second()
    assert changed.attempts == 2
    changed.attempts = 3
    assert (changed.attempts, changed.queue_offset) == (3, 41)


def test_what_a_receipt_does_not_have_is_named() -> None:
    for receipt in (second(), SECOND):
        with pytest.raises(AttributeError, match="'SendReceipt' object has no attribute 'offset'"):
            _ = receipt.offset  # type: ignore[attr-defined]
        assert not hasattr(receipt, "__deepcopy__")


def test_a_broker_that_gives_one_id_for_all_gives_it_to_each() -> None:
    receipts = BatchReceipt(replace(WHOLE, offset_message_id="id-0"), KEYS)
    assert [receipts.member(number).offset_message_id for number in range(3)] == ["id-0"] * 3
