"""However many ask, the cluster is asked once."""

import asyncio

import pytest

from skyrocket.console.cluster.shared_answers import SharedAnswer, SharedAnswers
from skyrocket.console.cluster.speeds import Speeds
from skyrocket.errors import SkyrocketError
from skyrocket.testing.clock import FakeClock


class Cluster:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.trouble = False

    async def ask(self) -> int:
        self.asked += 1
        await asyncio.sleep(0)
        if self.trouble:
            raise SkyrocketError("away")
        return self.asked


async def test_a_hundred_askers_at_once_are_one_question_and_later_ones_another() -> None:
    clock, cluster = FakeClock(), Cluster()
    answer = SharedAnswer(cluster.ask, 5.0, clock)
    assert set(await asyncio.gather(*(answer.get() for _ in range(100)))) == {1}
    clock.advance(seconds=4)
    assert await answer.get() == 1
    clock.advance(seconds=1)
    assert await answer.get() == 2
    answer.forget()
    assert await answer.get() == 3


async def test_who_asks_a_slow_cluster_again_gets_the_answer_before_and_the_next_one_the_new() -> None:
    clock, cluster, slow = FakeClock(), Cluster(), asyncio.Event()

    async def ask() -> int:
        found = await cluster.ask()
        if found > 1:
            await slow.wait()
        return found

    answer = SharedAnswer(ask, 5.0, clock)
    assert await answer.get() == 1
    clock.advance(seconds=60)
    assert await answer.get() == 1
    assert (answer.latest, cluster.asked) == (1, 2)
    waiting = asyncio.create_task(answer.get(fresh=True))
    slow.set()
    assert (await waiting, await answer.get()) == (2, 2)
    clock.advance(seconds=600)
    slow.clear()
    too_old = asyncio.create_task(answer.get())
    await asyncio.sleep(0)
    slow.set()
    assert await too_old == 3


async def test_one_who_leaves_does_not_take_the_answer_from_the_others() -> None:
    cluster = Cluster()
    answer = SharedAnswer(cluster.ask, 5.0, FakeClock())
    leaver = asyncio.create_task(answer.get())
    stayer = asyncio.create_task(answer.get())
    await asyncio.sleep(0)
    leaver.cancel()
    assert await stayer == 1


async def test_who_asks_after_a_change_does_not_get_an_answer_from_before_it() -> None:
    cluster = Cluster()
    answer = SharedAnswer(cluster.ask, 5.0, FakeClock())
    before = asyncio.create_task(answer.get())
    await asyncio.sleep(0)
    answer.forget()
    assert await answer.get() == 2
    assert await before in (1, 2)
    await answer.end()


async def test_trouble_reaches_all_who_waited_and_is_not_asked_again_at_once() -> None:
    clock, cluster = FakeClock(), Cluster()
    cluster.trouble = True
    answer = SharedAnswer(cluster.ask, 5.0, clock)
    results = await asyncio.gather(*(answer.get() for _ in range(3)), return_exceptions=True)
    assert [str(result) for result in results] == ["away"] * 3
    with pytest.raises(SkyrocketError):
        await answer.get()
    assert cluster.asked == 1


async def test_only_the_answers_that_were_wanted_last_are_kept() -> None:
    asked: list[str] = []

    async def ask(name: str) -> str:
        asked.append(name)
        return name

    answers = SharedAnswers(ask, 60.0, 2, FakeClock())
    for name in ("a", "b", "a", "c", "a", "b"):
        await answers.get(name)
    assert asked == ["a", "b", "c", "b"]


def test_speeds_are_differences_over_time_and_a_counter_set_back_begins_anew() -> None:
    speeds = Speeds()
    assert speeds.look("t", 100, 10.0) is None
    assert speeds.look("t", 300, 20.0) == 20.0
    assert speeds.look("t", 301, 20.1) == 20.0  # too soon to say more
    assert speeds.look("t", 5, 30.0) is None
    assert speeds.look("t", 25, 40.0) == 2.0
