"""Bodies of batches are those that the format's own encoder makes, whatever messages meet in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.client.core.client_id import KeySeries
from skyrocket.client.core.message import INSTANCE_ID, Message, property_text
from skyrocket.client.producer.batches import ELEMENT_BYTES, element_of, joined, properties_of
from skyrocket.client.sending.message_encoding import EncodingRules
from skyrocket.errors import MessageRefused
from skyrocket.format.batch import decode_batch

words = st.text("abcäü漢", min_size=1, max_size=4)
messages = st.builds(
    Message,
    st.just("Orders"),
    st.binary(min_size=1, max_size=40),
    tags=st.none() | words,
    keys=st.lists(words, max_size=2),
    properties=st.dictionaries(words, words, max_size=2),
    sharding_key=st.none() | words,
    flag=st.integers(0, 3),
    wait_store_ok=st.booleans(),
)


@given(st.lists(messages, max_size=12), st.integers(0, 0xFFFF), st.sampled_from(["", "east"]))
def test_a_batch_has_bodies_flags_and_properties_with_the_keys_of_its_series(
    given_messages: list[Message], first: int, namespace: str
) -> None:
    keys = KeySeries("7F000001" + "0" * 20, first, len(given_messages))
    elements = [element_of(message, EncodingRules(namespace)) for message in given_messages]
    body = joined(elements, keys)
    assert len(body) == sum(len(own) + len(tail) + ELEMENT_BYTES for own, tail, _ in elements)
    extra = {INSTANCE_ID: namespace} if namespace else None
    decoded = decode_batch(body)
    for number, (message, found) in enumerate(zip(given_messages, decoded, strict=True)):
        properties = property_text(message, keys[number], extra)
        assert (found.body, found.flag) == (message.body, message.flag)
        assert found.properties == properties.encode()
        assert properties_of(keys[number], elements[number][1]) == properties


@pytest.mark.parametrize("flag", [1 << 31, -(1 << 31) - 1])
def test_a_flag_that_no_batch_has_room_for_is_refused_before_others_wait_with_it(flag: int) -> None:
    with pytest.raises(MessageRefused, match="flag="):
        element_of(Message("Orders", b"x", flag=flag), EncodingRules())
    assert element_of(Message("Orders", b"x", flag=(1 << 31) - 1), EncodingRules())[2] == (1 << 31) - 1


def test_half_a_surrogate_pair_is_replaced_as_in_messages_that_travel_alone() -> None:
    message = Message("Orders", b"x", properties={"note": "half \ud83d"})
    keys = KeySeries("7F000001" + "0" * 20, 0, 1)
    (found,) = decode_batch(joined([element_of(message, EncodingRules())], keys))
    assert found.properties == property_text(message, keys[0]).encode("utf-8", "replace")
