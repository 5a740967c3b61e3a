"""The messages of RocketMQ's stores, put again with its clock and hosts, give its bytes again."""

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest

from skyrocket.format.batch import BatchElement
from skyrocket.format.message_id import parse_host
from skyrocket.format.record import pack_host
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from tests.golden_store import WHOLE_STORES, GoldenStore, Line
from tests.unit.store.golden_files import batch_topics, files_below


@dataclass
class ManifestClock:
    """Tells the store times of the manifest."""

    now: int = 0

    def now_ms(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000


def put_message(line: Line, body: bytes) -> PutMessage:
    return PutMessage(
        topic=line["topic"],
        queue_id=line["queueId"],
        body=body,
        properties=line["propertiesString"].encode(),
        flag=line["flag"],
        sys_flag=line["sysFlag"],
        born_timestamp=line["bornTimestamp"],
        born_host=pack_host(parse_host(line["bornHost"])),
        reconsume_times=line["reconsumeTimes"],
        prepared_transaction_offset=line["preparedTransactionOffset"],
        store_host=pack_host(parse_host(line["storeHost"])),
    )


def stored_body(line: Line, log: bytes) -> bytes:
    """The body as stored, cut from RocketMQ's own file (the manifest has it inflated)."""
    head = 88 + (12 if line["sysFlag"] & 0x10 else 0) + (12 if line["sysFlag"] & 0x20 else 0)
    start = line["physicalOffset"] + head
    return log[start : start + line["storedBodyLength"]]


def is_batch(lines: list[Line]) -> bool:
    return len(lines) > 1 and "batch" in (lines[0]["keys"] or "")


def rewrite(golden: GoldenStore, original: Path, target: Path) -> None:
    log = b"".join(path.read_bytes() for path in sorted((original / "commitlog").iterdir()))
    clock = ManifestClock()
    changes = {"append_record_crc": golden.name == "crc", "dispatch_thread": False}
    config = golden.config_of_broker(**changes)
    store = MessageStore(target, config, clock=clock, is_batch_topic=batch_topics(golden).__contains__)
    lines = [line for line in golden.messages() if line["kind"] == "message" and not line.get("afterRecoveredEnd")]
    with store:
        for (clock.now, _, _), group in groupby(
            lines, lambda line: (line["storeTimestamp"], line["topic"], line["queueId"])
        ):
            same = list(group)
            messages = [put_message(line, stored_body(line, log)) for line in same]
            if is_batch(same):
                elements = [BatchElement(m.flag, m.body, m.properties) for m in messages]
                assert store.intake.put_batch(messages[0], elements).physical_offsets == [
                    m["physicalOffset"] for m in same
                ]
                continue
            for line, message in zip(same, messages, strict=True):
                result = store.put(message)
                assert (result.physical_offset, result.queue_offset) == (line["physicalOffset"], line["queueOffset"])
                assert result.record_size == line["size"]


@pytest.mark.parametrize("golden", WHOLE_STORES, ids=str)
@pytest.mark.requirement("A002", "A026", "A027", "A052", "A056", "A057", "A058", "C099", "C100", "D006")
def test_the_same_messages_give_the_same_log_queues_and_index(golden: GoldenStore, tmp_path: Path) -> None:
    original = golden.extract(tmp_path / "rocketmq")
    rewrite(golden, original, tmp_path / "ours")
    assert_same_log(original, tmp_path / "ours")
    if golden.name == "killed":
        return  # its queues and index were behind the log when it died
    for name in ("consumequeue", "batchconsumequeue"):
        assert files_below(tmp_path / "ours" / name) == files_below(original / name)
    assert list(files_below(tmp_path / "ours" / "index").values()) == list(files_below(original / "index").values())


def assert_same_log(original: Path, ours: Path) -> None:
    theirs, mine = files_below(original / "commitlog"), files_below(ours / "commitlog")
    prepared = {name for name, data in theirs.items() if not any(data)}  # a killed broker leaves its next file
    assert mine.keys() == theirs.keys() - prepared
    for name, data in mine.items():
        assert data == theirs[name], f"commit-log file {name} differs"
