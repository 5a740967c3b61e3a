"""Users and their policies as the broker knows them. A change is on disk before it is in force.

Refusals are RocketMQ's, code and words.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from skyrocket.broker.access.policies import (
    ACTIONS,
    ANY,
    CUSTOM,
    DECISIONS,
    POLICY_TYPES,
    Acl,
    Entry,
    Policy,
    Resource,
    is_address_or_network,
    resource_of,
)
from skyrocket.broker.access.user_file import AccessContent
from skyrocket.broker.access.users import ENABLED, NORMAL, User, named
from skyrocket.protocol.bodies.access import AclInfo, PolicyEntry
from skyrocket.protocol.bodies.access import Policy as PolicyInfo
from skyrocket.protocol.errors import NoPermission, SystemFailure
from skyrocket.store.config_file import ConfigFile

_logger = logging.getLogger(__name__)

_USER_SUBJECT: Final = "user"


class UserTable:
    """One owner of users and policies; `on_change` is called after each change."""

    def __init__(self, file: ConfigFile[AccessContent], on_change: Callable[[], None] = lambda: None) -> None:
        self.users: dict[str, User] = {}
        self.acls: dict[str, Acl] = {}  # by subject
        self._file = file
        self._on_change = on_change
        self._turn = asyncio.Lock()

    def load(self) -> None:
        """Take what the file says; raises CorruptFile."""
        self._take(self._file.load() or AccessContent())

    def add_missing(self, user: User, acl: Acl | None = None) -> bool:
        """A user of the settings, unless there is one of that name. Only before the broker serves."""
        if user.name in self.users:
            return False
        acls = {**self.acls, **({} if acl is None or not acl.policies else {acl.subject: acl})}
        content = _content({**self.users, user.name: user}, acls)
        self._file.save(content)
        self._take(content)
        return True

    # ── users ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def create_user(self, name: str, password: str | None, kind: str | None, status: str | None) -> None:
        """Add a user."""
        if not name.strip():
            raise NoPermission("username can not be blank")
        if not (password or "").strip():
            raise NoPermission("password can not be blank")
        user = User(name, password or "", kind or NORMAL, status or ENABLED)
        async with self._turn:
            if name in self.users:
                raise NoPermission("The user is existed")
            await self._save({**self.users, name: user}, self.acls)

    async def update_user(self, name: str, password: str | None, kind: str | None, status: str | None) -> None:
        """Change what is given."""
        async with self._turn:
            user = self.users.get(name)
            if user is None:
                raise NoPermission("The user is not exist")
            if (password or "").strip():
                user = replace(user, password=password or "")
            user = replace(user, type=kind or user.type, status=status or user.status)
            await self._save({**self.users, name: user}, self.acls)

    async def delete_user(self, name: str) -> None:
        """Remove a user and its policies; no matter when there is none."""
        async with self._turn:
            users = {key: user for key, user in self.users.items() if key != name}
            acls = {key: acl for key, acl in self.acls.items() if key != f"User:{name}"}
            if len(users) < len(self.users) or len(acls) < len(self.acls):
                await self._save(users, acls)

    def matching_users(self, name_filter: str | None) -> list[User]:
        """Users whose name contains a text, by name."""
        return [user for name, user in sorted(self.users.items()) if not name_filter or name_filter in name]

    # ── policies ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def merge_acl(self, subject: str, info: AclInfo) -> None:
        """Add entries to those of a subject, or replace those for the same resources."""
        policies = [_policy(policy) for policy in info.policies or ()]
        async with self._turn:
            if self._user_of(subject) is None:
                raise NoPermission(f"The subject of {subject} is not exist.")
            old = self.acls.get(subject) or Acl(subject, ())
            await self._save(self.users, {**self.acls, subject: old.merged_with(policies)})

    async def delete_acl(self, subject: str, policy_type: str | None, resource: Resource | None) -> None:
        """Remove all entries of a subject, or that for one resource."""
        async with self._turn:
            if self._user_of(subject) is None:
                raise NoPermission("The subject is not exist.")
            old = self.acls.get(subject)
            if old is None:
                raise NoPermission("The acl is not exist.")
            left = old.without(policy_type or CUSTOM, resource) if resource is not None else Acl(subject, ())
            acls = {key: acl for key, acl in self.acls.items() if key != subject}
            await self._save(self.users, {**acls, **({subject: left} if left.policies else {})})

    def acl_of(self, subject: str) -> Acl | None:
        """The policies of a subject; raises NoPermission when there is no such subject."""
        if self._user_of(subject) is None:
            raise NoPermission("The subject is not exist.")
        return self.acls.get(subject)

    def matching_acls(self, subject_filter: str | None, resource_filter: str | None) -> list[Acl]:
        """Policies of subjects that contain a text, with the entries whose resource contains one."""
        found = []
        for subject, acl in sorted(self.acls.items()):
            if subject_filter and subject_filter not in subject:
                continue
            policies = tuple(
                replace(policy, entries=kept)
                for policy in acl.policies
                if (
                    kept := tuple(
                        e for e in policy.entries if not resource_filter or resource_filter in str(e.resource)
                    )
                )
            )
            found += [Acl(subject, policies)] if policies else []
        return found

    def _user_of(self, subject: str) -> User | None:
        return self.users.get(subject.partition(":")[2])

    async def _save(self, users: dict[str, User], acls: dict[str, Acl]) -> None:
        content = _content(users, acls)
        try:
            await asyncio.to_thread(self._file.save, content)
        except OSError as error:
            raise SystemFailure(f"nothing has changed: users could not be saved: {error.strerror}") from error
        self._take(content)

    def _take(self, content: AccessContent) -> None:
        self.users = {user.name: user for user in content.users}
        self.acls = {acl.subject: acl for acl in content.acls}
        self._on_change()


def subject_of(text: str | None) -> str:
    """`User:name`, the only kind of subject; raises NoPermission."""
    kind, colon, name = (text or "").partition(":")
    if kind.lower() != _USER_SUBJECT or not colon or not name.strip():
        raise NoPermission("The subject is null.")
    return f"User:{name}"


def _content(users: dict[str, User], acls: dict[str, Acl]) -> AccessContent:
    return AccessContent(tuple(users.values()), tuple(acls.values()))


def _policy(info: PolicyInfo) -> Policy:
    if not info.entries:
        raise NoPermission("The policy entries is empty.")
    return Policy(named(info.policy_type, POLICY_TYPES) or CUSTOM, tuple(map(_entry, info.entries)))


def _entry(info: PolicyEntry) -> Entry:
    resource, decision = resource_of(info.resource), named(info.decision, DECISIONS)
    if resource is None:
        raise NoPermission("The resource is null.")
    if not info.actions:
        raise NoPermission("The actions is empty.")
    actions = tuple(ACTIONS.get(action.strip().lower(), "") for action in info.actions)
    if "" in actions:
        raise NoPermission(
            f"The actions can not be {', '.join(info.actions)}: choose of {', '.join(ACTIONS.values())}."
        )
    if ANY in actions:
        raise NoPermission("The actions can not be Any.")
    sources = tuple(source.strip() for source in info.source_ips or ())
    if "" in sources:
        raise NoPermission("The source ip is empty.")
    if not all(map(is_address_or_network, sources)):
        raise NoPermission("The source ip is invalid.")
    if decision is None:
        raise NoPermission("The decision is null or illegal.")
    return Entry(resource, frozenset(actions), decision, sources, actions)
