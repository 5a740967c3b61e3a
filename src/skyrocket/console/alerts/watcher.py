"""Looks at all rules each minute, remembers what fires, and has it told when an alert begins or ends."""

import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
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
from skyrocket.console.history.database import Database, FileTrouble
from skyrocket.console.history.series import Series
from skyrocket.console.telling.outbox import Outbox
from skyrocket.errors import SkyrocketError

_logger = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 60.0
_TELLING_SECONDS: Final = 5.0  # what is told takes so long, as a rule
_MOST_NEWS: Final = 200
_MOST_WATCHES: Final = 20_000
_RULES: Final = "alert rules"
_MUTES: Final = "alert mutes"
_OPEN: Final = "open alerts"


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


@dataclass(frozen=True, slots=True)
class Open:
    """An alert that fires, as it is kept for the next start: who has heard of it does not hear of it again."""

    rule: str
    name: str
    since_ms: int
    is_told: bool


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
        self._watches: dict[tuple[str, str], Watch] = {}  # of what is too high, or was until now
        self._open: tuple[Open, ...] = ()  # as it was kept last
        self._loaded_ms = 0
        self._progress = QueueProgress()

    async def load(self) -> None:
        """Take the rules, mutes and open alerts that were kept."""
        rules, mutes, opened = [await self._read(name) for name in (_RULES, _MUTES, _OPEN)]
        if rules is not None:
            # Files of earlier releases have a rule's mute in the rule.
            old = [Mute(each["id"], WHOLE_RULE, each.pop("muted_until_ms"), "") for each in rules if _OLD_MUTE in each]
            self.rules = tuple(Rule(**each) for each in rules)
            self.mutes = tuple(each for each in old if each.until_ms > 0)
        if mutes is not None:
            self.mutes = tuple(Mute(**each) for each in mutes)
        self._open, self._loaded_ms = tuple(Open(**each) for each in opened or ()), self._clock.now_ms()
        for each in self._open:
            self._watches[each.rule, each.name] = Watch(Phase.FIRING, each.since_ms, is_told=each.is_told)
        self._watch_only(lambda rule, name: rule.is_about(name))

    async def keep(self, rules: Sequence[Rule]) -> None:
        """These are the rules from now on; a mute goes with its rule."""
        known = {rule.id for rule in rules}
        await self._write(_RULES, rules)
        self.rules = tuple(rules)
        self._watch_only(lambda rule, name: rule.is_about(name))
        await self.keep_mutes([each for each in self.mutes if each.rule in known])

    def _watch_only(self, is_wanted: Callable[[Rule, str], bool]) -> None:
        """Forget all others, and those of rules that are not there any more."""
        rules = {rule.id: rule for rule in self.rules}
        self._watches = {
            (rule_id, name): watch
            for (rule_id, name), watch in self._watches.items()
            if rule_id in rules and is_wanted(rules[rule_id], name)
        }

    async def keep_open(self) -> None:
        """Keep what fires for the next start; not while some of it still waits to be told."""
        if not all(outbox.is_idle for outbox in self.outboxes):
            return
        found = tuple(
            Open(*key, watch.since_ms, watch.is_told)
            for key, watch in self._watches.items()
            if watch.phase is Phase.FIRING
        )
        if found != self._open:
            await self._write(_OPEN, found)
            self._open = found

    async def keep_mutes(self, mutes: Sequence[Mute]) -> None:
        """These are the mutes from now on."""
        await self._write(_MUTES, mutes)
        self.mutes = tuple(mutes)

    async def _read(self, name: str) -> list[dict[str, Any]] | None:
        row = await self._database.do(lambda connection: connection.execute(_SELECT, (name,)).fetchone())
        return None if row is None else list(orjson.loads(row[0]))

    async def _write(self, name: str, values: Sequence[Rule] | Sequence[Mute] | Sequence[Open]) -> None:
        text = orjson.dumps([asdict(each) for each in values]).decode()

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (name, text))

        await self._database.do(write)

    async def run(self) -> None:
        """For ever. A cluster that does not answer raises no alert of itself: its brokers are down to the view."""
        while True:
            try:
                self.tell(self.look(await self._measures()))
                await self._clock.sleep(_TELLING_SECONDS)
                await self.keep_open()
            except FileTrouble as error:
                _logger.warning("alerts were not kept: %s", error)
            except SkyrocketError as error:
                _logger.info("alerts were not looked at: %s", error)
            await self._clock.sleep(_PAUSE_SECONDS)

    async def _measures(self) -> Measures:
        return await measures(self._view, self._series, self._progress, self._clock.now_ms())

    def look(self, found: Measures) -> list[News]:
        """What is to be told of these values. What is muted is told when that is over, if it still goes on then."""
        now_ms = self._clock.now_ms()
        told = []
        self._forget_unknown_brokers(found)
        gone = self._gone(found)
        for rule in self.rules:
            for name, known in {**found.get(rule.kind, {}), **gone.get(rule.id, {})}.items():
                watch = self._watches.get((rule.id, name))
                if not rule.is_about(name) or (watch is None and len(self._watches) >= _MOST_WATCHES):
                    continue
                watch = watch or Watch()
                value = self._remembered(rule, watch, known, now_ms)
                fired = watch.phase is Phase.FIRING
                begun = watch.look(rule, value, now_ms)
                if watch.phase is Phase.QUIET:
                    self._watches.pop((rule.id, name), None)  # what is well need not be remembered
                else:
                    self._watches[rule.id, name] = watch
                fires = watch.phase is Phase.FIRING
                news = News(now_ms, rule.id, rule.kind, name, rule.severity, value, rule.threshold, fires)
                if begun is Phase.FIRING or (begun is Phase.QUIET and fired):
                    self.news.appendleft(news)
                if watch.is_told != fires and (watch.is_told or not self.muted_until_ms(rule.id, name)):
                    watch.is_told = fires
                    told.append(news)
        return told

    def _remembered(self, rule: Rule, watch: Watch, value: float, now_ms: int) -> float:
        """A queue that has not moved since the console began stood still before, if an alert of then says so."""
        looked_ms = now_ms - self._loaded_ms - 2 * round(_PAUSE_SECONDS * 1000)
        is_of_before = watch.phase is Phase.FIRING and watch.since_ms < self._loaded_ms
        if rule.kind == "stuck_seconds" and is_of_before and value * 1000 >= looked_ms:
            return max(value, rule.threshold)
        return value

    def _forget_unknown_brokers(self, found: Measures) -> None:
        """A new console knows registered brokers alone: of others it cannot say whether an older alert has ended."""
        known = found.get("broker_down")
        if known is not None:
            self._watch_only(lambda rule, name: rule.kind != "broker_down" or name in known)

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
