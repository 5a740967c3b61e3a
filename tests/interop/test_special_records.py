"""Records that do not simply enter a queue: halves of transactions, inner batches, light queues."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.fastjson import Dialect
from skyrocket.format import sys_flag as flags
from skyrocket.format.config_files import TOPICS, Topics
from skyrocket.model.topic_config import TopicConfig
from tests.interop.apache import Apache
from tests.interop.our_store import found_lines, opened, put_all, read_everything
from tests.interop.rocketmq_store import Draft, Line, append, read
from tests.interop.samples import SMALL_FILES

pytestmark = pytest.mark.interop


def test_prepared_and_rolled_back_records_are_in_the_log_but_in_no_queue(tmp_path: Path, apache: Apache) -> None:
    states = (flags.TRANSACTION_NONE, flags.TRANSACTION_PREPARED, flags.TRANSACTION_COMMIT, flags.TRANSACTION_ROLLBACK)
    drafts = [_draft("Transactions", 0, number, sys_flag=state) for number, state in enumerate(states * 20)]
    with opened(tmp_path, SMALL_FILES) as store:
        stored = put_all(store, drafts)
    offsets = [line["physicalOffset"] for line in stored]

    contents = read(apache, tmp_path, SMALL_FILES, records=offsets)

    assert found_lines(contents.of("record")) == stored
    visible = [
        line for line, draft in zip(stored, drafts, strict=True) if not draft.sys_flag & flags.TRANSACTION_PREPARED
    ]
    assert found_lines(contents.messages) == visible
    assert [line["queueOffset"] for line in visible] == list(range(40))


@pytest.mark.slow
def test_a_batch_queue_goes_to_rocketmq_and_back(tmp_path: Path, apache_of_version: Callable[[str], Apache]) -> None:
    apache = apache_of_version("5.4.0")  # 4.9 has no such queues
    batched = TopicConfig("Batches", attributes={"queue.type": "BatchCQ"})
    (tmp_path / "config").mkdir()
    topics = Topics(topics={"Batches": batched})
    (tmp_path / "config" / "topics.json").write_bytes(TOPICS.encode(topics, Dialect.V5_4))
    with opened(tmp_path, SMALL_FILES, batch_topics={"Batches"}) as store:
        stored = put_all(store, [_batch(number) for number in range(25)])

    contents = append(apache, tmp_path, SMALL_FILES, [_batch(number) for number in range(25, 40)])

    everything = _without_base(contents.messages)
    assert everything[:25] == _without_base(stored)
    assert len(everything) == 40
    (queue,) = contents.of("queue")
    assert (queue["min"], queue["max"]) == (0, sum(1 + number % 4 for number in range(40)))
    with opened(tmp_path, SMALL_FILES, batch_topics={"Batches"}) as store:
        assert _without_base(read_everything(store)) == everything


@pytest.mark.slow
def test_light_queues_go_to_rocketmq_and_back(tmp_path: Path, apache: Apache) -> None:
    config = replace(SMALL_FILES, multi_dispatch=True)
    settings = {"enableLmq": "true", "enableMultiDispatch": "true"}
    with opened(tmp_path, config) as store:
        put_all(store, [_light(number) for number in range(70)])

    contents = append(apache, tmp_path, config, [_light(number) for number in range(70, 140)], settings=settings)

    expected = {("Light", 0): 140, ("%LMQ%a", 0): 140, ("%LMQ%b", 0): 70}
    assert {key: queue["max"] for key, queue in contents.queues.items() if queue["max"]} == expected
    with opened(tmp_path, config) as store:
        assert {(queue.topic, queue.queue_id): queue.max_offset for queue in store.queues} == expected
        by_light_queue = [line for line in read_everything(store) if "INNER_MULTI_DISPATCH" in line["properties"]]
    assert found_lines(by_light_queue) == found_lines(contents.messages)


def _draft(topic: str, queue_id: int, number: int, *, sys_flag: int = 0) -> Draft:
    return Draft(topic, queue_id, bytes(100), {"UNIQ_KEY": f"{number:032X}"}, sys_flag=sys_flag)


def _batch(number: int) -> Draft:
    draft = _draft("Batches", 0, number, sys_flag=flags.INNER_BATCH | flags.NEED_UNWRAP)
    return draft.with_property("INNER_NUM", str(1 + number % 4))


def _light(number: int) -> Draft:
    queues = "%LMQ%a,%LMQ%b" if number % 2 else "%LMQ%a"
    return _draft("Light", 0, number).with_property("INNER_MULTI_DISPATCH", queues)


def _without_base(messages: list[Line]) -> list[Line]:
    """The store adds INNER_BASE, the queue offset of the first message inside."""
    return [line | {"properties": {**line["properties"], "INNER_BASE": ""}} for line in found_lines(messages)]
