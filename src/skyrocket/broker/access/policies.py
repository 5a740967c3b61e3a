"""Policies of ACL 2.0: which entry of a subject decides about a need.

Topic:orders        that one          literal      ┐
Topic:ord*          names that begin  prefixed     │ the more special entry decides; of equal ones Deny
Topic:*             all topics        any          │
*                   everything        any kind     ┘
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_network
from typing import Final, NamedTuple

from skyrocket.broker.access.required_permissions import Permission

CUSTOM: Final = "Custom"
DEFAULT: Final = "Default"
ALLOW: Final = "Allow"
DENY: Final = "Deny"
ALL: Final = "All"
ANY: Final = "Any"
ANYTHING: Final = "*"

KINDS: Final = {name.lower(): name for name in ("Cluster", "Namespace", "Topic", "Group")}
ACTIONS: Final = {
    name.lower(): name for name in ("All", "Any", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List")
}
DECISIONS: Final = {name.lower(): name for name in (ALLOW, DENY)}
POLICY_TYPES: Final = {name.lower(): name for name in (CUSTOM, DEFAULT)}


class Resource(NamedTuple):
    """What an entry is about; `name` without the asterisk. No kind: everything."""

    kind: str | None
    name: str
    is_prefix: bool

    def matches(self, need: Permission) -> bool:
        """Whether the need is one of these."""
        if self.kind is None:
            return True
        if self.kind != need.kind:
            return False
        return need.name.startswith(self.name) if self.is_prefix else need.name == self.name

    @property
    def rank(self) -> tuple[int, int, int]:
        """The smaller, the more special."""
        return int(self.kind is None), int(self.is_prefix), -len(self.name) if self.is_prefix else 0

    def __str__(self) -> str:
        return ANYTHING if self.kind is None else f"{self.kind}:{self.name}{'*' if self.is_prefix else ''}"


def resource_of(text: str | None) -> Resource | None:
    """What a text means; None when it means nothing."""
    text = (text or "").strip()
    if text == ANYTHING:
        return Resource(None, "", True)
    kind, colon, name = text.partition(":")
    known = KINDS.get(kind.lower())
    if known is None or not colon or not name:
        return None
    return Resource(known, name.removesuffix("*"), name.endswith("*"))


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a policy."""

    resource: Resource
    actions: frozenset[str]
    decision: str
    source_ips: tuple[str, ...] = ()
    named_actions: tuple[str, ...] = ()  # in the order in which they were given

    def matches(self, need: Permission, source_ip: str) -> bool:
        """Whether it has a say."""
        return (
            self.resource.matches(need)
            and (ALL in self.actions or not self.actions.isdisjoint(need.actions))
            and (not self.source_ips or any(is_in_range(source_ip, span) for span in self.source_ips))
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """Entries of one type: custom ones are asked first."""

    type: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Acl:
    """All that one subject may do."""

    subject: str
    policies: tuple[Policy, ...]

    def entries(self, policy_type: str) -> tuple[Entry, ...]:
        return next((policy.entries for policy in self.policies if policy.type == policy_type), ())

    def merged_with(self, policies: Iterable[Policy]) -> "Acl":
        """With these entries in the place of those for the same resources."""
        merged = {policy.type: {entry.resource: entry for entry in policy.entries} for policy in self.policies}
        for policy in policies:
            merged.setdefault(policy.type, {}).update({entry.resource: entry for entry in policy.entries})
        return Acl(self.subject, tuple(Policy(kind, tuple(entries.values())) for kind, entries in merged.items()))

    def without(self, policy_type: str, resource: Resource) -> "Acl":
        """Without the entry for a resource, and without policies that are empty then."""
        kept = [
            replace(policy, entries=tuple(entry for entry in policy.entries if entry.resource != resource))
            if policy.type == policy_type
            else policy
            for policy in self.policies
        ]
        return Acl(self.subject, tuple(policy for policy in kept if policy.entries))

    def refusal_of(self, need: Permission, source_ip: str) -> str | None:
        """Why not, in RocketMQ's words; None when it is allowed."""
        entry = deciding_entry(self.entries(CUSTOM), need, source_ip)
        if entry is None:
            entry = deciding_entry(self.entries(DEFAULT), need, source_ip)
        if entry is None:
            return NO_POLICY
        return "the decision is deny." if entry.decision == DENY else None


NO_POLICY: Final = "no matched policies."


def deciding_entry(entries: Iterable[Entry], need: Permission, source_ip: str) -> Entry | None:
    """The most special of those that match; of equally special ones the one that denies."""
    matching = [entry for entry in entries if entry.matches(need, source_ip)]
    return min(matching, key=lambda entry: (entry.resource.rank, entry.decision != DENY), default=None)


# ── addresses ────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_address_or_network(text: str) -> bool:
    """10.0.0.1, 10.0.0.0/8, fe80::1, fe80::/16."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def is_in_range(source_ip: str, span: str) -> bool:
    """Whether an address is, or lies in, what an entry names."""
    try:
        return ip_address(source_ip) in ip_network(span, strict=False)
    except ValueError:
        return False
