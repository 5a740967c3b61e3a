"""Quotas as operators set them: nothing is asked of any request while there are none."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any

from skyrocket.broker.core.feature import Copied, Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.quotas.charging import Charging
from skyrocket.broker.quotas.quota_table import QUOTAS, Quotas, QuotaTable
from skyrocket.broker.quotas.spenders import Spenders
from skyrocket.broker.quotas.stored_bytes import StoredBytes
from skyrocket.broker.quotas.topic_owners import OWNERS, Owners, TopicOwners
from skyrocket.broker.state.persistence import saved
from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.model.data_version import DataVersion
from skyrocket.model.quota import ACCOUNT, EVERYBODY, NAMESPACE, STORED_BYTES, SUBJECTS, TOPICS, namespace_of, shown
from skyrocket.observability.exposition import Kind, Metric
from skyrocket.protocol.bodies.quotas import QuotaLimits, QuotaList, QuotaRow, QuotaUse, TopicOwnerList
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import InvalidParameter
from skyrocket.protocol.requests.quotas import ListQuotas, ListTopicOwners, RemoveQuota, SetQuota
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.services import Work
from skyrocket.remoting.serving import Handlers, serve

_FORGET_SECONDS = 10.0


class QuotasFeature(Feature):
    """The table, who has used how much of it, and the check that is in force while the table is not empty."""

    def __init__(self, parts: Parts) -> None:
        config = parts.config
        self._parts = parts
        self.table = QuotaTable(parts.config_file("quotas.json", QUOTAS), parts.clock)
        self.spenders = {subject: Spenders(self.table, subject, parts.clock) for subject in SUBJECTS}
        self.owners = TopicOwners(parts.config_file("topicOwners.json", OWNERS), parts.clock, parts.tables.topics)
        self.charging = Charging(
            self.spenders[ACCOUNT],
            self.spenders[NAMESPACE],
            parts.tables.topics,
            self.owners,
            believes_names=config.acl_enabled or config.authentication_enabled or config.authorization_enabled,
        )
        self.stored = self._stored_of(NAMESPACE, namespace_of)
        self.stored_of_accounts = self._stored_of(ACCOUNT, self.owners.of)
        self._check: Callable[[Peer, Any], None] | None = None  # as the router has it

    def _stored_of(self, subject: str, keeper_of: Callable[[str], str | None]) -> StoredBytes:
        parts = self._parts
        limited = partial(self._stored_names, subject)
        return StoredBytes(parts.store, self.spenders[subject], limited, keeper_of, parts.slices, parts.clock)

    def handlers(self) -> Handlers:
        return (
            serve(SetQuota, self.set_limits),
            serve(RemoveQuota, self.remove),
            serve(ListQuotas, self.show),
            serve(ListTopicOwners, self.show_owners),
        )

    def tables(self) -> Iterable[SavedTable[Any]]:
        return (self.table, self.owners)

    def services(self) -> tuple[Work, ...]:
        return (self.stored.run, self.stored_of_accounts.run, self._run_forgetting)

    async def open(self) -> None:
        self.table.load()
        self.owners.load()
        self._changed()

    def let_go(self) -> None:
        self.charging.let_go()

    # ── operators ────────────────────────────────────────────────────────────────────────────────────────────────────

    def set_limits(self, _: Peer, header: SetQuota, body: QuotaLimits) -> Awaitable[None]:
        """Change limits; raises InvalidParameter."""
        if not body.limits:
            raise InvalidParameter("no limits are named")
        self.table.set(header.subject_type, header.name, body.limits)
        self._changed()
        return self._set_and_counted()

    async def _set_and_counted(self) -> None:
        for stored in (self.stored, self.stored_of_accounts):
            await stored.sample()  # or a new limit would not hold before the next look
        await saved(self._parts.persistence.save_now, self.table)

    def remove(self, _: Peer, header: RemoveQuota, __: Body) -> Awaitable[None]:
        """Take all limits of a name away; raises InvalidParameter when it has none."""
        if not self.table.remove(header.subject_type, header.name):
            raise InvalidParameter(f"{shown(header.subject_type, header.name)} has no quota of its own")
        self._changed()
        return saved(self._parts.persistence.save_now, self.table)

    def show(self, _: Peer, __: ListQuotas, ___: Body) -> QuotaList:
        """All quotas and their use."""
        return QuotaList(self.table.data_version, tuple(self.rows()))

    def rows(self) -> Iterator[QuotaRow]:
        """One for each subject with limits; `*` stands for all that have none of their own."""
        for subject in SUBJECTS:
            spenders, own = self.spenders[subject], self.table.of(subject)
            for name, limits in sorted(own.items()):
                found = spenders.get(name)
                of_name = [found] if found is not None else []
                exceeded = Counter[str]()
                if name == EVERYBODY:
                    of_name = [spender for spender in spenders if spender.name not in own]
                    exceeded = spenders.exceeded_before
                uses = (
                    QuotaUse(
                        kind,
                        limit,
                        self._topics_of(subject, name) if kind == TOPICS else sum(s.usage(kind) for s in of_name),
                        exceeded[kind] + sum(spender.exceeded[kind] for spender in of_name),
                    )
                    for kind, limit in limits.items()
                )
                yield QuotaRow(subject, name, tuple(uses))

    def _topics_of(self, subject: str, name: str) -> int:
        own = self.table.of(subject)
        if subject == ACCOUNT:
            return self.owners.count_without(own) if name == EVERYBODY else self.owners.counts()[name]
        if name != EVERYBODY:
            return self.charging.topics_in(name)
        return self.charging.topics_without(own)

    # ── slaves ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def copied(self) -> tuple[Copied, ...]:
        return (Copied(ListQuotas(), self._take), Copied(ListTopicOwners(), self._take_owners))

    def _take(self, body: bytes) -> None:
        told = QuotaList.decode(body)
        limits: dict[str, dict[str, dict[str, int]]] = {subject: {} for subject in SUBJECTS}
        for row in told.quotas:
            limits.setdefault(row.subject_type, {})[row.name] = {use.kind: use.limit for use in row.uses}
        copied = Quotas(told.data_version or DataVersion(), limits[ACCOUNT], limits[NAMESPACE])
        known = self.table.content()
        if (copied.accounts, copied.namespaces) != (known.accounts, known.namespaces):
            self.table.replace(copied)
            self._changed()

    def show_owners(self, _: Peer, __: ListTopicOwners, ___: Body) -> TopicOwnerList:
        """Who created which topic, for slaves."""
        content = self.owners.content()
        return TopicOwnerList(content.data_version, content.owners)

    def _take_owners(self, body: bytes) -> None:
        told = TopicOwnerList.decode(body)
        if told.owners != self.owners.content().owners:
            self.owners.replace(Owners(told.data_version or DataVersion(), dict(told.owners)))

    # ── in force or not ──────────────────────────────────────────────────────────────────────────────────────────────

    def _changed(self) -> None:
        """The table says something else: ask before every request, or nobody."""
        for spenders in self.spenders.values():
            spenders.limits_changed()
        router, counters = self._parts.router, self._parts.counters
        if len(self.table) and self._check is None:
            self._check = self.charging.check
            router.check_with(self._check)
            counters.read_meter = self.charging.found
            counters.send_back_meter = self.charging.stored_again
        elif not len(self.table) and self._check is not None:
            router.check_no_more_with(self._check)
            self._check = counters.read_meter = counters.send_back_meter = None
            self.charging.let_go()

    def _stored_names(self, subject: str) -> set[str] | None:
        limited = {name for name, limits in self.table.of(subject).items() if STORED_BYTES in limits}
        return None if EVERYBODY in limited else limited

    async def _run_forgetting(self) -> None:
        while True:
            await self._parts.clock.sleep(_FORGET_SECONDS)
            for spenders in self.spenders.values():
                spenders.forget_idle()
            self.owners.forget_gone()

    # ── metrics ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def metrics(self) -> Iterator[Metric]:
        """One line for each quota that was set, however many accounts there are."""
        limits = Metric("skyrocket_quota_limit", Kind.GAUGE, "Limits of accounts and namespaces, by kind")
        used = Metric("skyrocket_quota_used", Kind.GAUGE, "What is used of them; of * by all without one of their own")
        exceeded = Metric("skyrocket_quota_exceeded_total", Kind.COUNTER, "Requests refused or held back by a quota")
        for row in self.rows():
            for use in row.uses:
                labels = {"subject": row.subject_type, "name": row.name, "kind": use.kind}
                limits.add(use.limit, **labels)
                used.add(round(use.used, 3), **labels)
                exceeded.add(use.exceeded, **labels)
        yield limits
        yield used
        yield exceeded
        held = Metric("skyrocket_quota_held_reads", Kind.GAUGE, "Pulls and pops that wait because of a quota")
        held.add(self.charging.held_count)
        yield held
