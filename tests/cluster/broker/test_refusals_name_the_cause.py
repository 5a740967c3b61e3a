"""Wrong pops, acknowledgements, recalls, timers, ends of transactions: the answer says why, and nothing is stored."""

from pathlib import Path

import pytest

from skyrocket.config.sections import BrokerConfig
from skyrocket.format.record import decode_records
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from tests.cluster.broker.broker_fixture import GROUP, TOPIC, message, running_broker

RECEIPT = "0 1 2 3 0 broker-a 0"
VALID = {
    RequestCode.POP_MESSAGE: {
        "consumerGroup": GROUP,
        "topic": TOPIC,
        "queueId": "-1",
        "maxMsgNums": "1",
        "invisibleTime": "30000",
        "pollTime": "0",
        "bornTime": "0",
        "initMode": "0",
        "order": "false",
    },
    RequestCode.ACK_MESSAGE: {
        "consumerGroup": GROUP,
        "topic": TOPIC,
        "queueId": "0",
        "extraInfo": RECEIPT,
        "offset": "0",
    },
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: {
        "consumerGroup": GROUP,
        "topic": TOPIC,
        "queueId": "0",
        "extraInfo": RECEIPT,
        "offset": "0",
        "invisibleTime": "1000",
    },
    RequestCode.NOTIFICATION: {
        "consumerGroup": GROUP,
        "topic": TOPIC,
        "queueId": "-1",
        "pollTime": "0",
        "bornTime": "0",
    },
    RequestCode.PEEK_MESSAGE: {"consumerGroup": GROUP, "topic": TOPIC, "queueId": "-1", "maxMsgNums": "1"},
    RequestCode.RECALL_MESSAGE: {"topic": TOPIC, "producerGroup": "Producers", "recallHandle": "x"},
    RequestCode.END_TRANSACTION: {
        "producerGroup": "Producers",
        "tranStateTableOffset": "0",
        "commitLogOffset": "0",
        "commitOrRollback": "8",
    },
    RequestCode.BATCH_ACK_MESSAGE: {},
    RequestCode.LIST_OPEN_TRANSACTIONS: {},
    RequestCode.END_OPEN_TRANSACTION: {"halfOffset": "0", "transactionId": "T", "commitOrRollback": "8"},
    RequestCode.LIST_PENDING_TIMERS: {},
}
# Without a value the field is left out.
WRONG = [
    *(
        (code, "topic", "Nowhere", 17, "Nowhere")
        for code in (
            RequestCode.POP_MESSAGE,
            RequestCode.ACK_MESSAGE,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
            RequestCode.NOTIFICATION,
            RequestCode.PEEK_MESSAGE,
            RequestCode.RECALL_MESSAGE,
        )
    ),
    (RequestCode.POP_MESSAGE, "consumerGroup", None, 1, "<consumerGroup>"),
    (RequestCode.POP_MESSAGE, "queueId", "99", 29, "queueId[99] is illegal"),
    (RequestCode.POP_MESSAGE, "maxMsgNums", "33", 29, "greater than 32"),
    (RequestCode.POP_MESSAGE, "maxMsgNums", "many", 1, "<maxMsgNums>"),
    (RequestCode.POP_MESSAGE, "invisibleTime", None, 1, "<invisibleTime>"),
    (RequestCode.NOTIFICATION, "queueId", "99", 29, "queueId[99] is illegal"),
    (RequestCode.PEEK_MESSAGE, "queueId", "99", 29, "queueId[99] is illegal"),
    (RequestCode.ACK_MESSAGE, "queueId", "99", 13, "queueId[99] is illegal"),
    (RequestCode.ACK_MESSAGE, "extraInfo", "1 2", 1, "a receipt has at least seven parts"),
    (RequestCode.ACK_MESSAGE, "extraInfo", "0 1 2 99 0 broker-a 0", 13, "revive queue 99, but this broker has 0 to 7"),
    (RequestCode.ACK_MESSAGE, "offset", "99", 208, "commit:99, store:0~1"),
    (RequestCode.ACK_MESSAGE, "offset", "-1", 208, "commit:-1, store:0~1"),
    (RequestCode.CHANGE_MESSAGE_INVISIBLETIME, "offset", "99", 208, "change:99, store:0~1"),
    (RequestCode.CHANGE_MESSAGE_INVISIBLETIME, "extraInfo", "", 1, "a receipt has at least seven parts"),
    (RequestCode.CHANGE_MESSAGE_INVISIBLETIME, "invisibleTime", "soon", 1, "<invisibleTime>"),
    (RequestCode.BATCH_ACK_MESSAGE, "topic", TOPIC, 208, "the list of acknowledgements is empty"),
    (RequestCode.RECALL_MESSAGE, "recallHandle", "djEgYQ==", 604, "recall handle is invalid"),
    (RequestCode.RECALL_MESSAGE, "recallHandle", None, 1, "<recallHandle>"),
    (RequestCode.END_TRANSACTION, "commitLogOffset", "999999", 1, "Find prepared transaction message failed"),
    (RequestCode.END_TRANSACTION, "commitOrRollback", "3", 1, "commitOrRollback field wrong"),
    (RequestCode.END_TRANSACTION, "producerGroup", None, 1, "<producerGroup>"),
    (RequestCode.END_OPEN_TRANSACTION, "halfOffset", None, 1, "<halfOffset>"),
    (RequestCode.END_OPEN_TRANSACTION, "halfOffset", "5", 1, "no open transaction T has its half at offset 5"),
    (RequestCode.END_OPEN_TRANSACTION, "commitOrRollback", "9", 29, "8 commits, 12 rolls back"),
    (RequestCode.LIST_PENDING_TIMERS, "limit", "-1", 29, "limit is -1"),
]


async def test_every_refusal_names_its_cause_and_nothing_is_stored(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BrokerConfig(recall=True)) as given:
        await given.send(b"kept")
        await given.beat()
        before = given.broker.store.commit_log.written_offset
        for code, field, value, expected, cause in WRONG:
            fields = {**VALID[code]}
            fields.pop(field, None)
            if value is not None:
                fields[field] = value
            answer = await given.client.invoke(given.address, RemotingCommand(code, ext_fields=fields), 10.0)
            assert (answer.code, cause in (answer.remark or "")) == (expected, True), (code, field, value, answer)
        assert given.broker.store.commit_log.written_offset == before
        assert [each.body for each in decode_records((await given.pull()).body)] == [b"kept"]


@pytest.mark.parametrize(
    ("properties", "code", "cause"),
    [
        ("TIMER_DELIVER_MS\x01soon\x02", 13, "timer message illegal"),
        (f"TIMER_DELAY_SEC\x01{41 * 86_400}\x02", 13, "timer message illegal"),
    ],
)
async def test_a_timer_that_is_no_number_or_too_far_is_refused(
    tmp_path: Path, properties: str, code: int, cause: str
) -> None:
    async with running_broker(tmp_path) as given:
        request = message(properties=properties)
        command = RemotingCommand(request.code, ext_fields=request.to_fields(), body=b"x")
        answer = await given.client.invoke(given.address, command, 10.0)
        assert (answer.code, cause in (answer.remark or "")) == (code, True), answer.remark
        assert given.broker.store.commit_log.written_offset == 0
