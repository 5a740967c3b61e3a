"""The end of the log, cut at any byte: whole records stay, the torn one and all behind it go."""

from pathlib import Path
from random import Random

import pytest

from skyrocket.config.sections import StoreConfig
from skyrocket.store.results import PutStatus
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


@pytest.mark.parametrize("missing", ["middle", "last"])
def test_a_record_whose_property_text_lacks_a_sector_is_torn(directory: Path, missing: str) -> None:
    # Lengths and body CRC are right; only zeros within the text betray that the disk does not have it.
    clock, ledger, config = new_clock(), Ledger(), small_config(commit_log_file_size=16384, preallocate_bytes=16384)
    driver = Driver(open_store(directory, config, clock), ledger, clock)
    driver.put("orders")
    put = ledger.new("orders", 0, clock)
    put.properties += b"LONG\x01" + b"x" * 3000 + b"\x02"
    from skyrocket.store.commit_log import PutMessage

    result = driver.store.put(
        PutMessage("orders", 0, put.body, put.properties, flag=len(put.body), born_timestamp=put.born_timestamp)
    )
    assert result.ok
    driver.put("orders")
    abandon(driver.store)
    with (directory / "commitlog" / f"{0:020d}").open("r+b") as file:
        end = result.physical_offset + result.record_size
        start = end - end % 512 - (0 if missing == "last" else 1024)
        file.seek(start)
        file.write(bytes(min(512, end - start)))
    assert reopen_and_check(directory, ledger, config, clock, Survives.FLUSHED) == 1
