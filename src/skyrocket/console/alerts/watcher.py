"""Looks at all rules each minute, remembers what fires, and has it told when an alert begins or ends."""

import logging
import sqlite3
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

import orjson

from skyrocket.clock import ServiceClock
from skyrocket.console.alerts.measures import Measures, measures
from skyrocket.console.alerts.news import News
from skyrocket.console.alerts.outbox import Outbox
from skyrocket.console.alerts.rules import DEFAULT_RULES, Phase, Rule, Watch
from skyrocket.console.cluster.view import ClusterView
from skyrocket.console.history.database import Database
from skyrocket.console.history.series import Series
from skyrocket.errors import SkyrocketError

_logger = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 60.0
_MOST_NEWS: Final = 200
_MOST_WATCHES: Final = 20_000
_RULES: Final = "alert rules"


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
    is_muted: bool


class Watcher:
    """The loop; it belongs to the console's services."""

    def __init__(
        self,
        view: ClusterView,
        series: Series,
        database: Database,
        clock: ServiceClock,
        outboxes: Sequence[Outbox] = (),
    ) -> None:
        self._view = view
        self._series = series
        self._database = database
        self._clock = clock
        self.outboxes = tuple(outboxes)
        self.rules: tuple[Rule, ...] = DEFAULT_RULES
        self.news: deque[News] = deque(maxlen=_MOST_NEWS)
        self._watches: dict[tuple[str, str], Watch] = {}

    async def load(self) -> None:
        """Take the rules that were kept."""
        text = await self._database.do(lambda connection: connection.execute(_SELECT, (_RULES,)).fetchone())
        if text is not None:
            self.rules = tuple(Rule(**each) for each in orjson.loads(text[0]))

    async def keep(self, rules: Sequence[Rule]) -> None:
        """These are the rules from now on."""
        text = orjson.dumps([asdict(rule) for rule in rules]).decode()

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (_RULES, text))

        await self._database.do(write)
        self.rules = tuple(rules)
        known = {rule.id for rule in rules}
        self._watches = {key: watch for key, watch in self._watches.items() if key[0] in known}

    async def run(self) -> None:
        """For ever. A cluster that does not answer raises no alert of itself: its brokers are down to the view."""
        while True:
            try:
                self.tell(self.look(await measures(self._view, self._series, self._clock.now_ms())))
            except SkyrocketError as error:
                _logger.info("alerts were not looked at: %s", error)
            await self._clock.sleep(_PAUSE_SECONDS)

    def look(self, found: Measures) -> list[News]:
        """What begins and ends with these values; what is muted is remembered, not told."""
        now_ms = self._clock.now_ms()
        told = []
        for rule in self.rules:
            for name, value in found.get(rule.kind, {}).items():
                if not rule.is_about(name) or len(self._watches) >= _MOST_WATCHES:
                    continue
                watch = self._watches.setdefault((rule.id, name), Watch())
                fired = watch.phase is Phase.FIRING
                begun = watch.look(rule, value, now_ms)
                if begun is Phase.FIRING or (begun is Phase.QUIET and fired):
                    news = News(now_ms, rule.id, rule.kind, name, rule.severity, value, rule.threshold, not fired)
                    self.news.appendleft(news)
                    if rule.muted_until_ms <= now_ms:
                        told.append(news)
        return told

    def firing(self) -> list[Firing]:
        """What goes on, longest first."""
        rules, now_ms = {rule.id: rule for rule in self.rules}, self._clock.now_ms()
        found = [
            Firing(
                rule_id,
                rules[rule_id].kind,
                name,
                rules[rule_id].severity,
                watch.value,
                rules[rule_id].threshold,
                watch.since_ms,
                rules[rule_id].muted_until_ms > now_ms,
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


_SELECT: Final = "SELECT value FROM kept WHERE name = ?"
