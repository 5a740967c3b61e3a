"""A progress bar over Spark's stages: on a terminal only, on stderr, gone when the work is done.

Spark's own bar writes to the driver's console from the JVM and is off in our sessions. This one asks the status tracker
four times a second from a thread that belongs to the `with` block and ends with it.
"""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from skyrocket.pipeline.report.words import counted

_PERIOD_SECONDS: Final = 0.25
_STOP_SECONDS: Final = 5.0


class StageState(NamedTuple):
    """How far one stage is."""

    stage_id: int
    name: str
    tasks: int
    done: int
    failed: int


@contextlib.contextmanager
def stage_progress(spark: SparkSession, label: str, *, terminal: bool | None = None) -> Iterator[None]:
    """Show the stages that run meanwhile; silent when stderr is not a terminal."""
    if not (sys.stderr.isatty() if terminal is None else terminal):
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        watcher = StageWatcher(bar, label, lambda: running_stages(spark))
        watcher.start()
        try:
            yield
        finally:
            watcher.stop()


class StageWatcher:
    """Feeds a bar from a thread of its own."""

    def __init__(self, bar: Progress, label: str, stages: Callable[[], list[StageState]]) -> None:
        self._bar = bar
        self._stages = stages
        self._task = bar.add_task(label, total=None)
        self._label = label
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="spark-stage-progress", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when the thread has ended."""
        self._stopping.set()
        self._thread.join(_STOP_SECONDS)

    def _watch(self) -> None:
        while not self._stopping.wait(_PERIOD_SECONDS):
            try:
                self.show(self._stages())
            except Exception:  # noqa: BLE001 - a session that stops under us must not break the job that it served
                return

    def show(self, stages: list[StageState]) -> None:
        """What runs now; between stages the bar waits."""
        if not stages:
            self._bar.update(self._task, description=self._label, total=None, completed=0)
            return
        failed = sum(stage.failed for stage in stages)
        text = f"{self._label}: {stages[0].name}" + (f" ({counted(failed, 'task')} failed)" if failed else "")
        total, done = sum(stage.tasks for stage in stages), sum(stage.done for stage in stages)
        self._bar.update(self._task, description=text, total=total, completed=done)


def running_stages(spark: SparkSession) -> list[StageState]:
    """What the session's scheduler says."""
    tracker = spark.sparkContext.statusTracker()
    found = []
    for stage_id in sorted(tracker.getActiveStageIds()):
        info = tracker.getStageInfo(stage_id)
        if info is not None:
            found.append(StageState(stage_id, info.name, info.numTasks, info.numCompletedTasks, info.numFailedTasks))
    return found
