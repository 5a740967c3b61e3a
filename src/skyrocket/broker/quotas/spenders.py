"""What accounts and namespaces have used of their quotas. Who is idle is forgotten, and there are never too many."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from skyrocket.broker.quotas.quota_table import Limits, QuotaTable
from skyrocket.broker.quotas.token_bucket import TokenBucket
from skyrocket.clock import Clock
from skyrocket.model.quota import CONNECTIONS, EVERYBODY, KINDS, NEW_CONNECTIONS, RATES, STORED_BYTES, TOPICS, shown
from skyrocket.protocol.errors import NoPermission, RequestError, ServiceNotAvailable, SystemBusy

MOST_SPENDERS: Final = 10_000
_OTHERS: Final = "(all others)"


class Spender:
    """One account or namespace with its limits and what it has used."""

    __slots__ = ("_clock", "buckets", "connections", "exceeded", "limits", "name", "stored_bytes", "subject")

    def __init__(self, clock: Clock, subject: str, name: str, limits: Limits) -> None:
        self._clock = clock
        self.subject = subject
        self.name = name
        self.connections = 0
        self.stored_bytes = 0  # as last estimated
        self.exceeded: Counter[str] = Counter()  # by kind: requests that were refused, or had to wait
        self.limits: Limits = {}
        self.buckets: dict[str, TokenBucket] = {}
        self.allow(limits)

    def allow(self, limits: Limits) -> None:
        """Hold it to these limits from now on; a rate that stays keeps what was used of it."""
        self.limits = limits
        if STORED_BYTES not in limits:
            self.stored_bytes = 0  # nobody counts them any more
        self.buckets = {
            kind: known
            if (known := self.buckets.get(kind)) is not None and known.per_second == limits[kind]
            else TokenBucket(self._clock, limits[kind])
            for kind in RATES
            if kind in limits
        }

    @property
    def is_idle(self) -> bool:
        """Whether a new one would be the same, but for its counters."""
        return (
            not self.connections and not self.stored_bytes and all(bucket.is_full for bucket in self.buckets.values())
        )

    def check_rate(self, kind: str, amount: float) -> None:
        """Raises SystemBusy when so much may not be taken now."""
        bucket = self.buckets.get(kind)
        if bucket is not None:
            wait = bucket.wait_for(amount)
            if wait > 0:
                raise SystemBusy(self.refused(kind, wait))

    def wait_of(self, kind: str) -> float:
        """Seconds until a debt is paid."""
        bucket = self.buckets.get(kind)
        return 0.0 if bucket is None else bucket.wait_for(0.0)

    def take(self, kind: str, amount: float) -> None:
        """Count what is let through."""
        bucket = self.buckets.get(kind)
        if bucket is not None:
            bucket.take(amount)

    def check_stored(self) -> None:
        """Raises ServiceNotAvailable, as a full disk does."""
        limit = self.limits.get(STORED_BYTES)
        if limit is not None and self.stored_bytes >= limit:
            raise ServiceNotAvailable(f"{self.refused(STORED_BYTES)}: {self.stored_bytes} are kept, until they expire")

    def check_topics(self, has: int, more: int) -> None:
        """Raises NoPermission when there would be too many."""
        limit = self.limits.get(TOPICS)
        if limit is not None and has + more > limit:
            raise NoPermission(f"{self.refused(TOPICS)}: it has {has}")

    def connection_refusal(self) -> RequestError | None:
        """Why it may not have one more connection; None when it may."""
        limit = self.limits.get(CONNECTIONS)
        if limit is not None and self.connections >= limit:
            return SystemBusy(self.refused(CONNECTIONS))
        try:
            self.check_rate(NEW_CONNECTIONS, 1)
        except SystemBusy as busy:
            return busy
        return None

    def refused(self, kind: str, wait: float = 0.0) -> str:
        """Count it; the words of the refusal."""
        self.exceeded[kind] += 1
        retry = f", retry in {max(round(wait * 1000), 1)} ms" if wait else ""
        limit = KINDS[kind].amount(self.limits[kind])
        return f"[QUOTA] {shown(self.subject, self.name)}: {limit} ({kind}) exceeded{retry}"

    def usage(self, kind: str) -> float:
        """How much of a limit is used; of topics others keep count."""
        if kind in self.buckets:
            return max(self.buckets[kind].rate, 0.0)
        return self.connections if kind == CONNECTIONS else self.stored_bytes


class Spenders:
    """All of one kind of subject that have limits and did something lately."""

    def __init__(self, table: QuotaTable, subject: str, clock: Clock, most: int = MOST_SPENDERS) -> None:
        self._table = table
        self._subject = subject
        self._clock = clock
        self._most = most
        self._known: dict[str, Spender] = {}
        self._others: Spender | None = None  # share one place when there are too many
        self.exceeded_before: Counter[str] = Counter()  # by those who are forgotten, and had no quota of their own

    def __iter__(self) -> Iterator[Spender]:
        yield from self._known.values()
        if self._others is not None:
            yield self._others

    def __len__(self) -> int:
        return len(self._known)

    def find(self, name: str) -> Spender | None:
        """Whom to charge; None for who has no limits."""
        known = self._known.get(name)
        return known if known is not None else self._begun(name)

    def get(self, name: str) -> Spender | None:
        """The same, but only if it did something lately."""
        return self._known.get(name)

    def _begun(self, name: str) -> Spender | None:
        limits = self._table.counting_for(self._subject, name)
        if limits is None:
            return None
        if len(self._known) >= self._most:
            self.forget_idle()
        if len(self._known) >= self._most and name not in self._table.of(self._subject):
            if self._others is None:
                self._others = Spender(self._clock, self._subject, _OTHERS, limits)
            return self._others
        spender = self._known[name] = Spender(self._clock, self._subject, name, limits)
        return spender

    def limits_changed(self) -> None:
        """The table says something else."""
        for name, spender in list(self._known.items()):
            limits = self._table.counting_for(self._subject, name)
            if limits is None:
                del self._known[name]
            elif limits != spender.limits:
                spender.allow(limits)
        limits = self._table.of(self._subject).get(EVERYBODY)
        if limits is None:
            self._others = None
            self.exceeded_before.clear()
        elif self._others is not None:
            self._others.allow(limits)

    def forget_idle(self) -> None:
        """Those with a quota of their own stay, for their counters are shown."""
        own = self._table.of(self._subject)
        for name in [name for name, spender in self._known.items() if spender.is_idle and name not in own]:
            self.exceeded_before += self._known.pop(name).exceeded
