"""Takes a sample of everything each minute, whether anybody looks or not."""

import logging
from collections.abc import Mapping
from typing import Final

from skyrocket.client.admin.side_by_side import each
from skyrocket.clock import ServiceClock
from skyrocket.console.cluster.topics import TopicFigures
from skyrocket.console.cluster.view import ClusterView
from skyrocket.console.history.database import FileTrouble
from skyrocket.console.history.series import MINUTE_MS, MINUTES_KEPT_MS, Series
from skyrocket.errors import SkyrocketError
from skyrocket.model.system_groups import is_system_group
from skyrocket.model.topic import DLQ_PREFIX

_logger = logging.getLogger(__name__)

TOPICS_A_MINUTE: Final = 250  # with more topics each has a sample every few minutes: brokers must not notice
_AT_ONCE: Final = 4
_ROUNDS_BETWEEN_PRUNES: Final = 60


class Recorder:
    """The loop; it belongs to the console's services."""

    def __init__(self, view: ClusterView, series: Series, clock: ServiceClock) -> None:
        self._view = view
        self._series = series
        self._clock = clock
        self._next_topic = 0
        self._dead: dict[str, int] = {}  # dead letters by group, as the last look at each said
        self._dead_topics: set[str] | None = None  # that there were at the last look; None before the first

    async def run(self) -> None:
        """For ever. A cluster that does not answer leaves a gap."""
        rounds = 0
        while True:
            for work in (self.record, self._prune) if rounds % _ROUNDS_BETWEEN_PRUNES == 0 else (self.record,):
                try:
                    await work()
                except FileTrouble as error:
                    _logger.warning("no sample was kept: %s", error)
                except SkyrocketError as error:
                    _logger.info("no sample was taken: %s", error)
            rounds += 1
            await self._clock.sleep((MINUTE_MS - self._clock.now_ms() % MINUTE_MS) / 1000)

    async def record(self) -> None:
        """One sample of everything."""
        samples: dict[str, float] = {}
        brokers = await self._view.brokers.get()
        masters = [broker for broker in brokers if broker.role == "master"]
        samples["in:cluster"] = sum(broker.in_per_second for broker in masters)
        samples["out:cluster"] = sum(broker.out_per_second for broker in brokers)
        for broker in brokers:
            if broker.is_up:
                samples[f"in:broker:{broker.broker}:{broker.broker_id}"] = broker.in_per_second
                samples[f"out:broker:{broker.broker}:{broker.broker_id}"] = broker.out_per_second
                samples[f"disk:broker:{broker.broker}:{broker.broker_id}"] = broker.disk_ratio or 0.0
        samples.update(await self._of_groups())
        samples.update(await self._of_topics())
        await self._series.add(samples, self._clock.now_ms())

    async def _prune(self) -> None:
        await self._series.prune(self._clock.now_ms())

    async def _of_groups(self) -> Mapping[str, float]:
        samples: dict[str, float] = {"lag:cluster": 0.0}
        for group, figures in (await self._view.group_figures(fresh=True)).items():
            if is_system_group(group):
                continue
            samples[f"lag:group:{group}"] = figures.lag
            samples[f"late:group:{group}"] = (figures.late_ms or 0) / 1000
            samples["lag:cluster"] += figures.lag
            rate = self._view.out_per_second(group)
            if rate is not None:
                samples[f"out:group:{group}"] = rate
        return samples

    async def _of_topics(self) -> Mapping[str, float]:
        shapes = await self._view.topics.get()
        names = [name for name, shape in shapes.items() if shape.kind not in ("SYSTEM", "RETRY")]
        begin = self._next_topic if self._next_topic < len(names) else 0
        chosen = names[begin : begin + TOPICS_A_MINUTE]
        self._next_topic = begin + len(chosen)
        samples: dict[str, float] = {}
        for name, figures in (await each(chosen, self._figures, _AT_ONCE)).items():
            if figures is None:
                continue
            if name.startswith(DLQ_PREFIX):
                samples[f"dead:group:{name.removeprefix(DLQ_PREFIX)}"] = figures.messages
                self._dead[name] = figures.messages
            elif figures.in_per_second is not None:
                samples[f"in:topic:{name}"] = figures.in_per_second
        self._dead = {name: count for name, count in self._dead.items() if name in shapes}
        if shapes:  # else nobody is up
            await self._begin_at_nothing({name for name in shapes if name.startswith(DLQ_PREFIX)})
        samples["dead:cluster"] = sum(self._dead.values())
        return samples

    async def _begin_at_nothing(self, topics: set[str]) -> None:
        """A group has a topic of dead letters from its first on: without a nought before them they have not grown."""
        now_ms = self._clock.now_ms()
        for name in topics - self._dead_topics if self._dead_topics is not None else ():
            series = f"dead:group:{name.removeprefix(DLQ_PREFIX)}"
            if not await self._series.between(series, now_ms - MINUTES_KEPT_MS, now_ms):  # else its broker was away
                await self._series.add({series: 0.0}, now_ms - MINUTE_MS)
        self._dead_topics = topics

    async def _figures(self, topic: str) -> TopicFigures | None:
        try:
            return await self._view.topic_figures.get(topic)
        except SkyrocketError as error:
            _logger.info("no sample of topic %s: %s", topic, error)
            return None
