"""Which queues stand still, which has all the lag, and whether a number rises."""

from skyrocket.client.admin.offset_admin import QueueLag
from skyrocket.console.alerts.queue_progress import QueueProgress, skew_of
from skyrocket.console.cluster.trends import Trends
from skyrocket.model.message_queue import MessageQueue


def _lag(queue: int, waiting: int, consumed: int = 10) -> QueueLag:
    return QueueLag(MessageQueue("Orders", "broker-a", queue), consumed + waiting, consumed, 0, None)


def test_a_queue_is_stuck_while_its_offset_stays_and_messages_wait_and_somebody_runs() -> None:
    progress = QueueProgress()
    still, moving = [_lag(0, 5), _lag(1, 5, 20)], [_lag(0, 6), _lag(1, 2, 23)]
    assert progress.stuck_seconds({"billing": still}, {"billing"}, 0) == {"billing": 0.0}
    assert progress.stuck_seconds({"billing": moving}, {"billing"}, 60_000) == {"billing": 60.0}
    assert progress.stuck_seconds({"billing": moving}, set(), 120_000) == {"billing": 0.0}
    assert progress.stuck_seconds({"billing": moving}, {"billing"}, 180_000) == {"billing": 0.0}


def test_a_queue_with_nothing_to_do_is_not_stuck() -> None:
    progress = QueueProgress()
    for now_ms in (0, 600_000):
        assert progress.stuck_seconds({"billing": [_lag(0, 0)]}, {"billing"}, now_ms) == {"billing": 0.0}


def test_lag_is_skewed_when_one_of_many_queues_has_most_of_it() -> None:
    assert skew_of([_lag(0, 3000), *(_lag(queue, 0) for queue in range(1, 8))]) == 1.0
    assert skew_of([_lag(queue, 500) for queue in range(8)]) == 0.125
    assert skew_of([_lag(0, 3000), _lag(1, 0)]) == 0.0  # of two queues one may well have all
    assert skew_of([_lag(0, 30), *(_lag(queue, 0) for queue in range(1, 8))]) == 0.0  # little waits


def test_a_trend_is_the_change_over_the_last_minutes() -> None:
    trends = Trends()
    trends.look("billing", 100, 0.0)
    assert trends.change("billing", 100, 0.0) is None
    assert trends.change("billing", 130, 5.0) == 30
    for minute in range(1, 8):
        trends.look("billing", 100 + minute, minute * 60.0)
    assert trends.change("billing", 107, 421.0) == 5  # since the second minute
    assert trends.change("unknown", 1, 1.0) is None


def test_a_clock_that_is_set_back_does_not_keep_a_queue_from_being_stuck() -> None:
    progress = QueueProgress()
    found = [
        progress.stuck_seconds({"billing": [_lag(0, 5)]}, {"billing"}, now_ms)["billing"]
        for now_ms in (86_400_000, 0, 600_000)
    ]
    assert found == [0.0, 0.0, 600.0]
