"""Dispatch: log → queues → index → listeners, in log order; delay topic; light queues."""

import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skyrocket.format import sys_flag as flags
from skyrocket.format.java_hash import java_hash
from skyrocket.model.delay_level import parse_delay_levels
from skyrocket.model.topic import SCHEDULE_TOPIC
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.message_store import MessageStore
from skyrocket.store.record_tuples import DispatchItem
from skyrocket.store.results import GetStatus, PutStatus
from tests.unit.store.stores import TOPIC, Stores, bodies, fill_files, message, put, record
from tests.waiting import wait_until


def tags_code(store: MessageStore, topic: str, queue_id: int, offset: int) -> int:
    queue = store.queues.get(topic, queue_id)
    assert isinstance(queue, ConsumeQueue)
    entry = queue.entry(offset)
    assert entry is not None
    return entry.tags_code


# -- order ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("C097")
def test_the_dispatch_thread_pauses_a_millisecond_whenever_there_is_nothing_to_do(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float | None] = []
    wait = threading.Event.wait

    def noted(event: threading.Event, timeout: float | None = None) -> bool:
        if threading.current_thread().name == "store-dispatch":
            pauses.append(timeout)
        return wait(event, timeout)

    monkeypatch.setattr(threading.Event, "wait", noted)
    store = stores.open(dispatch_thread=True)
    for number in range(3):
        put(store)
        wait_until(lambda number=number: store.max_offset(TOPIC, 0) == number + 1)  # type: ignore[misc]
        wait_until(lambda: bool(pauses))
    assert set(pauses) == {0.001}


@pytest.mark.requirement("A003")
def test_nothing_is_visible_before_it_is_dispatched(stores: Stores) -> None:
    store = stores.open()
    put(store)
    assert store.max_offset(TOPIC, 0) == 0
    assert store.dispatch_lag_bytes == store.commit_log.written_offset
    assert store.dispatch() == 1
    assert store.max_offset(TOPIC, 0) == 1
    assert store.dispatch_lag_bytes == 0
    assert store.dispatch() == 0


def test_listeners_hear_of_every_record_once_in_log_order_after_it_is_readable(stores: Stores) -> None:
    store = stores.open()
    heard: list[int] = []
    order: list[str] = []

    def first(items: Sequence[DispatchItem]) -> None:
        order.append("first")
        for queue, physical_offset, _, _, queue_offset, _, _ in items:
            heard.append(physical_offset)
            assert queue.max_offset > queue_offset
            assert store.get(queue.topic, queue.queue_id, queue_offset).count

    store.add_listener(first)
    store.add_listener(lambda items: order.append("second"))
    results = [put(store, queue_id=number % 3) for number in range(50)]
    store.dispatch()
    results += fill_files(store, 3)
    store.dispatch()
    assert heard == [result.physical_offset for result in results]
    assert order[:2] == ["first", "second"]


def test_a_listener_that_fails_stops_neither_dispatch_nor_the_others(stores: Stores) -> None:
    store = stores.open()
    heard: list[int] = []

    def broken(items: Sequence[DispatchItem]) -> None:
        raise ValueError("not the store's fault")

    store.add_listener(broken)
    store.add_listener(lambda items: heard.append(len(items)))
    put(store)
    store.dispatch()
    put(store)
    store.dispatch()
    assert heard == [1, 1]
    assert store.max_offset(TOPIC, 0) == 2
    assert store.dispatch_lag_bytes == 0


@pytest.mark.parametrize("kind", [flags.TRANSACTION_PREPARED, flags.TRANSACTION_ROLLBACK])
def test_prepared_and_rollback_records_enter_no_queue(stores: Stores, kind: int) -> None:
    store = stores.open()
    put(store, sys_flag=kind)
    store.dispatch()
    assert store.get(TOPIC, 0, 0).status is GetStatus.NO_MESSAGE_IN_QUEUE


# -- tags and delays -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("A010")
@pytest.mark.parametrize("tags", ["red", "ТЕГ", "a || b", "x" * 300])
def test_the_tags_code_is_the_hash_of_the_whole_text(stores: Stores, tags: str) -> None:
    store = stores.open()
    for _ in range(2):
        put(store, properties={"TAGS": tags})
    put(store)
    store.dispatch()
    assert [tags_code(store, TOPIC, 0, offset) for offset in range(3)] == [java_hash(tags), java_hash(tags), 0]


