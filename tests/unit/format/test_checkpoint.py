"""The checkpoint page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.format.checkpoint import SIZE, Checkpoint, decode_checkpoint, encode_checkpoint
from skyrocket.format.crc import checksum
from tests.golden_store import GoldenStore
from tests.raw_store import RawStore

VALUES = st.integers(0, (1 << 63) - 1)
CHECKPOINTS = st.builds(Checkpoint, VALUES, VALUES, VALUES, VALUES, VALUES, VALUES, VALUES)
SAMPLE = Checkpoint(1_700_000_010_000, 1_700_000_005_000, 1_700_000_001_000, 7, 8, 9, 10)


@pytest.mark.requirement("A023", "C098")
def test_golden_checkpoints_hold_the_times_that_rocketmq_reads(golden: GoldenStore, golden_files: RawStore) -> None:
    told = golden.json("checkpoint")
    page = golden_files.files["checkpoint"]
    checkpoint, trusted = decode_checkpoint(page)
    assert trusted
    assert len(page) == SIZE
    assert checkpoint.physic_timestamp == told["physicMsgTimestamp"]
    assert checkpoint.logics_timestamp == told["logicsMsgTimestamp"]
    assert checkpoint.index_timestamp == told["indexMsgTimestamp"]
    assert checkpoint.master_flushed_offset == told.get("masterFlushedOffset", 0)
    assert checkpoint.confirm_offset == told.get("confirmPhyOffset", 0)
    assert checkpoint.min_timestamp == told["minTimestamp"]
    assert checkpoint.min_timestamp_index == told["minTimestampIndex"]


def test_what_rocketmq_reads_of_our_page_is_what_it_would_have_written(golden_files: RawStore) -> None:
    page = golden_files.files["checkpoint"]
    ours = encode_checkpoint(decode_checkpoint(page)[0])
    assert ours[:4000] == page[:4000]
    assert len(ours) == SIZE


@given(CHECKPOINTS)
def test_a_checkpoint_comes_back(checkpoint: Checkpoint) -> None:
    assert decode_checkpoint(encode_checkpoint(checkpoint)) == (checkpoint, True)


def test_a_flipped_bit_in_the_values_or_the_seal_is_not_trusted() -> None:
    page = encode_checkpoint(SAMPLE)
    sealed = [*range(48), *range(SIZE - 16, SIZE)]
    for byte in sealed:
        for bit in range(8):
            flipped = bytearray(page)
            flipped[byte] ^= 1 << bit
            assert decode_checkpoint(bytes(flipped))[1] is False


def test_byte_40_says_where_the_queues_end_for_rocketmq_5_5() -> None:
    assert int.from_bytes(encode_checkpoint(SAMPLE)[40:48], "big") == SAMPLE.logics_physical_offset


def test_a_seal_over_five_values_as_it_was_written_before_is_trusted() -> None:
    five = SAMPLE._replace(logics_physical_offset=0)
    page = bytearray(encode_checkpoint(five))
    crc = checksum(bytes(page[:40]) + b"SKYR" + five.flushed_offset.to_bytes(8, "big"))
    page[-16:] = b"SKYR" + five.flushed_offset.to_bytes(8, "big") + (crc & 0xFFFFFFFF).to_bytes(4, "big")
    assert decode_checkpoint(bytes(page)) == (five, True)


def test_a_page_of_zeros_is_trusted_and_says_nothing() -> None:
    assert decode_checkpoint(bytes(SIZE)) == (Checkpoint(), True)


@pytest.mark.parametrize("length", [0, 1, 47])
def test_a_page_that_is_too_short_is_not_trusted(length: int) -> None:
    assert decode_checkpoint(encode_checkpoint(SAMPLE)[:length]) == (Checkpoint(), False)


def test_a_negative_time_is_not_trusted() -> None:
    assert decode_checkpoint(b"\xff" * 8 + bytes(SIZE - 8))[1] is False


def test_the_time_to_recover_from_lies_three_seconds_before_the_oldest() -> None:
    assert SAMPLE.min_timestamp == 1_700_000_005_000 - 3000
    assert SAMPLE.min_timestamp_index == 1_700_000_001_000
    assert Checkpoint(2999, 5000).min_timestamp == 0


@given(st.binary(max_size=60) | st.binary(min_size=SIZE, max_size=SIZE))
def test_any_page_decodes(page: bytes) -> None:
    checkpoint, trusted = decode_checkpoint(page)
    assert not trusted or min(checkpoint) >= 0
