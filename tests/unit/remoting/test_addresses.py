"""Addresses as RocketMQ writes them."""

from random import Random

import pytest

from skyrocket.remoting.addresses import Address, AddressList, vip


def test_an_address_is_split_at_its_last_colon() -> None:
    assert Address.parse("broker-a:10911") == ("broker-a", 10911)
    assert Address.parse("[::1]:9876") == ("::1", 9876)
    assert str(Address("::1", 9876)) == "[::1]:9876"
    assert str(Address("10.0.0.1", 1)) == "10.0.0.1:1"


@pytest.mark.parametrize("text", ["", "host", ":1", "host:", "host:x", "host:70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an address"):
        Address.parse(text)


def test_the_vip_port_is_two_below() -> None:
    assert vip("127.0.0.1:10911") == "127.0.0.1:10909"


def test_a_list_keeps_to_the_chosen_address() -> None:
    addresses = AddressList.parse("a:1; b:2;c:3;;a:1", Random(3))
    assert sorted(addresses.in_order()) == ["a:1", "b:2", "c:3"]
    first, second, third = addresses.in_order()
    addresses.choose(second)
    assert addresses.in_order() == [second, third, first]


def test_users_begin_at_different_addresses() -> None:
    text = "a:1;b:2;c:3"
    assert {AddressList.parse(text, Random(seed)).in_order()[0] for seed in range(20)} == {"a:1", "b:2", "c:3"}
