"""Messages worth exchanging: every size, alphabet, host width and topic form that a record can have."""

import random
import zlib
from collections.abc import Iterator

from skyrocket.config.sections import StoreConfig
from skyrocket.format import sys_flag as flags
from tests.interop.rocketmq_store import Draft, KeyQuery

# Small enough that some hundred messages fill several files of every kind.
SMALL_FILES = StoreConfig(
    commit_log_file_size=131_072,
    consume_queue_file_size=1_000,
    batch_queue_file_size=460,
    index_slots=60,
    index_entries=150,
)

BODY_SIZES = (0, 1, 2, 127, 128, 1000, 4096, 32_767, 65_536)
COMMON_TAGS = ("TagA", "订单", "ß–✓", "🚀")
TAGS = (*COMMON_TAGS, "AaAa", "BBBB", "AaBB", "polygenelubricants")  # with equal and extreme hashes
LONG_TOPIC = "T" * 127
LONG_RETRY_TOPIC = "%RETRY%" + "G" * 173  # only a V2 record can hold it
DELAYED_TOPIC = "SCHEDULE_TOPIC_XXXX"
DELAY_OF_TWO_HOURS = 18


def samples(version: str, *, count: int = 300, seed: int = 1) -> list[Draft]:
    """A deterministic mix: one of each peculiarity, then ordinary messages in between many queues."""
    chance = random.Random(f"{version} {seed}")
    mixed = [*_peculiar(chance, version), *_ordinary(chance, count)]
    chance.shuffle(mixed)
    return [_with_unique_key(draft, seed, number) for number, draft in enumerate(mixed)]


def samples_for_rocketmq(version: str, *, count: int = 300, seed: int = 1) -> list[Draft]:
    """The same for RocketMQ to append or recover.

    RocketMQ: 4.9 would delay the delayed message once more, and delivers at once what it had to recover.
    """
    drafts = samples(version, count=count, seed=seed)
    return [draft for draft in drafts if version != "4.9.7" or draft.topic != DELAYED_TOPIC]


def queries_for(drafts: list[Draft], version: str) -> list[KeyQuery]:
    """Every unique key, every business key; on 5.x every tag too."""
    asked: dict[KeyQuery, None] = {}
    for draft in drafts:
        asked[KeyQuery(draft.topic, draft.properties["UNIQ_KEY"], 32)] = None
        for key in draft.properties.get("KEYS", "").split():
            asked[KeyQuery(draft.topic, key)] = None
        if version.startswith("5.") and "TAGS" in draft.properties:
            asked[KeyQuery(draft.topic, draft.properties["TAGS"], type="T")] = None
    return list(asked)


def _peculiar(chance: random.Random, version: str) -> Iterator[Draft]:
    for queue_id, size in enumerate(BODY_SIZES):
        yield Draft("Sizes", queue_id % 2, chance.randbytes(size), {"TAGS": f"size{size}"})
    for tag in TAGS:
        yield Draft("Tags", 0, tag.encode(), {"TAGS": tag, "KEYS": f"{tag} key-of-{len(tag)} {tag}"})
    for born, store in (("127.0.0.1", "::1"), ("2001:db8::7", "127.0.0.1"), ("fe80::1", "2001:db8::2")):
        yield Draft("Hosts", 3, b"far away", {"KEYS": "host"}, born_host=born, store_host=store)
    yield Draft("Flags", 0, b"flag", {}, flag=-559038737)
    yield Draft("Flags", 0, zlib.compress(b"inflate me " * 500), {"TAGS": "zip"}, sys_flag=flags.COMPRESSED)
    yield Draft("Properties", 0, b"", {"tab": "\t", "newline": "\n", "long": "p" * 30_000, "ключ": "значение"})
    yield Draft("%RETRY%group", 0, b"again", {"RETRY_TOPIC": "Orders", "KEYS": "retry"})
    yield Draft("%DLQ%group", 0, b"never again", {"KEYS": "dead"})
    yield Draft(LONG_TOPIC, 0, b"long topic", {"KEYS": "long"})
    delayed = {"DELAY": str(DELAY_OF_TWO_HOURS), "REAL_TOPIC": "Orders", "REAL_QID": "1"}
    yield Draft(DELAYED_TOPIC, DELAY_OF_TWO_HOURS - 1, b"later", delayed)
    if version != "4.9.7":
        yield Draft(LONG_RETRY_TOPIC, 1, b"very long topic", {"KEYS": "longer"})


def _ordinary(chance: random.Random, count: int) -> Iterator[Draft]:
    for number in range(count):
        properties = {"KEYS": f"order-{number} customer-{number % 7}"} if chance.random() < 0.7 else {}
        if chance.random() < 0.7:
            properties["TAGS"] = chance.choice(COMMON_TAGS)
        body = chance.randbytes(chance.choice((20, 200, 1500)))
        yield Draft(chance.choice(("Orders", "Payments")), chance.randrange(4), body, properties)


def _with_unique_key(draft: Draft, seed: int, number: int) -> Draft:
    return draft.with_property("UNIQ_KEY", f"7F0000010001{seed:08X}{number:012X}")
