"""The keys of a batch, hashed at once, are those that one would compute record by record."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skyrocket.format.even_texts import EvenTexts
from skyrocket.format.index_layout import index_hash, key_text, tag_text
from skyrocket.format.properties import decode_properties
from skyrocket.store.entry_files import EntryFiles
from skyrocket.store.handle_cache import HandleCache
from skyrocket.store.index_keys import even_key_hashes, key_hashes
from skyrocket.store.topic_queue import TopicQueue
from tests.unit.store.stores import UnforcedDisk


def queue_of(topic: str) -> TopicQueue:
    disk = UnforcedDisk()
    return TopicQueue(topic, 0, EntryFiles(disk, HandleCache(disk, 1), "", 20, 20))


def expected(records: list[tuple[str, bytes]], with_tags: bool) -> list[tuple[int, int]]:
    """Record number and hash of every key, the straightforward way."""
    lines = []
    for number, (topic, encoded) in enumerate(records):
        properties = decode_properties(encoded)
        keys = [properties.get("UNIQ_KEY", ""), *properties.get("KEYS", "").split(" ")]
        texts = [key_text(topic, key) for key in keys if key]
        if with_tags and properties.get("TAGS"):
            texts.append(tag_text(topic, properties["TAGS"]))
        lines += [(number, index_hash(text)) for text in texts]
    return lines


def computed(records: list[tuple[str, bytes]], with_tags: bool) -> list[tuple[int, int]]:
    prefixes = np.array([queue_of(topic).index_prefixes for topic, _ in records], dtype=np.uint64)
    found = key_hashes(prefixes, [encoded for _, encoded in records], with_tags=with_tags)
    return list(zip(found.records.tolist(), found.hashes.tolist(), strict=True))


names = st.sampled_from(["KEYS", "TAGS", "UNIQ_KEY", "KEYSX", "XKEYS", "UNIQ", "UNIQ_KEYS", "K", "", "WAIT"])
values = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), max_size=12) | st.sampled_from(
    ["", " ", "  ", "a b", " a  b ", "KEYS", "ключ ключ", "😀", "a" * 100]
)
pairs = st.lists(st.tuples(names, values), max_size=5)
encoded_properties = st.builds(
    lambda listed, end: "\x02".join(f"{name}\x01{value}" for name, value in listed).encode() + end,
    pairs,
    st.sampled_from([b"", b"\x02"]),
)
bytes_near_properties = st.lists(
    st.sampled_from(
        [b"KEYS", b"TAGS", b"UNIQ_KEY", b"\x01", b"\x02", b" ", b"a", b"\xc3", b"\xa9", b"\xf0\x9f", b"\x00"]
    ),
    max_size=14,
).map(b"".join)
topics = st.sampled_from(["T", "Orders", "Müller", "😀", "%RETRY%g"])


@pytest.mark.requirement("A052", "C099")
@given(st.lists(st.tuples(topics, encoded_properties), min_size=1, max_size=8), st.booleans())
@example([("T", b"")], True)
@example([("T", b"KEYS\x01a b"), ("T", b""), ("U", b"TAGS\x01x\x02KEYS\x01c\x02")], True)
@example([("T", b"KEYS\x01a\x02KEYS\x01\x02KEYS\x01b c\x02")], False)
def test_hashes_equal_those_of_each_record_alone(records: list[tuple[str, bytes]], with_tags: bool) -> None:
    assert computed(records, with_tags) == expected(records, with_tags)


@given(st.lists(st.tuples(topics, bytes_near_properties), min_size=1, max_size=6), st.booleans())
def test_broken_properties_give_the_keys_that_a_reader_would_see(
    records: list[tuple[str, bytes]], with_tags: bool
) -> None:
    assert computed(records, with_tags) == expected(records, with_tags)


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=5))
def test_any_bytes_are_taken(properties: list[bytes]) -> None:
    records = [("T", encoded) for encoded in properties]
    assert computed(records, True) == expected(records, True)


def test_a_large_batch_keeps_the_order_of_records_and_of_their_keys() -> None:
    records = [
        (f"T{n % 3}", f"KEYS\x01k{n} k{n + 1}\x02UNIQ_KEY\x01u{n}\x02TAGS\x01t{n % 5}\x02".encode())
        for n in range(5000)
    ]
    assert computed(records, True) == expected(records, True)


even_texts = st.tuples(
    st.sampled_from(
        [
            b"UNIQ_KEY\x01????????\x02KEYS\x01?? ??\x02TAGS\x01??\x02",
            b"KEYS\x01????\x02UNIQ_KEY\x01??\x02",
            b"TAGS\x01??",
            b"KEYS\x01a\x02KEYS\x01?\x02WAIT\x01?",
            b"????????????????",
            b"",
        ]
    ),
    st.lists(
        st.lists(st.sampled_from(b"ab 12\x01\x02\xc3\xa9") | st.sampled_from(b"abc123"), min_size=16, max_size=16),
        min_size=1,
        max_size=6,
    ),
).map(lambda given: [filled(given[0], marks) for marks in given[1]])


def filled(text: bytes, marks: list[int]) -> bytes:
    """The text with these bytes for its question marks."""
    left = iter(marks)
    return bytes(next(left) if byte == ord("?") else byte for byte in text)


@given(even_texts, st.lists(topics, min_size=6, max_size=6), st.booleans())
def test_texts_of_one_length_have_the_same_keys(texts: list[bytes], names: list[str], with_tags: bool) -> None:
    records = list(zip(names, texts, strict=False))
    prefixes = np.array([queue_of(topic).index_prefixes for topic, _ in records], dtype=np.uint64)
    found = even_key_hashes(prefixes, EvenTexts(b"".join(texts), len(texts[0]), len(texts)), with_tags=with_tags)
    wanted = key_hashes(prefixes, texts, with_tags=with_tags)
    assert list(zip(found.records.tolist(), found.hashes.tolist(), strict=True)) == expected(records, with_tags)
    assert found.are_tags.tolist() == wanted.are_tags.tolist()


def test_texts_that_differ_in_their_keys_alone_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skyrocket.store.index_keys.key_hashes", None)
    texts = [b"UNIQ_KEY\x01%032X\x02WAIT\x01true\x02TAGS\x01A\x02" % number for number in range(50)]
    prefixes = np.array([queue_of("T").index_prefixes] * 50, dtype=np.uint64)
    found = even_key_hashes(prefixes, EvenTexts(b"".join(texts), len(texts[0]), 50), with_tags=True)
    wanted = expected([("T", text) for text in texts], True)
    assert list(zip(found.records.tolist(), found.hashes.tolist(), strict=True)) == wanted
