"""Messages and damages for the tests of formats."""

from hypothesis import strategies as st

from skyrocket.model.message import Host, StoredMessage

MESSAGE = StoredMessage(
    topic="TopicTest",
    queue_id=3,
    queue_offset=41,
    physical_offset=1000,
    record_size=0,
    flag=7,
    sys_flag=0,
    born_timestamp=1_700_000_000_000,
    born_host=Host(bytes([10, 0, 0, 1]), 54321),
    store_timestamp=1_700_000_000_005,
    store_host=Host(bytes([10, 0, 0, 2]), 10911),
    reconsume_times=0,
    prepared_transaction_offset=0,
    body_crc=0,
    body=b"hello",
)

# Anything that may stand in a name or a value: no separators, no halves of surrogate pairs.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02"), max_size=20)

I32 = st.integers(-(1 << 31), (1 << 31) - 1)
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
HOSTS = st.builds(Host, st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16), I32)


def stored_messages() -> st.SearchStrategy[StoredMessage]:
    """Messages with every field anywhere in its range."""
    return st.builds(
        StoredMessage,
        topic=st.text(st.characters(exclude_categories=["Cs"]), max_size=140),
        queue_id=I32,
        queue_offset=I64,
        physical_offset=I64,
        record_size=st.just(0),
        flag=I32,
        sys_flag=I32,
        born_timestamp=I64,
        born_host=HOSTS,
        store_timestamp=st.integers(1, (1 << 63) - 1),
        store_host=HOSTS,
        reconsume_times=I32,
        prepared_transaction_offset=I64,
        body_crc=st.just(0),
        body=st.binary(max_size=200),
    )


def damaged(data: bytes) -> st.SearchStrategy[bytes]:
    """The same bytes with some overwritten, cut out or added."""
    places = st.integers(0, len(data))

    def apply(changes: list[tuple[int, int, bytes]]) -> bytes:
        changed = data
        for place, removed, put in changes:
            changed = changed[:place] + put + changed[place + removed :]
        return changed

    overwritten = st.builds(lambda place, put: (place, len(put), put), places, st.binary(min_size=1, max_size=8))
    moved = st.tuples(places, st.integers(0, 8), st.binary(max_size=8))
    return st.builds(apply, st.lists(overwritten | moved, min_size=1, max_size=3))
