"""The body of a batch send."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import DataError, MessageRefused
from skyrocket.format import large_batch
from skyrocket.format.batch import BatchElement, cut_batch, decode_batch, encode_batch, even_batch
from skyrocket.format.large_batch import batch_of, columns_of
from skyrocket.format.properties import decode_properties
from skyrocket.format.record import decode_record
from tests.golden_store import GoldenStore, Line
from tests.raw_store import RawStore
from tests.unit.format.samples import I32, damaged

ELEMENTS = st.builds(BatchElement, I32, st.binary(max_size=100), st.binary(max_size=60))
SAMPLE = [BatchElement(0, b"one", b"TAGS\x01a\x02"), BatchElement(-7, b"", b""), BatchElement(3, b"three" * 9, b"x")]


@pytest.mark.requirement("C093")
@given(st.lists(ELEMENTS, max_size=6))
def test_a_batch_comes_back_as_the_same_list(elements: list[BatchElement]) -> None:
    assert list(decode_batch(encode_batch(elements))) == elements


@given(I32, st.lists(st.binary(min_size=5, max_size=5), min_size=2, max_size=6), st.binary(max_size=3))
def test_elements_of_one_length_come_back_too_and_damage_in_any_of_them_is_named(
    flag: int, bodies: list[bytes], properties: bytes
) -> None:
    elements = [BatchElement(flag, body, properties) for body in bodies]
    data = encode_batch(elements)
    assert decode_batch(data) == elements
    size = len(data) // len(bodies)
    for number in range(len(bodies)):
        for at in (3, 19, 20 + 5 + 1):  # the low bytes of its three lengths
            place = number * size + at
            broken = data[:place] + bytes([data[place] + 1]) + data[place + 1 :]
            with pytest.raises(DataError, match=f"batch element at byte {number * size}: "):
                decode_batch(broken)


@pytest.mark.requirement("C093")
def test_an_element_is_laid_out_as_rocketmq_expects_it() -> None:
    assert (
        encode_batch([BatchElement(5, b"body", b"A\x01b\x02")])
        == bytes.fromhex("0000001E 00000000 00000000 00000005 00000004".replace(" ", ""))
        + b"body"
        + b"\x00\x04"
        + b"A\x01b\x02"
    )


@pytest.mark.requirement("C093")
@pytest.mark.parametrize("golden", [GoldenStore("5.4.0", "clean")], indirect=True, ids=str)
def test_inner_batches_that_rocketmq_stored_are_taken_apart(golden_lines: list[Line], golden_files: RawStore) -> None:
    batches = [line for line in golden_lines if "INNER_NUM" in line.get("properties", {})]
    assert batches
    for line in batches:
        body = decode_record(golden_files.log_bytes(line["physicalOffset"], line["size"])).body
        elements = list(decode_batch(body))
        assert len(elements) == int(line["properties"]["INNER_NUM"])
        assert encode_batch(elements) == body
        assert all("UNIQ_KEY" in decode_properties(element.properties) for element in elements)


def test_properties_that_the_length_field_cannot_hold_are_refused() -> None:
    assert len(encode_batch([BatchElement(0, b"", b"x" * 32767)])) == 22 + 32767
    with pytest.raises(MessageRefused, match="32767"):
        encode_batch([BatchElement(0, b"", b"x" * 32768)])


def test_a_batch_cut_inside_an_element_is_refused_and_the_place_named() -> None:
    ends = [len(encode_batch(SAMPLE[:n])) for n in range(len(SAMPLE) + 1)]
    data = encode_batch(SAMPLE)
    for cut in range(len(data)):
        if cut in ends:
            assert list(decode_batch(data[:cut])) == SAMPLE[: ends.index(cut)]
            continue
        with pytest.raises(DataError, match=r"batch element at byte \d+"):
            decode_batch(data[:cut])


@given(st.binary(max_size=200) | damaged(encode_batch(SAMPLE)))
def test_other_bytes_are_read_or_refused_but_nothing_else_happens(data: bytes) -> None:
    try:
        elements = list(decode_batch(memoryview(data)))
    except DataError:
        return
    assert sum(22 + len(e.body) + len(e.properties) for e in elements) == len(data)


@given(
    st.builds(lambda element, count: [element] * count, ELEMENTS, st.integers(1, 9)) | st.lists(ELEMENTS, max_size=4),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_a_batch_is_even_when_all_of_its_parts_are_as_long_as_the_first(
    elements: list[BatchElement], dice: Random, is_damaged: bool
) -> None:
    data = bytearray(encode_batch(elements))
    if is_damaged and data:
        data[dice.randrange(len(data))] = dice.choice((0, 1, 255, dice.randrange(256)))
    found = even_batch(bytes(data))
    try:
        columns = cut_batch(bytes(data)) if data else None
    except DataError:
        assert found is None
        return
    is_even = columns is not None and columns.same_end is not None
    assert (found is not None) == is_even
    if found is not None and columns is not None:
        assert found == (bytes(data), len(columns.sizes), columns.sizes[0], columns.body_lengths[0])
        assert found.elements() == columns.elements() == decode_batch(bytes(data))


@given(
    st.lists(ELEMENTS, min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 400), st.sampled_from((0, 1, 127, 128, 255))), max_size=2),
    st.integers(0, 30),
)
def test_large_batches_are_cut_as_small_ones_are(
    elements: list[BatchElement], damages: list[tuple[int, int]], cut_off: int
) -> None:
    data = bytearray(encode_batch(elements))
    for at, value in damages:
        data[at % len(data)] = value
    body = bytes(data[: len(data) - cut_off] if len(data) > cut_off else data)
    found: list[list[object]] = []
    for large_from in (1 << 30, 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(large_batch, "LARGE_FROM", large_from)
            try:
                columns = columns_of(body)
            except DataError as error:
                found.append([str(error)])
            else:
                found.append([columns.elements(), list(columns.sizes), list(columns.body_lengths), columns.messages])
    assert found[0] == found[1]


@given(st.lists(ELEMENTS, min_size=1, max_size=4), st.integers(1, 5))
def test_a_batch_tells_its_sizes_without_being_cut_into_messages(elements: list[BatchElement], times: int) -> None:
    for some in (elements * times, elements[:1] * times):
        whole = batch_of(encode_batch(some))
        assert whole.messages == len(some)
        assert whole.body_size == sum(len(element.body) for element in some)
        assert whole.longest_properties == max(len(element.properties) for element in some)
        assert whole.last_properties == some[-1].properties
