"""What Spark says of its queries becomes reports; `report_queries` is the one function to call."""

import contextlib
import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.listener import StreamingQueryListener

from skyrocket.clock import Clock, SystemClock
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.model.query_report import QueryReport, State
from skyrocket.pipeline.query_reports.described import Described, Place, described
from skyrocket.pipeline.query_reports.sending import Sender, put_report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

_CLOSE_SECONDS: Final = 5.0


@dataclass
class _Run:
    """One start of a query."""

    places: tuple[Place, ...]
    latest: QueryReport


class QueryReports(StreamingQueryListener):
    """The listener of one session; queries whose sources have no `consumerGroup` are left alone."""

    def __init__(self, spark: "SparkSession", sender: Sender, clock: Clock, ui_address: str) -> None:
        self._session = spark
        self._sender = sender
        self._clock = clock
        self._ui_address = ui_address.rstrip("/")
        self._runs: dict[str, _Run] = {}  # by the run's id, until it ends
        self._changed = threading.Condition()  # Spark calls from several threads

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:  # noqa: N802
        """The query waits for this: its source is asked of the JVM, nothing goes over the network."""
        self._tell(self._run(str(event.id), str(event.runId), event.name), at_once=True)

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:  # noqa: N802
        """After each batch; also of a query that ran before we listened."""
        progress = event.progress
        rate = progress.processedRowsPerSecond
        run = self._run(str(progress.id), str(progress.runId), progress.name)
        batch, known_rate = int(progress.batchId), float(rate) if math.isfinite(rate) else None
        run.latest = replace(run.latest, batch=batch, rows_per_second=known_rate, reported_ms=self._clock.now_ms())
        self._tell(run)

    def onQueryIdle(self, event: "QueryIdleEvent") -> None:  # noqa: N802
        """It is still there."""
        run = self._runs.get(str(event.runId))
        if run is not None:
            run.latest = replace(run.latest, rows_per_second=0.0, reported_ms=self._clock.now_ms())
            self._tell(run)

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:  # noqa: N802
        """A new start of the same query may be here before the end of the old one: then that is no news."""
        with self._changed:
            run = self._runs.pop(str(event.runId), None)
            if run is not None:
                again = {place for other in self._runs.values() for place in other.places}
                run.places = tuple(place for place in run.places if place not in again)
                state: State = "failed" if event.exception else "ended"
                run.latest = replace(run.latest, state=state, rows_per_second=None, reported_ms=self._clock.now_ms())
                self._tell(run, at_once=True)
            self._changed.notify_all()  # `close` may wait for it

    def close(self) -> None:
        """Wait a little for the ends of queries and for what is to be sent, then listen no more."""
        deadline = self._clock.monotonic() + _CLOSE_SECONDS
        with self._changed:
            self._changed.wait_for(lambda: not any(run.places for run in self._runs.values()), _CLOSE_SECONDS)
        self._sender.drain(max(0.0, deadline - self._clock.monotonic()))
        self._sender.end()
        try:
            self._session.streams.removeListener(self)
        except (Py4JError, PySparkException, OSError) as error:  # the session is gone, and the listener with it
            self._sender.warn(error)

    def _run(self, query_id: str, run_id: str, name: str | None) -> _Run:
        with self._changed:
            run = self._runs.get(run_id)
        if run is not None:
            return run
        found = self._described(query_id, name or "")
        page = f"{self._ui_address}/StreamingQuery/statistics?id={run_id}" if self._ui_address else ""
        first = QueryReport(name or "", query_id, run_id, "running", None, None, found.sink, page, self._clock.now_ms())
        with self._changed:
            return self._runs.setdefault(run_id, _Run(found.places, first))

    def _described(self, query_id: str, name: str) -> Described:
        try:
            return described(self._session, query_id, name)
        except (Py4JError, PySparkException, SkyrocketError) as error:
            self._sender.warn(error)
            return Described()

    def _tell(self, run: _Run, *, at_once: bool = False) -> None:
        for place in run.places:
            self._sender.tell(place, run.latest, at_once=at_once)


def report_queries(spark: "SparkSession", *, ui_address: str | None = None) -> QueryReports:
    """Let every query of this session that reads topics with a `consumerGroup` tell their name servers how it is.

    `ui_address`: where people reach the Spark UI, unless it is where Spark itself thinks. `close()` of what is returned
    waits until the ends of queries were told; call it before `spark.stop()`. Raises ConfigError with Spark Connect.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise ConfigError(
            "queries are reported by the driver, and this session is one of Spark Connect: call report_queries in the "
            "program that has the driver, with a session of skyrocket.pipeline.session"
        )
    clock = SystemClock()
    address = spark.sparkContext.uiWebUrl or "" if ui_address is None else ui_address
    reports = QueryReports(spark, Sender(put_report, clock), clock, address)
    spark.streams.addListener(reports)
    return reports


@contextlib.contextmanager
def queries_reported(spark: "SparkSession") -> Iterator[None]:
    """Meanwhile; the ends of queries that end inside are told, too."""
    reports = report_queries(spark)
    try:
        yield
    finally:
        reports.close()
