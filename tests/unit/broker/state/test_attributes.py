"""Changes of attributes: what is merged, and the exact words of each refusal."""

import pytest

from skyrocket.broker.state.attributes import (
    GROUP_ATTRIBUTES,
    TOPIC_ATTRIBUTES,
    changed_attributes,
    parse_changes,
)
from skyrocket.protocol.errors import SystemFailure

STORED = {"message.type": "FIFO", "queue.type": "BatchCQ"}


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (None, {}),
        ("", {}),
        ("+message.type=FIFO", {"+message.type": "FIFO"}),
        ("+a=1,-b,+c=", {"+a": "1", "-b": "", "+c": ""}),
    ],
)
def test_text_of_changes(text: str | None, changes: dict[str, str]) -> None:
    assert parse_changes(text) == changes


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("message.type=FIFO", "add/alter attribute format is wrong: message.type"),
        ("message.type", "delete attribute format is wrong: message.type"),
        ("+a=1,+a=2", "key duplication: +a"),
    ],
)
def test_text_that_is_no_change(text: str, remark: str) -> None:
    with pytest.raises(SystemFailure) as refusal:
        parse_changes(text)
    assert refusal.value.remark == remark


@pytest.mark.parametrize(
    ("current", "text", "result"),
    [
        (None, "", {}),
        (None, "+queue.type=BatchCQ,+message.type=PRIORITY", {"queue.type": "BatchCQ", "message.type": "PRIORITY"}),
        (STORED, "", STORED),
        (STORED, "+message.type=DELAY", {**STORED, "message.type": "DELAY"}),
        (STORED, "-message.type", {"queue.type": "BatchCQ"}),
        ({}, "+message.type=MIXED", {"message.type": "MIXED"}),
    ],
)
def test_merged(current: dict[str, str] | None, text: str, result: dict[str, str]) -> None:
    assert changed_attributes(TOPIC_ATTRIBUTES, current, parse_changes(text)) == result


@pytest.mark.parametrize(
    ("current", "changes", "remark"),
    [
        (None, {"-message.type": ""}, "only add attribute is supported while creating topic. key: message.type"),
        (None, {"+no.such": "1"}, "unsupported key: no.such"),
        (STORED, {"+no.such": "1"}, "unsupported key: no.such"),
        (STORED, {"+queue.type": "SimpleCQ"}, "attempt to update an unchangeable attribute. key: queue.type"),
        ({}, {"+queue.type": "SimpleCQ"}, "attempt to update an unchangeable attribute. key: queue.type"),
        (STORED, {"-queue.type": ""}, "attempt to update an unchangeable attribute. key: queue.type"),
        (STORED, {"-cleanup.policy": ""}, "attempt to delete a nonexistent key: cleanup.policy"),
        (STORED, {"xmessage.type": "FIFO"}, "wrong format key: message.type"),
        (STORED, {"+message.type": "FIFO", "-message.type": ""}, "alter duplication key. key: message.type"),
        (STORED, {"+": "1"}, "kv string format wrong."),
        (STORED, {"+a-b": "1"}, "kv string format wrong."),
        (
            {},
            {"+message.type": "fifo"},
            "value is not in set: [UNSPECIFIED, MIXED, TRANSACTION, PRIORITY, FIFO, DELAY, NORMAL]",
        ),
        (None, {"+reserve.time": "-2"}, "value is not in range(-1, 9223372036854775807)"),
        (None, {"+reserve.time": "soon"}, 'For input string: "soon"'),
    ],
)
def test_refused(current: dict[str, str] | None, changes: dict[str, str], remark: str) -> None:
    with pytest.raises(SystemFailure) as refusal:
        changed_attributes(TOPIC_ATTRIBUTES, current, changes)
    assert refusal.value.remark == remark


def test_groups_have_one_attribute() -> None:
    assert changed_attributes(GROUP_ATTRIBUTES, None, {"+priority.factor": "0"}) == {"priority.factor": "0"}
    with pytest.raises(SystemFailure, match=r"value is not in range\(0, 100\)"):
        changed_attributes(GROUP_ATTRIBUTES, None, {"+priority.factor": "101"})
