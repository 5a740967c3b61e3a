"""Stores that RocketMQ wrote: opened, recovered, read and searched by our store, against RocketMQ's own answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.fastjson import loads
from skyrocket.format.index_layout import key_text, tag_text
from skyrocket.format.queue_entry import decode_ext_unit, ext_position, is_ext_address
from skyrocket.format.record import decode_record
from skyrocket.format.store_names import QUEUE_EXTENSIONS
from skyrocket.store.batch_consume_queue import BatchConsumeQueue
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import Boundary, GetStatus
from tests.golden_store import GOLDEN_STORES, WHOLE_STORES, GoldenStore, Line
from tests.unit.store.golden_files import batch_topics, files_below

UNCLEAN = {"killed", "torn"}


def open_golden(golden: GoldenStore, directory: Path) -> MessageStore:
    nearest = golden.version == "4.9.7"
    config = golden.config_of_broker(offset_by_time_nearest=nearest)
    store = MessageStore(directory, config, is_batch_topic=batch_topics(golden).__contains__)
    store.open()
    return store


@pytest.fixture(scope="module", params=GOLDEN_STORES, ids=str)
def golden(request: pytest.FixtureRequest) -> GoldenStore:
    store: GoldenStore = request.param
    return store


@pytest.fixture(scope="module")
def unpacked(golden: GoldenStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store as RocketMQ left it, until the first test of it opens it."""
    return golden.extract(tmp_path_factory.mktemp("golden") / "store")


@pytest.fixture(scope="module")
def untouched_checkpoint(unpacked: Path) -> bytes:
    return (unpacked / "checkpoint").read_bytes()


@pytest.fixture(scope="module")
def store(golden: GoldenStore, unpacked: Path, untouched_checkpoint: bytes) -> Iterator[MessageStore]:
    """Opened once for all questions about it: none of them writes."""
    assert untouched_checkpoint
    opened = open_golden(golden, unpacked)
    yield opened
    opened.close()


@pytest.mark.requirement("C156", "A022", "C158")
def test_the_log_ends_where_rocketmq_found_its_end(golden: GoldenStore, store: MessageStore) -> None:
    expected = golden.json("store")
    assert store.recovery is not None
    assert store.recovery.clean == (golden.name not in UNCLEAN)
    assert store.commit_log.min_offset == expected["minPhyOffset"]
    assert store.commit_log.written_offset == expected["maxPhyOffset"]


@pytest.mark.requirement("A006", "A007", "A025")
def test_every_record_is_found_by_its_physical_offset(golden: GoldenStore, store: MessageStore) -> None:
    end = store.commit_log.written_offset
    for line in golden.messages():
        offset = line["physicalOffset"]
        view = store.by_physical_offset(offset)
        if line["kind"] != "message" or not store.commit_log.min_offset <= offset < end:
            assert view is None
            continue
        assert view is not None
        assert decode_record(view).topic == line["topic"]
        assert decode_record(view, check_crc=True).body_crc == line["bodyCRC"]


def entries_of(store: MessageStore, golden: GoldenStore, line: Line) -> list[list[int]]:
    queue = store.queues.get(line["topic"], line["queueId"])
    assert queue is not None
    if isinstance(queue, BatchConsumeQueue):
        batches = [queue.entry_at(number) for number in range(queue.first_entry, queue.end_entry)]
        return [
            [e.physical_offset, e.size, e.tags_code, e.base_offset, e.messages, e.compacted_offset] for e in batches
        ]
    assert isinstance(queue, ConsumeQueue)
    found = []
    for number in range(queue.min_offset, queue.max_offset):
        entry = queue.entry(number)
        assert entry is not None
        found.append([entry.physical_offset, entry.size, resolved(store, line, entry.tags_code)])
    return found


def resolved(store: MessageStore, line: Line, tags_code: int) -> int:
    if not is_ext_address(tags_code):
        return tags_code
    position = ext_position(tags_code)
    start = position - position % 4096
    path = Path(store.paths.root) / QUEUE_EXTENSIONS / line["topic"] / str(line["queueId"]) / f"{start:020d}"
    unit = decode_ext_unit(path.read_bytes(), position - start)
    assert unit is not None
    return unit.tags_code


@pytest.mark.requirement("A003", "A008", "A009", "A011", "A013", "A017", "E013", "D003", "C102")
def test_every_queue_has_the_entries_that_rocketmq_reads(golden: GoldenStore, store: MessageStore) -> None:
    for line in golden.lines("queues"):
        queue = store.queues.get(line["topic"], line["queueId"])
        if queue is None:
            # RocketMQ: 4.9.7 lists queues without files, for every delay level.
            assert line["max"] == 0
            continue
        assert queue.max_offset == line["max"]
        expected = line["entries"]
        if golden.name == "expired":
            # RocketMQ: 4.9.7 keeps the old min offset of queues whose records are gone; we move it, as 5.x does.
            expected = [entry for entry in expected if entry[0] >= store.commit_log.min_offset]
            assert queue.min_offset == line["max"] - len(expected)
        else:
            assert queue.min_offset == line["min"]
        assert entries_of(store, golden, line) == expected


