"""Keeps a declared pipeline going: a query per sink; one that fails is started again after a wait that doubles.

Stopping waits for the batches that are at work, so that none has to be repeated. Spark cannot be told to begin no other
one: a batch that begins in the very moment of the stop, or takes longer than the grace, is cut off, and repeated from
its checkpoint at the next start.
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from skyrocket.clock import Clock, SystemClock
from skyrocket.errors import SkyrocketError
from skyrocket.pipeline.declared.frames import Output
from skyrocket.pipeline.declared.plan import Pipeline, Restart, Trigger
from skyrocket.pipeline.declared.writing import start_query, write_once
from skyrocket.pipeline.jobs.launch import cause_of
from skyrocket.pipeline.query_reports.listener import queries_reported

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.2
_GRACE_SECONDS: Final = 60.0
_IDLE: Final = (
    "Waiting",
    "Getting offsets",
    "Initializing",
    "Stopped",
    "Terminated",
)  # what Spark says between batches


class PipelineFailed(SkyrocketError):
    """A sink could not be kept going."""


@dataclass(frozen=True)
class BatchDone:
    """What one batch of one sink has done."""

    pipeline: str
    sink: str
    batch: int
    rows_in: int
    rows_out: int  # -1 where the sink does not count
    milliseconds: int
    malformed: int  # bodies that could not be decoded
    watermark: str | None  # events before it are late

    def line(self) -> str:
        """As a line for people."""
        out = "" if self.rows_out < 0 else f", {self.rows_out} out"
        bad = f", {self.malformed} malformed" if self.malformed else ""
        late = f", watermark {self.watermark}" if self.watermark else ""
        what = f"batch {self.batch}, {self.rows_in} in{out}, {self.milliseconds} ms{bad}{late}"
        return f"{self.pipeline} ▸ {self.sink}: {what}"

    def json(self) -> str:
        """As a line of JSON."""
        return json.dumps(asdict(self))


def batch_done(pipeline: str, sink: str, told: Mapping[str, Any]) -> BatchDone:
    """From the JSON of a StreamingQueryProgress."""
    observed = (told.get("observedMetrics") or {}).items()
    watermark = (told.get("eventTime") or {}).get("watermark")
    return BatchDone(
        pipeline=pipeline,
        sink=sink,
        batch=int(told["batchId"]),
        rows_in=int(told.get("numInputRows") or 0),
        rows_out=int((told.get("sink") or {}).get("numOutputRows", -1)),
        milliseconds=int((told.get("durationMs") or {}).get("triggerExecution", 0)),
        malformed=sum(int(values["malformed"]) for name, values in observed if name.startswith("decode_")),
        watermark=None if watermark is None or watermark.startswith("1970-01-01") else watermark,
    )


def wait_seconds(restart: Restart, failures: int) -> float | None:
    """How long to wait after a number of failures in a row; None when it was the last."""
    if failures > restart.attempts:
        return None
    return min(restart.longest_seconds, restart.first_seconds * 2.0 ** (failures - 1))


def _cause(error: Exception) -> str:
    """Of an error of Java itself the first line says only which call it was; the second is the error."""
    found = cause_of(error)
    lines = str(error).splitlines()
    return f"Spark says: {lines[1].lstrip(': ')}" if "calling o" in found and len(lines) > 1 else found


class _Writer:
    """One sink's query, through all its restarts."""

    def __init__(self, output: Output, start: "Callable[[], StreamingQuery]", restart: Restart) -> None:
        self.name = output.sink.name
        self.done = False
        self.failure: str | None = None  # for good
        self._start = start
        self._restart = restart
        self._query: StreamingQuery | None = None
        self._failures = 0
        self._start_at = 0.0
        self._told: tuple[str, int] = ("", -1)  # run and batch
        self._last_seen = ""  # when its newest progress was made

    def look(self, now: float, tell: Callable[[BatchDone], None], pipeline: str) -> None:
        """Start it when it is time, tell what it has done, see whether it has failed."""
        if self._query is None:
            if now >= self._start_at:
                self._begin(now)
            return
        active = self._query.isActive  # before its batches are read: those of an ended query are then complete
        self._tell_news(tell, pipeline)
        if active:
            return
        error = self._query.exception()
        if error is None:
            self.done = True
        else:
            self._failed(now, _cause(error))

    def _begin(self, now: float) -> None:
        try:
            self._query = self._start()
        except (PySparkException, Py4JError) as error:
            self._failed(now, _cause(error))

    def _failed(self, now: float, cause: str) -> None:
        self._query = None
        self._failures += 1
        wait = wait_seconds(self._restart, self._failures)
        if wait is None:
            self.failure = cause
            return
        _logger.warning(
            "sink %s failed, starts again in %g s failures=%d cause=%s", self.name, wait, self._failures, cause
        )
        self._start_at = now + wait

    def _tell_news(self, tell: Callable[[BatchDone], None], pipeline: str) -> None:
        assert self._query is not None
        last = self._query.lastProgress
        if last is None or last["timestamp"] == self._last_seen:
            return  # the whole list comes from the JVM as JSON: not five times a second
        self._last_seen = last["timestamp"]
        run = str(self._query.runId)
        told_run, told_batch = self._told
        for progress in self._query.recentProgress:
            done = batch_done(pipeline, self.name, progress)
            if (run == told_run and done.batch <= told_batch) or not progress.get("durationMs", {}).get("addBatch"):
                continue  # an idle look at the sources repeats the last number
            self._told = told_run, told_batch = (run, done.batch)
            self._failures = 0
            tell(done)

    @property
    def is_at_work(self) -> bool:
        """Whether a batch is being written; a mere look for new messages is none."""
        if self._query is None or not self._query.isActive:
            return False
        return not str(self._query.status["message"]).startswith(_IDLE)

    def stop(self) -> None:
        query, self._query = self._query, None
        if query is not None:
            query.stop()


