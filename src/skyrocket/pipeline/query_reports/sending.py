"""Reports on their way to name servers: one thread, the latest of each query, and seldom.

Nothing here may hold a query up: who tells something only leaves it here. What cannot be sent is given up, with a line
in the log once a minute; the next report comes anyway.
"""

import logging
import threading
from collections.abc import Callable
from typing import Final

from skyrocket.client import Admin
from skyrocket.clock import Clock
from skyrocket.errors import SkyrocketError
from skyrocket.model.query_report import QUERIES, QueryReport, group_of, report_of
from skyrocket.pipeline.query_reports.described import Place
from skyrocket.pipeline.topic_source.connection import connected, submit

_logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 10.0
_SEND_SECONDS: Final = 5.0
_SILENCE_SECONDS: Final = 60.0
_LONGEST_WAIT_SECONDS: Final = 60.0
_MOST_PLACES: Final = 200  # queries that report at once
_OLD_MS: Final = 7 * 86_400_000
_MOST_FORGOTTEN: Final = 20  # at one start


class Sender:
    """Sends what it is told; `end` stops its thread."""

    def __init__(self, send: Callable[[Place, QueryReport], None], clock: Clock) -> None:
        self._send = send
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: dict[Place, QueryReport] = {}
        self._due: dict[Place, float] = {}  # when the next one may be sent, of every query that has not ended
        self._is_sending = False
        self._is_ended = False
        self._warned_at = float("-inf")
        self._thread = threading.Thread(target=self._run, name="query-reports", daemon=True)
        self._thread.start()

    def tell(self, place: Place, report: QueryReport, *, at_once: bool = False) -> None:
        """Leave a report; it takes the place of one that still waits. `at_once`: at the start and at the end."""
        with self._changed:
            if place not in self._due and len(self._due) >= _MOST_PLACES:
                self.warn(f"more than {_MOST_PLACES} queries report, {place.key} does not")
                return
            now = self._clock.monotonic()
            self._waiting[place] = report
            self._due[place] = now if at_once else self._due.get(place, now)
            self._changed.notify_all()

    def drain(self, seconds: float) -> bool:
        """Wait until nothing waits that is due; whether it came to that in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_sending and self._next()[0] is None, seconds)

    def end(self) -> None:
        """Returns when the thread has ended, or is in its last request."""
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()
        self._thread.join(_SEND_SECONDS)

    def warn(self, reason: object) -> None:
        """A line in the log, once a minute."""
        now = self._clock.monotonic()
        if now - self._warned_at >= _SILENCE_SECONDS:
            self._warned_at = now
            _logger.warning("a query was not reported, it goes on reason=%s", reason)

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            place, report = taken
            try:
                self._send(place, report)
            except (SkyrocketError, OSError) as error:  # a time-out is an OSError
                self.warn(str(error) or type(error).__name__)
            finally:
                with self._changed:
                    self._is_sending = False
                    self._changed.notify_all()

    def _take(self) -> tuple[Place, QueryReport] | None:
        """Wait for the next one that is due; None at the end."""
        with self._changed:
            while not self._is_ended:
                place, wait = self._next()
                if place is None:
                    self._changed.wait(wait)
                    continue
                report = self._waiting.pop(place)
                if report.state == "running":
                    self._due[place] = self._clock.monotonic() + _EVERY_SECONDS
                else:
                    del self._due[place]
                self._is_sending = True
                return place, report
            return None

    def _next(self) -> tuple[Place | None, float]:
        """What is due, else None and how long to wait."""
        place = min(self._waiting, key=self._due.__getitem__, default=None)
        if place is None:
            return None, _LONGEST_WAIT_SECONDS
        wait = self._due[place] - self._clock.monotonic()
        return (place, 0.0) if wait <= 0 else (None, min(wait, _LONGEST_WAIT_SECONDS))


def put_report(place: Place, report: QueryReport) -> None:
    """Keep it at the cluster's name servers; raises SkyrocketError or TimeoutError."""
    work = submit(_put(place, report))
    try:
        work.result(_SEND_SECONDS)
    except TimeoutError:
        work.cancel()
        raise TimeoutError(
            f"name servers {place.cluster.name_servers} did not answer within {_SEND_SECONDS:g} s"
        ) from None


async def _put(place: Place, report: QueryReport) -> None:
    admin = (await connected(place.cluster)).admin
    await admin.put_value(QUERIES, place.key, report.text())
    if report.state == "running" and report.batch is None:
        await _forget_old(admin, place.key, report.reported_ms)


async def _forget_old(admin: Admin, key: str, now_ms: int) -> None:
    """Queries of the group that were not heard of for a week: ids of checkpoints that are gone would pile up."""
    kept = {other: report_of(text) for other, text in (await admin.values(QUERIES)).items()}
    old = [
        other
        for other, report in kept.items()
        if other != key and group_of(other) == group_of(key) and report and now_ms - report.reported_ms > _OLD_MS
    ]
    for other in old[:_MOST_FORGOTTEN]:
        await admin.delete_value(QUERIES, other)
