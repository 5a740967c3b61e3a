"""Topics, groups, users, rights and settings as somebody declares them: what differs, and making it so.

What is not declared is left alone: nothing is ever deleted by a declaration.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from skyrocket.client.admin.account_admin import AccountAdmin, Right, rights_in
from skyrocket.client.admin.broker_admin import BrokerAdmin, SettingChange
from skyrocket.client.admin.group_admin import GroupAdmin, GroupChange
from skyrocket.client.admin.topic_admin import TopicChange
from skyrocket.client.core.names import check_creatable, check_group
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig


@dataclass(frozen=True, slots=True)
class DeclaredUser:
    """A user; a password is set when the user is created, and not compared: brokers need not tell it."""

    password: str | None = None
    user_type: str = "Normal"


@dataclass(frozen=True, slots=True)
class Declared:
    """What shall be there. Fields of topics and groups are those of TopicConfig and SubscriptionGroup."""

    topics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    users: Mapping[str, DeclaredUser] = field(default_factory=dict)
    rights: tuple[Right, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """What must be done so that it is there."""

    topics: tuple[TopicChange, ...] = ()
    groups: tuple[GroupChange, ...] = ()
    users: tuple[str, ...] = ()  # to be created
    rights: tuple[Right, ...] = ()
    settings: tuple[SettingChange, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.topics or self.groups or self.users or self.rights or self.settings)


class DeclarationAdmin(GroupAdmin, BrokerAdmin, AccountAdmin):
    """Compares a cluster with a declaration, and makes it so."""

    async def plan_declared(self, declared: Declared, *, cluster: str | None = None) -> Plan:
        """What differs on the masters of a cluster, or of all."""
        users: set[str] = set()
        known_rights: list[Right] = []
        if declared.users:
            known = await self.users(cluster=cluster)
            everywhere = [{each.username for each in there} for there in known.values()]
            users = {name for name in declared.users if not all(name in there for there in everywhere)}
        if declared.rights:
            tables = await self.rights(cluster=cluster)
            known_rights = [right for acls in tables.values() for acl in acls for right in rights_in(acl)]
        settings = await self.setting_changes(declared.settings, cluster=cluster) if declared.settings else []
        return Plan(
            tuple(await self._topic_plan(declared, cluster)),
            tuple(await self._group_plan(declared, cluster)),
            tuple(sorted(users)),
            tuple(right for right in declared.rights if right not in known_rights),
            tuple(settings),
        )

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
        for change in plan.topics:
            await self.apply_topic_changes([change])
        for group in plan.groups:
            await self.apply_group_changes([group])
        for name in plan.users:
            user = declared.users[name]
            await self.create_user(name, user.password or "", user_type=user.user_type, cluster=cluster)
        if plan.rights:
            await self.update_rights(plan.rights, cluster=cluster)
        await self.check_attributes_kept(plan.topics)
