"""Keys of the process's messages: as RocketMQ writes them, none twice."""

import pytest

from skyrocket.client.core.client_id import UniqueKeys


def test_keys_of_one_millisecond_count_on_in_four_hexadecimal_digits() -> None:
    keys = UniqueKeys()
    made = [keys.next(1_794_970_875_377) for _ in range(0x10000)]
    assert len(set(made)) == len(made)
    assert {len(key) for key in made} == {32}
    assert len({key[:-4] for key in made}) == 1
    counted = [int(key[-4:], 16) for key in made]
    assert counted == [(counted[0] + number) & 0xFFFF for number in range(len(made))]
    assert all(key == key.upper() for key in made)


def test_another_millisecond_has_another_prefix() -> None:
    keys = UniqueKeys()
    assert keys.next(1_794_970_875_377)[:-4] != keys.next(1_794_970_875_378)[:-4]


def test_a_series_counts_on_over_the_end_of_the_counter_and_shares_it_with_single_keys() -> None:
    keys = UniqueKeys()
    first = keys.next(1_794_970_875_377)
    series = keys.series(0xFFFF, 1_794_970_875_377)
    made = [first, *series, keys.next(1_794_970_875_377)]
    counted = [int(key[-4:], 16) for key in made]
    assert counted == [(counted[0] + number) & 0xFFFF for number in range(len(made))]
    assert {len(key) for key in made} == {32}
    assert (len(series), series[1:3], series[-0xFFFF:][0]) == (0xFFFF, made[2:4], made[1])
    with pytest.raises(IndexError):
        _ = series[0xFFFF]