class Runner:
    """`run` returns when everything is written (once) or when `stop` was called; raises PipelineFailed."""

    def __init__(
        self,
        pipeline: Pipeline,
        outputs: Sequence[Output],
        namesrv: str,
        *,
        once: bool = False,
        on_batch: Callable[[BatchDone], None] = lambda done: None,
        clock: Clock | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._outputs = outputs
        self._namesrv = namesrv
        self._trigger = Trigger(None) if once else pipeline.trigger
        self._on_batch = on_batch
        self._clock = clock or SystemClock()
        self._stopping = threading.Event()

    def stop(self) -> None:
        """From any thread or signal handler."""
        self._stopping.set()

    def run(self) -> None:
        if not self._pipeline.is_stream:
            self._write_all()
            return
        writers = [self._writer(output) for output in self._outputs]
        with queries_reported(self._outputs[0].rows.sparkSession):
            try:
                while not self._stopping.is_set() and not all(writer.done for writer in writers):
                    self._look(writers)
                    self._stopping.wait(_LOOK_SECONDS)
            finally:
                self._end(writers)

    def _writer(self, output: Output) -> _Writer:
        def start() -> "StreamingQuery":
            return start_query(self._pipeline, output, self._namesrv, self._trigger)

        return _Writer(output, start, self._pipeline.restart)

    def _look(self, writers: Sequence[_Writer]) -> None:
        for writer in writers:
            if not writer.done:
                writer.look(self._clock.monotonic(), self._on_batch, self._pipeline.name)
            if writer.failure is not None:
                raise PipelineFailed(
                    f"pipeline {self._pipeline.name}, sink {writer.name}: given up after "
                    f"{self._pipeline.restart.attempts} restarts without progress: {writer.failure}"
                )

    def _end(self, writers: Sequence[_Writer]) -> None:
        deadline = self._clock.monotonic() + _GRACE_SECONDS
        pause = threading.Event()
        for writer in writers:
            while writer.is_at_work and self._clock.monotonic() < deadline:
                pause.wait(_LOOK_SECONDS / 4)
            writer.stop()

    def _write_all(self) -> None:
        for output in self._outputs:
            try:
                write_once(output, self._namesrv)
            except (PySparkException, Py4JError) as error:
                raise PipelineFailed(
                    f"pipeline {self._pipeline.name}, sink {output.sink.name}: {_cause(error)}"
                ) from error
