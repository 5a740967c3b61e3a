"""The conversations of RocketMQ's own tools with its brokers, played to ours."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from skyrocket.broker.broker import Broker
from skyrocket.config.sections import BrokerConfig, StoreConfig
from tests.cluster.broker.broker_replay import differences, exchanges, is_by_4_9, play, replay
from tests.golden_wire import capture_names

SMALL: Final = StoreConfig(commit_log_file_size=1 << 16, preallocate_bytes=1 << 14, index_slots=16, index_entries=64)

TOPICS: Final = frozenset({17, 18, 21, 215, 305, 316, 351})
GROUPS: Final = frozenset({200, 201, 207, 225, 352, 353})
OTHERS: Final = frozenset({25, 26, 43, 45, 306, 329, 907, 2001, 2002, 2003, 2004})
CODES: Final = TOPICS | GROUPS | OTHERS
# Their brokers refuse for reasons of their own.
WITH_ACCESS_CONTROL: Final = "acl"
# RocketMQ agrees to another directory for a store that is open, without effect; we refuse.
NOT_AS_ROCKETMQ: Final = "admin54-updateBrokerConfig-refused.jsonl"
# RocketMQ 4.9 refuses with other codes and texts; where it agrees to something, so must we.
NAMES: Final = [
    name
    for name in capture_names()
    if not name.startswith((WITH_ACCESS_CONTROL, NOT_AS_ROCKETMQ)) and exchanges(name, CODES)
]


@contextlib.asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Broker]:
    config = BrokerConfig(
        listen_port=0, bind_address="127.0.0.1", broker_ip="127.0.0.1", store_root=str(folder / "store")
    )
    async with Broker(config, SMALL) as broker:
        await broker.start()
        yield broker


@pytest.mark.parametrize("name", NAMES)
async def test_operators_hear_what_the_real_broker_says(tmp_path: Path, name: str) -> None:
    conversation = exchanges(name, CODES)
    conversation = [each for each in conversation if not (is_by_4_9(each) and each.answer_code != 0)]

    async def main() -> list[str]:
        async with running(tmp_path) as broker:
            answers = await replay(broker, conversation)
        return [text for exchange, answer in answers for text in differences(exchange, answer)]

    assert await main() == []


def test_the_captures_show_most_of_these_requests() -> None:
    seen = {exchange.code for name in NAMES for exchange in exchanges(name, CODES)}
    assert CODES - seen == {225, 353, 2002}


@pytest.mark.parametrize("code", [15, 38])
async def test_refusals_about_consumers_carry_empty_fields(tmp_path: Path, code: int) -> None:
    refused = [each for each in exchanges("badinput54-bkreq.jsonl.gz", {code}) if each.answer_code in (1, 17, 26)]
    assert refused

    async def main() -> list[str]:
        async with running(tmp_path) as broker:
            broker.tables.topics.ensure("TopicTest", 4)
            broker.tables.groups.find_or_create("CG_raw")
            answers = await play(broker, refused)
        return [text for exchange, answer in answers for text in differences(exchange, answer)]

    assert await main() == []
