"""Looks at all rules each minute, remembers what fires, and has it told when an alert begins or ends."""

import logging
import sqlite3
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from skyrocket.clock import ServiceClock
from skyrocket.console.alerts.measures import Measures, measures
from skyrocket.console.alerts.mutes import WHOLE_RULE, Mute, muted_until_ms
from skyrocket.console.alerts.news import News
from skyrocket.console.alerts.queue_progress import QueueProgress
from skyrocket.console.alerts.rules import DEFAULT_RULES, Phase, Rule, Watch
from skyrocket.console.cluster.view import ClusterView
from skyrocket.console.history.database import Database
from skyrocket.console.history.series import Series
from skyrocket.console.telling.outbox import Outbox
from skyrocket.errors import SkyrocketError

_logger = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 60.0
_MOST_NEWS: Final = 200
_MOST_WATCHES: Final = 20_000
_RULES: Final = "alert rules"
_MUTES: Final = "alert mutes"


@dataclass(frozen=True, slots=True)
class Firing:
    """An alert that goes on."""

    rule: str
    kind: str
    name: str
    severity: str
    value: float
    threshold: float
    since_ms: int
    muted_until_ms: int  # 0: it is told


class Watcher:
    """The loop; it belongs to the console's services."""

    def __init__(
        self,
        view: ClusterView,
        series: Series,
        database: Database,
        clock: ServiceClock,
        outboxes: Sequence[Outbox[News]] = (),
    ) -> None:
        self._view = view
        self._series = series
        self._database = database
        self._clock = clock
        self.outboxes = tuple(outboxes)
        self.rules: tuple[Rule, ...] = DEFAULT_RULES
        self.mutes: tuple[Mute, ...] = ()
        self.news: deque[News] = deque(maxlen=_MOST_NEWS)
        self._watches: dict[tuple[str, str], Watch] = {}
        self._progress = QueueProgress()

    async def load(self) -> None:
        """Take the rules and mutes that were kept."""
        rules, mutes = await self._read(_RULES), await self._read(_MUTES)
        if rules is not None:
            # Files of earlier releases have a rule's mute in the rule.
            old = [Mute(each["id"], WHOLE_RULE, each.pop("muted_until_ms"), "") for each in rules if _OLD_MUTE in each]
            self.rules = tuple(Rule(**each) for each in rules)
            self.mutes = tuple(each for each in old if each.until_ms > 0)
        if mutes is not None:
            self.mutes = tuple(Mute(**each) for each in mutes)

    async def keep(self, rules: Sequence[Rule]) -> None:
        """These are the rules from now on; a mute goes with its rule."""
        known = {rule.id for rule in rules}
        await self._write(_RULES, rules)
        self.rules = tuple(rules)
        self._watches = {key: watch for key, watch in self._watches.items() if key[0] in known}
        await self.keep_mutes([each for each in self.mutes if each.rule in known])

    async def keep_mutes(self, mutes: Sequence[Mute]) -> None:
        """These are the mutes from now on."""
        await self._write(_MUTES, mutes)
        self.mutes = tuple(mutes)

    async def _read(self, name: str) -> list[dict[str, Any]] | None:
        row = await self._database.do(lambda connection: connection.execute(_SELECT, (name,)).fetchone())
        return None if row is None else list(orjson.loads(row[0]))

    async def _write(self, name: str, values: Sequence[Rule] | Sequence[Mute]) -> None:
        text = orjson.dumps([asdict(each) for each in values]).decode()

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (name, text))

        await self._database.do(write)

    async def run(self) -> None:
        """For ever. A cluster that does not answer raises no alert of itself: its brokers are down to the view."""
        while True:
            try:
                self.tell(self.look(await self._measures()))
            except SkyrocketError as error:
                _logger.info("alerts were not looked at: %s", error)
            await self._clock.sleep(_PAUSE_SECONDS)

    async def _measures(self) -> Measures:
        return await measures(self._view, self._series, self._progress, self._clock.now_ms())

    def look(self, found: Measures) -> list[News]:
        """What is to be told of these values. What is muted is told when that is over, if it still goes on then."""
        now_ms = self._clock.now_ms()
        told = []
        gone = self._gone(found)
        for rule in self.rules:
            for name, value in {**found.get(rule.kind, {}), **gone.get(rule.id, {})}.items():
                if not rule.is_about(name) or len(self._watches) >= _MOST_WATCHES:
                    continue
                watch = self._watches.setdefault((rule.id, name), Watch())
                fired = watch.phase is Phase.FIRING
                begun = watch.look(rule, value, now_ms)
                fires = watch.phase is Phase.FIRING
                news = News(now_ms, rule.id, rule.kind, name, rule.severity, value, rule.threshold, fires)
                if begun is Phase.FIRING or (begun is Phase.QUIET and fired):
                    self.news.appendleft(news)
                if watch.is_told != fires and (watch.is_told or not self.muted_until_ms(rule.id, name)):
                    watch.is_told = fires
                    told.append(news)
        for rule_id, names in gone.items():
            for name in names:
                if self._watches[rule_id, name].phase is Phase.QUIET:
                    del self._watches[rule_id, name]
        return told

    def _gone(self, found: Measures) -> dict[str, dict[str, float]]:
        """By rule: what is watched and not there any more (a deleted group) is well. A down broker may have it."""
        gone: dict[str, dict[str, float]] = {}
        if not any(found.get("broker_down", {"nobody": 1.0}).values()):
            kinds = {rule.id: rule.kind for rule in self.rules}
            for rule_id, name in self._watches:
                if name not in found.get(kinds[rule_id], {name: 0.0}):
                    gone.setdefault(rule_id, {})[name] = 0.0
        return gone

    def muted_until_ms(self, rule: str, name: str) -> int:
        """0 when it is told."""
        return muted_until_ms(self.mutes, rule, name, self._clock.now_ms())

    def firing(self) -> list[Firing]:
        """What goes on, longest first."""
        rules = {rule.id: rule for rule in self.rules}
        found = [
            Firing(
                rule_id,
                rules[rule_id].kind,
                name,
                rules[rule_id].severity,
                watch.value,
                rules[rule_id].threshold,
                watch.since_ms,
                self.muted_until_ms(rule_id, name),
            )
            for (rule_id, name), watch in self._watches.items()
            if watch.phase is Phase.FIRING
        ]
        return sorted(found, key=lambda each: (each.severity, each.since_ms))

    def tell(self, news: Sequence[News]) -> None:
        """To everybody who is told; never waits."""
        if news:
            for outbox in self.outboxes:
                outbox.put(news)


_OLD_MUTE: Final = "muted_until_ms"
_SELECT: Final = "SELECT value FROM kept WHERE name = ?"
