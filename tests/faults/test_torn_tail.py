"""The end of the log, cut at any byte: whole records stay, the torn one and all behind it go."""

from pathlib import Path
from random import Random

import pytest

from skyrocket.config.sections import StoreConfig
from skyrocket.format.batch import BatchElement
from skyrocket.format.checkpoint import decode_checkpoint
from skyrocket.format.properties import decode_properties
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.results import PutStatus
from skyrocket.testing.clock import FakeClock
from tests.faults.harness import (
    Driver,
    Ledger,
    Survives,
    abandon,
    check_goes_on,
    check_promise,
    closing,
    copy_clock,
    copy_ledger,
    copy_store,
    forget_lost,
    new_clock,
    open_store,
    read_queue,
    reopen_and_check,
    small_config,
)


class TornLog:
    """A store whose process was killed, with the last records not yet flushed."""

    def __init__(self, directory: Path, config: StoreConfig) -> None:
        self.root = directory / "killed"
        self.work = directory / "work"
        self.config, self.clock, self.ledger = config, new_clock(), Ledger()
        driver = Driver(open_store(self.root, config, self.clock), self.ledger, self.clock)
        for number in range(24):
            assert driver.put("orders", number % 2) is PutStatus.PUT_OK
        driver.flush()
        driver.store.checkpoint.flush()
        self.first_torn = driver.store.commit_log.written_offset
        for number in range(3):
            assert driver.put("orders", number % 2, 30) is PutStatus.PUT_OK
        self.end = driver.store.commit_log.written_offset
        abandon(driver.store)

    def cut(self, offset: int, filling: bytes) -> None:
        """Replace everything from an offset on, then open."""
        root = copy_store(self.root, self.work)
        file_size = self.config.commit_log_file_size
        path = root / "commitlog" / f"{offset - offset % file_size:020d}"
        with path.open("r+b") as file:
            file.seek(offset % file_size)
            file.write(filling[: file_size - offset % file_size])
        ledger, clock = copy_ledger(self.ledger), copy_clock(self.clock)
        with closing(open_store(root, self.config, clock), ledger, clock) as driver:
            whole = [put for put in ledger.puts if put.end_offset <= offset]
            assert check_promise(driver.store, ledger, Survives.FLUSHED) == len(whole), f"cut at {offset}"
            assert driver.store.commit_log.written_offset == max(put.end_offset for put in whole)
            forget_lost(driver.store, ledger)
            check_goes_on(driver)
        with closing(open_store(root, self.config, clock), ledger, clock) as driver:
            check_promise(driver.store, ledger, Survives.ACKNOWLEDGED)

    def cut_everywhere(self, step: int, *, garbage: bool) -> None:
        length = self.end - self.first_torn
        for offset in range(self.first_torn, self.end, step):
            filling = Random(offset).randbytes(length) if garbage else bytes(length)
            self.cut(offset, filling)


LONG_TEXTS = small_config(commit_log_file_size=16384, preallocate_bytes=16384)
SEALED = small_config(append_record_crc=True, verify_record_crc=True)


@pytest.mark.requirement("C156", "C158")
def test_zeros_from_any_byte_on_end_the_log_before_the_torn_record(directory: Path) -> None:
    TornLog(directory, small_config()).cut_everywhere(19, garbage=False)


@pytest.mark.requirement("C156", "C158")
def test_garbage_from_any_byte_on_ends_the_log_before_the_torn_record(directory: Path) -> None:
    # Garbage in a property text is only seen by the checksum of the whole record.
    TornLog(directory, SEALED).cut_everywhere(31, garbage=True)


@pytest.mark.slow
@pytest.mark.parametrize("garbage", [False, True])
def test_the_log_may_be_cut_at_every_byte(directory: Path, garbage: bool) -> None:
    TornLog(directory, SEALED if garbage else small_config()).cut_everywhere(1, garbage=garbage)


def killed_store_with_a_long_text(directory: Path, ledger: Ledger, clock: FakeClock) -> tuple[int, int]:
    """Three messages, none flushed; where the property text of the middle one begins and ends in the file."""
    driver = Driver(open_store(directory, LONG_TEXTS, clock), ledger, clock)
    driver.put("orders")
    put = ledger.new("orders", 0, clock)
    put.properties += b"LONG\x01" + b"x" * 3000 + b"\x02"
    result = driver.store.put(
        PutMessage("orders", 0, put.body, put.properties, flag=len(put.body), born_timestamp=put.born_timestamp)
    )
    assert result.ok
    driver.put("orders")
    abandon(driver.store)
    end = result.physical_offset + result.record_size
    return end - len(put.properties), end


