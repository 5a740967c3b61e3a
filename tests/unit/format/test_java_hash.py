"""Java's string hash, singly and many at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.format.java_hash import java_hash, signed, unsigned_hash
from skyrocket.format.text_hashes import Hashes, Texts, hash_texts, power_of_31

VECTORS = {
    "": 0,
    "TagA": 2598919,
    "TopicTest#KEY1": -1656969516,
    "polygenelubricants": -2147483648,
    "\U0001f600": 1772899,
}


def hash_many(texts: list[bytes]) -> Hashes:
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = ends - np.array([len(text) for text in texts], dtype=np.int64)
    slices = Texts(b"".join(texts), starts, ends, np.arange(len(texts)))
    return hash_texts(slices, np.zeros(len(texts), dtype=np.uint32))


VALID_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.mark.parametrize(("text", "expected"), VECTORS.items(), ids=["empty", "tag", "key", "least", "emoji"])
def test_the_hash_is_that_of_java(text: str, expected: int) -> None:
    assert java_hash(text) == expected
    assert signed(int(hash_many([text.encode()])[0])) == expected


def test_many_texts_of_many_lengths_are_hashed_in_order() -> None:
    texts = [text for length in range(70) for text in ("x" * length, "é" * length, "\U0001f600" * length)] * 3
    hashes = hash_many([text.encode() for text in texts])
    assert hashes.dtype == np.uint32
    assert [signed(int(h)) for h in hashes] == [java_hash(text) for text in texts]


def test_no_texts_have_no_hashes() -> None:
    assert hash_many([]).tolist() == []


@given(st.lists(VALID_TEXT | st.text("abc", max_size=3), max_size=40))
def test_hashing_many_agrees_with_hashing_each(texts: list[str]) -> None:
    assert [signed(int(h)) for h in hash_many([text.encode() for text in texts])] == [java_hash(t) for t in texts]


@given(st.text(max_size=40))  # halves of surrogate pairs among them
def test_the_hash_follows_its_definition(text: str) -> None:
    units = text.encode("utf-16-be", "surrogatepass")
    expected = 0
    for at in range(0, len(units), 2):
        expected = (31 * expected + int.from_bytes(units[at : at + 2], "big")) % (1 << 32)
    assert unsigned_hash(text) == expected
    assert -(1 << 31) <= java_hash(text) < 1 << 31


@given(VALID_TEXT, VALID_TEXT)
def test_a_hash_continues_that_of_its_prefix(prefix: str, rest: str) -> None:
    assert unsigned_hash(rest, unsigned_hash(prefix)) == unsigned_hash(prefix + rest)
    units = len(rest.encode("utf-16-be")) // 2
    joined = unsigned_hash(prefix) * power_of_31(units) + unsigned_hash(rest)
    assert joined % (1 << 32) == unsigned_hash(prefix + rest)


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_bytes_that_are_no_text_are_hashed_all_the_same(texts: list[bytes]) -> None:
    assert len(hash_many(texts)) == len(texts)
