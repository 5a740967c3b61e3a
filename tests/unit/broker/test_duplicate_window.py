"""The window of numbered sends against a simple model, with restarts that read it again from the log."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from skyrocket.broker.send.duplicate_window import DuplicateWindow, Number, Receipt, number_of
from skyrocket.config.sections import StoreConfig
from skyrocket.format.message_id import offset_message_id
from skyrocket.model.message import Host
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore

PER_QUEUE = 4
FILE = 64 << 10
SMALL = StoreConfig(commit_log_file_size=FILE, preallocate_bytes=4096, index_enabled=False, dispatch_thread=False)
BORN = bytes([127, 0, 0, 1, 0, 0, 0, 99])
HOST = Host(bytes([127, 0, 0, 1]), 10911)


def properties(producer: str, sequence: int, unique_key: str) -> bytes:
    text = f"UNIQ_KEY\x01{unique_key}\x02SKY_MSG_PID\x01{producer}\x02SKY_MSG_SEQ\x01{sequence}\x02"
    return text.encode()


class WindowMachine(RuleBasedStateMachine):
    """Producers send, repeat what they sent, and the broker starts again; nothing inside the window is stored twice."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.store = MessageStore(self.folder, SMALL, store_host=HOST)
        self.store.open()
        self.window = DuplicateWindow(PER_QUEUE, 100)
        self.sent: list[tuple[Number, Receipt]] = []  # all that was ever stored, in order

    def put(self, producer: str, queue_id: int, sequence: int, size: int) -> Receipt:
        """As the broker does."""
        unique_key = f"{producer}-{sequence}"
        text = properties(producer, sequence, unique_key)
        number = number_of("Orders", queue_id, text)
        assert number is not None
        found = self.window.find(number, unique_key)
        if found is not None:
            return found
        result = self.store.put(PutMessage("Orders", queue_id, b"x" * size, text, 0, 0, 1, BORN))
        assert result.ok
        message_id = offset_message_id(HOST, result.physical_offset)
        receipt = Receipt(unique_key, queue_id, message_id, result.queue_offset, "", result.end_offset)
        self.window.remember(number, receipt)
        self.sent.append((number, receipt))
        return receipt

    def remembered(self) -> dict[Number, Receipt]:
        """What the model says: the last ones of each producer and queue."""
        newest: dict[Number, Receipt] = {}
        per_queue: dict[object, int] = {}
        for number, receipt in reversed(self.sent):
            if per_queue.get(number.producer_queue, 0) < PER_QUEUE:
                per_queue[number.producer_queue] = per_queue.get(number.producer_queue, 0) + 1
                newest.setdefault(number, receipt)
        return newest

    @rule(producer=st.sampled_from("ab"), queue_id=st.integers(0, 1), size=st.integers(1, 9000))
    def send(self, producer: str, queue_id: int, size: int) -> None:
        stored = len(self.sent)
        self.put(producer, queue_id, stored + 1, size)
        assert len(self.sent) == stored + 1, "a new message was taken for an old one"

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        number, _ = data.draw(st.sampled_from(self.sent[-12:]))
        stored, is_known = len(self.sent), number in self.remembered()
        producer = number.producer_queue.producer_id.decode()
        again = self.put(producer, number.producer_queue.queue_id, number.sequence, 5)
        if is_known:
            assert len(self.sent) == stored
            assert again == self.remembered()[number]
        else:
            assert len(self.sent) == stored + 1, "it was promised to be forgotten"

    @rule()
    def start_again(self) -> None:
        self.store.close()
        self.store = MessageStore(self.folder, SMALL, store_host=HOST)
        self.store.open()
        self.window = DuplicateWindow(PER_QUEUE, 100)
        self.window.read_again(self.store.commit_log, HOST)

    @invariant()
    def the_window_is_what_the_model_says(self) -> None:
        model = self.remembered()
        assert self.window.count == len(model)
        for number, receipt in model.items():
            assert self.window.find(number, receipt.unique_key) == receipt

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)


WindowMachine.TestCase.settings = settings(max_examples=8, stateful_step_count=25, deadline=None)
test_numbered_messages_are_stored_once_inside_the_window = pytest.mark.requirement("A086")(WindowMachine.TestCase)