def fill_with_zeros(directory: Path, start: int, end: int) -> None:
    with (directory / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(start)
        file.write(bytes(end - start))


@pytest.mark.parametrize("missing", ["middle", "last"])
def test_a_record_whose_property_text_lacks_a_sector_is_torn(directory: Path, missing: str) -> None:
    # Lengths and body CRC are right; only zeros within the text betray that the disk does not have it.
    clock, ledger = new_clock(), Ledger()
    _, end = killed_store_with_a_long_text(directory, ledger, clock)
    sector = end - end % 512 - (0 if missing == "last" else 1024)
    fill_with_zeros(directory, sector, sector + 512)  # the last one has the head of the next record as well
    assert reopen_and_check(directory, ledger, LONG_TEXTS, clock, Survives.FLUSHED) == 1


@pytest.mark.requirement("C158")
@pytest.mark.parametrize("copied", [1, 40, 700, 2900, -1])
def test_records_behind_one_that_was_copied_in_part_stay(directory: Path, copied: int) -> None:
    """A process was killed while it copied a record; RocketMQ, to which a whole body is enough, wrote on behind it."""
    clock, ledger = new_clock(), Ledger()
    start, end = killed_store_with_a_long_text(directory, ledger, clock)
    kept = start + copied if copied > 0 else end + copied
    fill_with_zeros(directory, kept, end)

    for _ in range(2):
        store = open_store(directory, LONG_TEXTS, clock)
        messages = [message for message, _ in read_queue(store, "orders", 0)]
        abandon(store)
        assert [message.queue_offset for message in messages] == [0, 1, 2]
        assert [message.body for message in messages] == [put.body for put in ledger.puts]
    assert not (directory / "skyrocket.cut").exists()


@pytest.mark.requirement("C158")
def test_zeros_that_a_producer_wrote_into_a_property_are_no_missing_sectors(directory: Path) -> None:
    clock, ledger = new_clock(), Ledger()
    driver = Driver(open_store(directory, LONG_TEXTS, clock), ledger, clock)
    driver.put("orders")
    put = ledger.new("orders", 0, clock)
    put.properties += b"LONG\x01" + bytes(3000) + b"\x02"
    result = driver.store.put(
        PutMessage("orders", 0, put.body, put.properties, flag=len(put.body), born_timestamp=put.born_timestamp)
    )
    assert result.ok
    driver.put("orders")
    abandon(driver.store)

    store = open_store(directory, LONG_TEXTS, clock)
    assert [message.queue_offset for message, _ in read_queue(store, "orders", 0)] == [0, 1, 2]
    abandon(store)


@pytest.mark.requirement("C158")
@pytest.mark.parametrize("text", [b"NAME\x01ends in\0", b"\0"], ids=["a value", "nothing else"])
@pytest.mark.parametrize("batch", [False, True], ids=["message", "batch"])
def test_a_last_message_whose_property_text_ends_in_a_zero_survives_a_kill(
    directory: Path, text: bytes, batch: bool
) -> None:
    """It looks like one that was copied in part: the store ends the text, which means the same and shows it whole."""
    clock = new_clock()
    store = open_store(directory, LONG_TEXTS, clock)
    assert store.put(PutMessage("orders", 0, b"first", b"NAME\x01plain")).ok
    if batch:
        elements = [BatchElement(0, b"other", text), BatchElement(0, b"last", text)]
        assert store.intake.put_batch(PutMessage("orders", 0, b""), elements).ok
    else:
        assert store.put(PutMessage("orders", 0, b"last", text)).ok
    abandon(store)

    store = open_store(directory, LONG_TEXTS, clock)
    messages = [message for message, _ in read_queue(store, "orders", 0)]
    abandon(store)
    assert [message.body for message in messages] == [b"first", *([b"other"] if batch else []), b"last"]
    assert messages[-1].properties == decode_properties(text)


@pytest.mark.requirement("C158")
def test_what_recovery_forced_to_disk_is_known_to_the_next_though_the_process_is_killed_at_once(
    directory: Path,
) -> None:
    clock, ledger = new_clock(), Ledger()
    killed_store_with_a_long_text(directory, ledger, clock)
    checkpoint = directory / "checkpoint"
    checkpoint.unlink(missing_ok=True)

    store = open_store(directory, LONG_TEXTS, clock)
    known, _ = decode_checkpoint(checkpoint.read_bytes())
    abandon(store)

    assert known.flushed_offset == store.commit_log.written_offset == max(put.end_offset for put in ledger.puts)
