"""Topics, groups, users, rights and settings as somebody declares them: what differs, and making it so.

What is not declared is left alone: nothing is ever deleted by a declaration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skyrocket.client.admin.account_admin import AccountAdmin, Right, rights_in
from skyrocket.client.admin.broker_admin import BrokerAdmin, SettingChange
from skyrocket.client.admin.group_admin import GroupAdmin, GroupChange
from skyrocket.client.admin.places import BrokerPlace
from skyrocket.client.admin.topic_admin import TopicChange
from skyrocket.client.core.names import check_creatable, check_group
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig


@dataclass(frozen=True, slots=True)
class DeclaredUser:
    """A user; a password is set when the user is created, and not compared: brokers need not tell it."""

    password: str | None = None
    user_type: str | None = None  # Super or Normal; None: Normal when it is created, else as it is


@dataclass(frozen=True, slots=True)
class Declared:
    """What shall be there. Fields of topics and groups are those of TopicConfig and SubscriptionGroup."""

    topics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    users: Mapping[str, DeclaredUser] = field(default_factory=dict)
    rights: tuple[Right, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UserChange:
    """A user on one broker; `before` is its type, None where it is not yet."""

    place: BrokerPlace
    name: str
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class RightChange:
    """A right on one broker, in place of what its subject has for the same resource."""

    place: BrokerPlace
    before: Right | None
    after: Right


@dataclass(frozen=True, slots=True)
class Plan:
    """What must be done so that it is there."""

    topics: tuple[TopicChange, ...] = ()
    groups: tuple[GroupChange, ...] = ()
    users: tuple[UserChange, ...] = ()
    rights: tuple[RightChange, ...] = ()
    settings: tuple[SettingChange, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.topics or self.groups or self.users or self.rights or self.settings)


class DeclarationAdmin(GroupAdmin, BrokerAdmin, AccountAdmin):
    """Compares a cluster with a declaration, and makes it so."""

    async def plan_declared(self, declared: Declared, *, cluster: str | None = None) -> Plan:
        """What differs on the masters of a cluster, or of all."""
        settings = await self.setting_changes(declared.settings, cluster=cluster) if declared.settings else []
        return Plan(
            tuple(await self._topic_plan(declared, cluster)),
            tuple(await self._group_plan(declared, cluster)),
            tuple(await self._user_plan(declared, cluster)),
            tuple(await self._right_plan(declared, cluster)),
            tuple(settings),
        )

    async def _user_plan(self, declared: Declared, cluster: str | None) -> list[UserChange]:
        changes: list[UserChange] = []
        tables = await self.users(cluster=cluster) if declared.users else {}
        for place, users in tables.items():
            known = {each.username: each.user_type for each in users}
            for name, wanted in declared.users.items():
                before = known.get(name)
                after = wanted.user_type or before or "Normal"
                if after != before:
                    changes.append(UserChange(place, name, before, after))
        return changes

    async def _right_plan(self, declared: Declared, cluster: str | None) -> list[RightChange]:
        changes: list[RightChange] = []
        tables = await self.rights(cluster=cluster) if declared.rights else {}
        for place, acls in tables.items():
            known = {_about(right): right for acl in acls for right in rights_in(acl)}
            for wanted in declared.rights:
                before = known.get(_about(wanted))
                if before is None or _said_by(before) != _said_by(wanted):
                    changes.append(RightChange(place, before, wanted))
        return changes

    async def _topic_plan(self, declared: Declared, cluster: str | None) -> list[TopicChange]:
        changes: list[TopicChange] = []
        for name in declared.topics:
            check_creatable(name)
        tables = await self.topic_table(cluster=cluster) if declared.topics else {}
        for place, table in tables.items():
            for name, fields in declared.topics.items():
                before = table.get(name)
                base = before or TopicConfig(name, 8, 8)
                attributes = {**base.attributes, **fields.get("attributes", {})}
                after = replace(base, **{**fields, "attributes": attributes})
                if after != before:
                    changes.append(TopicChange(place, before, after))
        return changes

    async def _group_plan(self, declared: Declared, cluster: str | None) -> list[GroupChange]:
        changes: list[GroupChange] = []
        for name in declared.groups:
            check_group(name)
        tables = await self.group_table(cluster=cluster) if declared.groups else {}
        for place, table in tables.items():
            for name, fields in declared.groups.items():
                before = table.get(name)
                after = replace(before or SubscriptionGroup(name), **fields)
                if after != before:
                    changes.append(GroupChange(place, before, after))
        return changes

    async def apply_plan(self, plan: Plan, declared: Declared, *, cluster: str | None = None) -> None:
        """Do what `plan_declared` has found, settings and topics first, rights last; then see what brokers have kept.

        Raises ClientError when one has forgotten attributes of topics, as RocketMQ 4.x does.
        """
        await self.apply_setting_changes(plan.settings)
        for topic in dict.fromkeys(change.after.name for change in plan.topics):
            await self.apply_topic_changes([change for change in plan.topics if change.after.name == topic])
        for group in dict.fromkeys(change.after.name for change in plan.groups):
            await self.apply_group_changes([change for change in plan.groups if change.after.name == group])
        for name in dict.fromkeys(change.name for change in plan.users):
            users = [change for change in plan.users if change.name == name]
            await self._put_user(users, declared.users[name], cluster)
        rights: dict[BrokerPlace, list[Right]] = {}
        for right in plan.rights:
            rights.setdefault(right.place, []).append(right.after)
        await self._each(
            list(rights), lambda place: self.update_rights(rights[place], cluster=cluster, broker=place.broker_name)
        )
        await self.check_attributes_kept(plan.topics)

    async def _put_user(self, changes: Sequence[UserChange], wanted: DeclaredUser, cluster: str | None) -> None:
        by_place = {change.place: change for change in changes}

        async def put(place: BrokerPlace) -> None:
            name, kind, set_of = by_place[place].name, by_place[place].after, place.broker_name  # its slaves as well
            if by_place[place].before is not None:
                await self.update_user(name, user_type=kind, cluster=cluster, broker=set_of)
                return
            await self.create_user(name, wanted.password or "", user_type=kind, cluster=cluster, broker=set_of)

        await self._each(list(by_place), put)


def _about(right: Right) -> tuple[str, str, str]:
    """Brokers have one of these for each resource."""
    return right.subject, right.resource, right.policy_type


def _said_by(right: Right) -> tuple[frozenset[str], str, frozenset[str]]:
    """In whatever order."""
    return frozenset(right.actions), right.decision, frozenset(right.source_ips)