def receipt_of(sequence: int) -> Receipt:
    return Receipt(f"u{sequence}", 0, f"id{sequence}", sequence, "", sequence)


def test_all_producers_together_have_a_bound_and_the_silent_ones_go_first() -> None:
    window = DuplicateWindow(10, 25)
    numbers = {}
    for producer in ("silent", "b", "c"):
        for sequence in range(10):
            number = number_of("T", 0, properties(producer, sequence, f"u{sequence}"))
            assert number is not None
            numbers[producer, sequence] = number
            window.remember(number, receipt_of(sequence))
            assert window.count <= 25
    known = [key for key, number in numbers.items() if window.find(number, f"u{key[1]}") is not None]
    assert known == [("silent", n) for n in range(5, 10)] + [(p, n) for p in "bc" for n in range(10)]


def test_without_a_window_nothing_is_remembered() -> None:
    window = DuplicateWindow(0)
    number = number_of("T", 0, properties("a", 1, "u1"))
    assert number is not None
    window.remember(number, receipt_of(1))
    assert (window.find(number, "u1"), window.count) == (None, 0)


def test_the_same_number_on_another_message_is_no_repetition() -> None:
    window = DuplicateWindow()
    number = number_of("T", 0, properties("a", 1, "u1"))
    assert number is not None
    window.remember(number, receipt_of(1))
    assert window.find(number, "u1") == receipt_of(1)
    assert window.find(number, "another") is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"SKY_MSG_SEQ\x011\x02",
        b"SKY_MSG_PID\x01a\x02",
        b"SKY_MSG_PID\x01a\x02SKY_MSG_SEQ\x01-1\x02",
        b"SKY_MSG_PID\x01a\x02SKY_MSG_SEQ\x01one\x02",
        b"SKY_MSG_PID\x01a\x02SKY_MSG_SEQ\x01" + b"9" * 19 + b"\x02",
        b"SKY_MSG_PID\x01" + b"a" * 201 + b"\x02SKY_MSG_SEQ\x011\x02",
    ],
)
def test_what_is_no_number_is_none(text: bytes) -> None:
    assert number_of("T", 0, text) is None


@pytest.mark.parametrize("topic", ["%RETRY%G", "%DLQ%G"])
def test_retries_of_consumers_carry_numbers_that_mean_nothing(topic: str) -> None:
    assert number_of(topic, 0, properties("a", 1, "u")) is None


def test_only_the_end_of_the_log_is_read_and_it_may_begin_anywhere(tmp_path: Path) -> None:
    numbers = []
    with MessageStore(tmp_path, SMALL, store_host=HOST) as store:
        for sequence in range(200):
            text = properties("a", sequence, f"u{sequence}")
            store.put(PutMessage("T", 0, b"x" * 1000, text, 0, 0, 1, BORN))
            numbers.append(number_of("T", 0, text))
        for tail in (10_000, 10_001, 70_000, 10**9):
            window = DuplicateWindow()
            found = window.read_again(store.commit_log, HOST, tail)
            assert found == 200 if tail == 10**9 else tail // 1400 <= found <= tail // 1000
            known = [n for n, number in enumerate(numbers) if number is not None and window.find(number, f"u{n}")]
            assert known == list(range(200 - found, 200))


def test_a_queue_id_of_thousands_of_digits_in_a_message_keeps_no_broker_from_starting(tmp_path: Path) -> None:
    with MessageStore(tmp_path, SMALL, store_host=HOST) as store:
        for sequence, odd in enumerate((b"", b"REAL_QID\x01" + b"9" * 5000 + b"\x02", b"REAL_QID\x01x\x02")):
            text = properties("a", sequence, f"u{sequence}") + odd
            assert store.put(PutMessage("T", 3, b"x", text, 0, 0, 1, BORN)).ok
        window = DuplicateWindow()
        assert window.read_again(store.commit_log, HOST) == 3
    for sequence in range(3):
        number = number_of("T", 3, properties("a", sequence, f"u{sequence}"))
        assert number is not None
        assert window.find(number, f"u{sequence}") is not None
