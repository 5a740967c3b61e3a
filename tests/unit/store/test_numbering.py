"""Numbers of records in a queue when some of them cannot be right."""

from hypothesis import given
from hypothesis import strategies as st

from skyrocket.store.numbering import agreed_numbers, is_possible, likely_numbers

FAR = 10**9  # a place in the log before which many records fit


def test_one_number_against_its_neighbours_is_wrong() -> None:
    assert agreed_numbers(5, [4220], FAR) is None
    assert agreed_numbers(5, [4220, 6], FAR) == [5, 6]


def test_a_jump_is_real_when_the_next_record_follows_it() -> None:
    assert agreed_numbers(5, [40], FAR) is None
    assert agreed_numbers(5, [40, 41], FAR) == [40, 41]


def test_two_wrong_numbers_in_a_row_do_not_matter() -> None:
    assert agreed_numbers(5, [4220, 9000, 7], FAR) == [5, 6, 7]


def test_the_first_record_of_a_queue_may_be_the_wrong_one_or_the_second() -> None:
    assert agreed_numbers(None, [70_000, 11], FAR) is None
    assert agreed_numbers(None, [70_000, 11, 12], FAR) == [10, 11, 12]
    assert agreed_numbers(None, [10, 70_000, 12], FAR) == [10, 11, 12]


def test_more_records_than_the_log_can_have_had_are_impossible() -> None:
    assert not is_possible(1 << 62, FAR)
    assert not is_possible(-1, FAR)
    assert agreed_numbers(None, [1 << 40, (1 << 40) + 1], FAR) is None


def test_what_nothing_confirms_gets_the_expected_number() -> None:
    assert likely_numbers(5, [4220], FAR) == [5]
    assert likely_numbers(None, [42], FAR) == [42]
    assert likely_numbers(None, [1 << 62], FAR) == [0]


def test_a_last_record_with_number_0_begins_a_new_topic_unless_a_single_bit_explains_it() -> None:
    assert likely_numbers(6, [0], FAR) == [0]
    assert likely_numbers(8, [0], FAR) == [8]


@given(st.integers(0, 10_000), st.integers(2, 8), st.data())
def test_one_flipped_number_among_right_ones_is_always_found_out(first: int, count: int, data: st.DataObject) -> None:
    right = [first + place for place in range(count)]
    wrong = data.draw(st.integers(0, count - 2))
    claimed = list(right)
    claimed[wrong] ^= 1 << data.draw(st.integers(0, 62))
    settled: list[int] = []
    held: list[int] = []
    for number in claimed:
        expected = first + len(settled)
        if not held and number == expected:
            settled.append(number)
            continue
        held.append(number)
        numbers = agreed_numbers(expected, held, FAR)
        if numbers is not None:
            settled, held = settled + numbers, []
    assert settled == right
