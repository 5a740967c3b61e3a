"""Keys of the process's messages: as RocketMQ writes them, none twice."""

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