@pytest.mark.requirement("A060", "B030", "D008", "A055", "A020", "B031", "B033")
def test_every_index_query_gives_rocketmqs_answer(golden: GoldenStore, store: MessageStore) -> None:
    assert store.index is not None
    asked = 0
    for line in golden.lines("index"):
        if line["kind"] == "query":
            text = tag_text if line.get("indexType") == "T" else key_text
            found = store.index.query(text(line["topic"], line["key"]), line["maxNum"], line["begin"], line["end"])
            assert found == line["phyOffsets"], line
            asked += 1
    assert asked > 100


@pytest.mark.requirement("A060", "B030", "B032")
def test_every_message_query_gives_rocketmqs_answer(golden: GoldenStore, store: MessageStore) -> None:
    asked = 0
    for line in golden.lines("index"):
        if line["kind"] == "queryMessage":
            tag = line.get("indexType") == "T"
            found = store.query(line["topic"], line["key"], line["maxNum"], line["begin"], line["end"], tag=tag)
            assert [decode_record(view).physical_offset for view in found] == line["physicalOffsets"], line
            asked += 1
    assert asked > 10


@pytest.mark.requirement("A094")
def test_every_search_by_time_gives_rocketmqs_answer(golden: GoldenStore, store: MessageStore) -> None:
    batches = batch_topics(golden)
    for line in golden.lines("timestamps"):
        if line["topic"] in batches:
            continue  # RocketMQ: answers for batch queues depend on file boundaries; ours are exact, tested elsewhere
        for timestamp, *expected in line["results"]:
            boundaries = [Boundary.LOWER, Boundary.UPPER][: len(expected)]
            found = [store.offset_by_time(line["topic"], line["queueId"], timestamp, b) for b in boundaries]
            assert found == expected, (line["topic"], line["queueId"], timestamp)


@pytest.mark.requirement("E016", "A095")
def test_every_queue_can_be_read_from_its_first_to_its_last_message(golden: GoldenStore, store: MessageStore) -> None:
    bodies = {line["physicalOffset"]: line for line in golden.messages() if line["kind"] == "message"}
    for line in golden.lines("queues"):
        first = offset = max(store.min_offset(line["topic"], line["queueId"]), 0)  # -1 for a queue without files
        read = 0
        while True:
            result = store.get(line["topic"], line["queueId"], offset)
            if result.status is not GetStatus.FOUND:
                break
            data = result.join()
            position = 0
            while position < len(data):
                message = decode_record(data, position)
                assert bodies[message.physical_offset]["properties"] == message.properties
                position += message.record_size
            read += result.count
            offset = result.next_offset
        assert offset == store.max_offset(line["topic"], line["queueId"])
        assert read == offset - first


@pytest.mark.requirement("A023", "C098")
def test_the_checkpoint_reads_as_rocketmq_reads_it(
    golden: GoldenStore, untouched_checkpoint: bytes, tmp_path: Path
) -> None:
    (tmp_path / "checkpoint").write_bytes(untouched_checkpoint)
    expected = golden.json("checkpoint")
    store = MessageStore(tmp_path, golden.config_of_broker())
    assert store.checkpoint.load()
    current = store.checkpoint.current
    assert current.physic_timestamp == expected["physicMsgTimestamp"]
    assert current.logics_timestamp == expected["logicsMsgTimestamp"]
    assert current.index_timestamp == expected["indexMsgTimestamp"]
    assert current.min_timestamp == expected["minTimestamp"]
    assert current.min_timestamp_index == expected["minTimestampIndex"]
    assert current.confirm_offset == expected.get("confirmPhyOffset", 0)


@pytest.mark.parametrize("golden", [store for store in WHOLE_STORES if store.name != "killed"], ids=str)
@pytest.mark.requirement("A017", "B025")
def test_lost_queues_and_index_come_back_byte_for_byte(golden: GoldenStore, tmp_path: Path) -> None:
    directory = golden.extract(tmp_path / "store")
    names = ("consumequeue", "batchconsumequeue")
    before = {name: files_below(directory / name) for name in names}
    index_before = list(files_below(directory / "index").values())
    for name in (*names, "index"):
        remove_files_below(directory / name)
    store = open_golden(golden, directory)
    store.close()
    assert {name: files_below(directory / name) for name in names} == before
    assert list(files_below(directory / "index").values()) == index_before


def remove_files_below(directory: Path) -> None:
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def test_config_files_are_left_as_they_are(golden: GoldenStore, store: MessageStore) -> None:
    for path in (golden.path / "config").glob("*.json"):
        assert loads((Path(store.paths.config) / path.name).read_bytes()) == loads(path.read_bytes())