@pytest.mark.requirement("C132", "C135", "A045")
@pytest.mark.parametrize(("level", "counted"), [("1", 1), ("3", 3), ("18", 18), ("19", 18), ("99", 18)])
def test_the_delay_topic_holds_delivery_times_instead_of_hashes(stores: Stores, level: str, counted: int) -> None:
    store = stores.open()
    queue_id = counted - 1
    result = put(store, topic=SCHEDULE_TOPIC, queue_id=queue_id, properties={"DELAY": level, "TAGS": "red"})
    store.dispatch()
    delay_ms = parse_delay_levels(store.config.message_delay_levels)[counted - 1]
    assert tags_code(store, SCHEDULE_TOPIC, queue_id, 0) == result.store_timestamp + delay_ms


@pytest.mark.parametrize("level", ["0", "-1", "soon"])
def test_without_a_level_the_delay_topic_holds_the_hash(stores: Stores, level: str) -> None:
    store = stores.open()
    put(store, topic=SCHEDULE_TOPIC, properties={"DELAY": level, "TAGS": "red"})
    store.dispatch()
    assert tags_code(store, SCHEDULE_TOPIC, 0, 0) == java_hash("red")


def test_a_delay_property_in_another_topic_is_no_delay(stores: Stores) -> None:
    store = stores.open()
    put(store, properties={"DELAY": "3", "TAGS": "red"})
    store.dispatch()
    assert tags_code(store, TOPIC, 0, 0) == java_hash("red")


def test_other_delay_levels_can_be_set(stores: Stores) -> None:
    store = stores.open(message_delay_levels="7s 2d")
    times = [
        put(store, topic=SCHEDULE_TOPIC, queue_id=n - 1, properties={"DELAY": str(n)}).store_timestamp for n in (1, 2)
    ]
    store.dispatch()
    assert tags_code(store, SCHEDULE_TOPIC, 0, 0) == times[0] + 7000
    assert tags_code(store, SCHEDULE_TOPIC, 1, 0) == times[1] + 2 * 86_400_000


# -- light queues --------------------------------------------------------------------------------------------------


def light(names: str, body: bytes = b"hello", **fields: Any) -> PutMessage:
    return message(body, properties={"INNER_MULTI_DISPATCH": names}, **fields)


def test_one_record_appears_in_every_light_queue_that_it_names(stores: Stores) -> None:
    store = stores.open(multi_dispatch=True)
    results = [
        store.put(light("%LMQ%a,%LMQ%b", b"both", queue_id=2)),
        store.put(light("%LMQ%b", b"only b", queue_id=1)),
        store.put(light("%LMQ%a", b"only a")),
        store.put(message(b"none")),
    ]
    assert all(result.ok for result in results)
    store.dispatch()

    offsets = [record(store, result.physical_offset).properties.get("INNER_MULTI_QUEUE_OFFSET") for result in results]
    assert offsets == ["0,0", "1", "1", None]
    assert bodies(store.get("%LMQ%a", 0, 0)) == [b"both", b"only a"]
    assert bodies(store.get("%LMQ%b", 0, 0)) == [b"both", b"only b"]
    assert bodies(store.get(TOPIC, 2, 0)) == [b"both"]
    assert store.query(TOPIC, "x") == []
    store.close()
    store = stores.open(multi_dispatch=True)
    assert bodies(store.get("%LMQ%a", 0, 0)) == [b"both", b"only a"]
    result = store.put(light("%LMQ%a"))
    assert record(store, result.physical_offset).properties["INNER_MULTI_QUEUE_OFFSET"] == "2"


def test_other_names_are_queues_with_the_same_id(stores: Stores) -> None:
    store = stores.open(multi_dispatch=True)
    put(store, b"zero", topic="Copy", queue_id=3)
    store.put(light("Copy", b"one", queue_id=3))
    store.dispatch()
    assert bodies(store.get("Copy", 3, 0)) == [b"zero", b"one"]


