"""Who of a set has all that is confirmed, as the master of an epoch sees it. Pure: no sockets, no clock.

    members      by the controller's word. Only a member can become master, so what all members have cannot be lost.
    asked for    of the controller, whose answer is not known. Such a replica may be a member already, one that was
                 to be dropped may still be one: both must have what is acknowledged.
    confirmed    the offset before which all of them have the log; consumers read no further.

A member that has not been heard of holds everything up until the controller has agreed that it is none.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SyncRules:
    """What senders wait for, and when a member is dropped."""

    all_members: bool = False  # allAckInSyncStateSet; else so many replicas, whoever they are
    replicas: int = 1  # inSyncReplicas: this broker among them
    least_members: int = 1  # minInSyncReplicas: with fewer nothing is taken
    lag_seconds: float = 15.0  # haMaxTimeSlaveNotCatchup: a member that lags for longer is dropped


@dataclass(slots=True)
class _Follower:
    """A slave that is connected."""

    acknowledged: int = -1
    is_learner: bool = False
    sent_end: int = 0  # where the log ended when it last had everything, or was first seen
    sent_at: float = 0.0
    caught_up_at: float = 0.0


@dataclass(slots=True)
class SetWait:
    """Somebody who waits for the log before an offset; `cancel` when it took too long."""

    end_offset: int
    settled: Callable[[], None] | None

    def cancel(self) -> None:
        self.settled = None


@dataclass(slots=True)
class SyncSet:
    """Of one master in one epoch."""

    own_id: int
    began_at: int  # where the log ended when this broker began as master: all before it may be acknowledged already
    log_end: Callable[[], int]  # what this broker itself may promise
    rules: SyncRules = field(default_factory=SyncRules)
    members: frozenset[int] = frozenset()
    members_epoch: int = -1
    confirm_offset: int = 0
    patient_until: float = 0.0  # members that were not seen yet may still come until then
    _asked_for: frozenset[int] = frozenset()  # a request is under way
    _unanswered: frozenset[int] = frozenset()  # the controller may have taken these, nobody knows
    _gone: set[int] = field(default_factory=set)
    _followers: dict[int, _Follower] = field(default_factory=dict)
    _waits: deque[SetWait] = field(default_factory=deque)  # in the order of their offsets

    # ── the controller's word ────────────────────────────────────────────────────────────────────────────────────────

    def adopt(self, members: frozenset[int], members_epoch: int) -> None:
        """The controller says who is a member; what is older than what is known counts for nothing."""
        if members_epoch > self.members_epoch:
            self.members, self.members_epoch = members, members_epoch
            self._asked_for = self._unanswered = frozenset()
            self._settle()

    def still(self, members_epoch: int) -> None:
        """Asked after all proposals, the controller knows no newer set: none of them has been taken."""
        if members_epoch == self.members_epoch and not self._asked_for:
            self._unanswered = frozenset()
            self._settle()

    def refused(self) -> None:
        """The controller has not taken what it was asked for."""
        self._asked_for = frozenset()
        self._settle()

    def unanswered(self) -> None:
        """It may have taken it, or may yet."""
        self._unanswered |= self._asked_for
        self._asked_for = frozenset()

    @property
    def is_asking(self) -> bool:
        """Whether a proposal is under way."""
        return bool(self._asked_for)

    def proposal(self, now: float) -> frozenset[int] | None:
        """Whom the controller should be asked for, None when nothing is to be changed; it then counts as asked for."""
        wanted = {self.own_id}
        if now < self.patient_until:
            wanted |= self.members - self._gone - self._followers.keys()
        for broker_id, follower in self._followers.items():
            is_member = broker_id in self.members
            if follower.is_learner:
                continue
            if (is_member and self._is_close(follower, now)) or (not is_member and self._has_caught_up(follower)):
                wanted.add(broker_id)
        if wanted == self.members or self._asked_for:
            return None
        self._asked_for = frozenset(wanted)
        return self._asked_for

    def _is_close(self, follower: _Follower, now: float) -> bool:
        return now - follower.caught_up_at <= self.rules.lag_seconds

    def _has_caught_up(self, follower: _Follower) -> bool:
        """Whether a replica has all that was ever acknowledged, and bytes of this epoch can follow on it."""
        return follower.acknowledged >= max(self.confirm_offset, self.began_at)

    # ── slaves ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def join(self, broker_id: int, now: float, *, is_learner: bool = False) -> None:
        """A slave has connected, maybe again: what it had before counts no longer."""
        self._followers[broker_id] = _Follower(
            is_learner=is_learner, sent_end=self.log_end(), sent_at=now, caught_up_at=now
        )

    def acknowledge(self, broker_id: int, offset: int, now: float) -> None:
        """A slave has everything before an offset."""
        follower, end = self._followers.get(broker_id), self.log_end()
        if follower is None:
            return
        follower.acknowledged = offset
        if offset >= follower.sent_end:  # it has all that there was then
            follower.caught_up_at = now if offset >= end else follower.sent_at
            follower.sent_end, follower.sent_at = end, now
        self._settle()

    def leave(self, broker_id: int) -> None:
        """A slave is gone."""
        self._gone.add(broker_id)
        self._followers.pop(broker_id, None)

    def acknowledged(self, broker_id: int) -> int:
        """What a slave has; -1 when that is not known."""
        follower = self._followers.get(broker_id)
        return -1 if follower is None else follower.acknowledged

    # ── what is safe ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def counted(self) -> frozenset[int]:
        """Members, and those that may be."""
        return self.members | self._asked_for | self._unanswered

    @property
    def is_short(self) -> bool:
        """Whether so few are members that nothing may be taken."""
        return len(self.members) < self.rules.least_members

    def held_by(self, end_offset: int) -> int:
        """How many brokers are known to have the log before an offset, this one among them."""
        return 1 + sum(follower.acknowledged >= end_offset for follower in self._followers.values())

    def refresh(self) -> None:
        """This broker's own log has grown: what waits for nobody else is safe."""
        self._settle()

    def wait(self, end_offset: int, settled: Callable[[], None]) -> SetWait:
        """Call back, at once or later, when the log before an offset is as safe as the rules ask."""
        wait = SetWait(end_offset, settled)
        self._waits.append(wait)
        self._settle()
        return wait

    def _settle(self) -> None:
        self._confirm()
        safe, waits = self._safe_offset(), self._waits
        while waits and (waits[0].settled is None or waits[0].end_offset <= safe):
            settled = waits.popleft().settled
            if settled is not None:
                settled()

    def _confirm(self) -> None:
        others = [self.acknowledged(broker_id) for broker_id in self.counted if broker_id != self.own_id]
        self.confirm_offset = max(self.confirm_offset, min([self.log_end(), *others]))

    def _safe_offset(self) -> int:
        """Before which offset everything may be acknowledged to its sender."""
        if self.is_short:
            return -1
        if self.rules.all_members:
            return self.confirm_offset
        have = sorted([self.log_end(), *(each.acknowledged for each in self._followers.values())], reverse=True)
        needed = max(self.rules.replicas, 1)
        return have[needed - 1] if needed <= len(have) else -1
