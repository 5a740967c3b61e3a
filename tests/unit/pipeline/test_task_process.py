"""A worker of Spark after its first task: what is loaded is not looked at after every other one."""

import gc
import weakref
from collections.abc import Iterator

import pytest
from pyspark import TaskContext

from skyrocket.pipeline import task_process
from skyrocket.pipeline.task_process import spare_loaded_objects


@pytest.fixture(autouse=True)
def _thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(task_process, "_done_in", 0)
    gc.unfreeze()
    yield
    gc.unfreeze()


class _Ring:
    def __init__(self) -> None:
        self.own = self


def test_a_process_without_tasks_is_left_alone() -> None:
    spare_loaded_objects()
    assert gc.get_freeze_count() == 0


def test_the_first_task_sets_aside_what_is_there_without_garbage_and_the_others_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TaskContext, "_taskContext", TaskContext())
    garbage = weakref.ref(_Ring())
    spare_loaded_objects()
    set_aside = gc.get_freeze_count()
    assert set_aside > 0
    assert garbage() is None
    later = _Ring()
    spare_loaded_objects()
    assert gc.get_freeze_count() <= set_aside
    assert any(each is later for each in gc.get_objects())