def test_without_the_setting_light_queues_are_not_fed(stores: Stores) -> None:
    store = stores.open()
    store.put(light("%LMQ%a"))
    store.dispatch()
    assert store.get("%LMQ%a", 0, 0).status is GetStatus.NO_MATCHED_LOGIC_QUEUE


@pytest.mark.parametrize("topic", ["%RETRY%group", "rmq_sys_wheel_timer", SCHEDULE_TOPIC])
def test_system_topics_do_not_feed_light_queues(stores: Stores, topic: str) -> None:
    store = stores.open(multi_dispatch=True)
    result = put(store, topic=topic, properties={"INNER_MULTI_DISPATCH": "%LMQ%a"})
    store.dispatch()
    assert store.queues.get("%LMQ%a", 0) is None
    assert "INNER_MULTI_QUEUE_OFFSET" not in record(store, result.physical_offset).properties


@pytest.mark.parametrize(
    "names",
    ["%LMQ%a/b", "../../elsewhere", "%LMQ%a,,%LMQ%b", "..", "%LMQ%a,%LMQ%a", "%LMQ%" + 251 * "9", "%LMQ%" + 126 * "é"],
)
def test_names_that_cannot_be_directories_are_refused(stores: Stores, names: str) -> None:
    store = stores.open(multi_dispatch=True)
    assert store.put(light(names)).status is PutStatus.MESSAGE_ILLEGAL
    assert len(list(Path(store.paths.consume_queue).iterdir())) == 0
    assert store.put(light("%LMQ%a")).ok


def test_a_light_queue_may_have_a_name_as_long_as_a_directory(stores: Stores) -> None:
    store = stores.open(multi_dispatch=True)
    name = "%LMQ%" + 125 * "é"
    assert store.put(light(name)).ok
    store.dispatch()
    store.flush_queues()
    assert (Path(store.paths.consume_queue) / name / "0").is_dir()


def test_a_light_queue_with_a_name_too_long_in_a_log_of_others_does_not_stop_the_store(stores: Stores) -> None:
    plain = stores.open()
    claim = {"INNER_MULTI_DISPATCH": "%LMQ%" + 300 * "9", "INNER_MULTI_QUEUE_OFFSET": "0"}
    assert put(plain, properties=claim).ok  # without light queues it means nothing
    plain.close()
    for path in (Path(plain.paths.consume_queue), Path(plain.paths.checkpoint)):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    store = stores.open(multi_dispatch=True)
    assert [queue.topic for queue in store.queues] == [TOPIC]


def test_offsets_that_a_client_claims_are_replaced_by_the_true_ones(stores: Stores) -> None:
    store = stores.open(multi_dispatch=True)
    claim = {"INNER_MULTI_DISPATCH": "%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": "1000000000000"}
    result = put(store, properties=claim)
    assert record(store, result.physical_offset).properties["INNER_MULTI_QUEUE_OFFSET"] == "0"
    store.dispatch()
    assert store.max_offset("%LMQ%a", 0) == 1


@pytest.mark.usefixtures("hurried_threads")
def test_eight_threads_leave_no_gap_in_a_light_queue(stores: Stores) -> None:
    store = stores.open(multi_dispatch=True, commit_log_file_size=1 << 20)

    def write() -> None:
        for _ in range(100):
            assert store.put(light("%LMQ%a,%LMQ%b")).ok

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.dispatch()
    for name in ("%LMQ%a", "%LMQ%b"):
        queue = store.queues.get(name, 0)
        assert isinstance(queue, ConsumeQueue)
        assert (queue.max_offset, queue.has_gap) == (800, False)
        physical = [entry.physical_offset for n in range(800) if (entry := queue.entry(n)) is not None]
        assert physical == sorted(set(physical))


def test_a_put_that_fails_uses_up_no_light_offset(stores: Stores) -> None:
    store = stores.open(multi_dispatch=True)
    assert not store.put(light("%LMQ%a", b"x" * 70_000)).ok
    result = store.put(light("%LMQ%a"))
    assert record(store, result.physical_offset).properties["INNER_MULTI_QUEUE_OFFSET"] == "0"
