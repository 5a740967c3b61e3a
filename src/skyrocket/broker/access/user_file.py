"""Users and policies on disk: `config/access.json` in the store, readable by its owner alone.

RocketMQ keeps them in two RocksDB folders, `config/users` and `config/acls`, with the same JSON per user and subject.
Passwords are in clear there and here, because whoever verifies a signature must know the secret.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skyrocket.broker.access.policies import CUSTOM, Acl, Entry, Policy, resource_of
from skyrocket.broker.access.users import ENABLED, NORMAL, User
from skyrocket.errors import DataError
from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.protocol.bodies.access import ACLS, USERS, AclInfo, PolicyEntry, UserInfo
from skyrocket.protocol.bodies.access import Policy as PolicyInfo
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk

FILE_NAME: Final = "access.json"


@dataclass(frozen=True, slots=True)
class AccessContent:
    """All users and policies."""

    users: tuple[User, ...] = ()
    acls: tuple[Acl, ...] = ()


class PrivateDisk(Disk):
    """Makes files that nobody but their owner can read."""

    def write_file(self, path: str, data: bytes) -> None:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        Path(path).chmod(0o600)
        super().write_file(path, data)


def user_file(folder: Path) -> ConfigFile[AccessContent]:
    """The file in the folder of the store's tables."""
    return ConfigFile(PrivateDisk(), str(folder / FILE_NAME), decode, encode)


def is_apache_folder(folder: Path) -> bool:
    """Whether RocketMQ has left users of its own in the store."""
    return (folder / "users" / "CURRENT").exists()


def encode(content: AccessContent) -> bytes:
    """The bytes of the file."""
    users = USERS.kind.write(tuple(map(user_info, content.users)), Dialect.COMPACT)
    acls = ACLS.kind.write(tuple(map(acl_info, content.acls)), Dialect.COMPACT)
    return dumps({"users": users, "acls": acls})


def decode(data: bytes) -> AccessContent:
    """The opposite; raises DataError."""
    value = loads(data)
    if not isinstance(value, dict):
        raise DataError("no object with users and acls")
    users = USERS.kind.read(value.get("users") or [])
    acls = ACLS.kind.read(value.get("acls") or [])
    return AccessContent(tuple(map(_user, users)), tuple(map(_acl, acls)))


def user_info(user: User) -> UserInfo:
    """A user as it travels."""
    return UserInfo(user.name, user.password, user.type, user.status)


def acl_info(acl: Acl) -> AclInfo:
    """The policies of a subject as they travel."""
    return AclInfo(
        acl.subject,
        tuple(PolicyInfo(policy.type, tuple(map(_entry_info, policy.entries))) for policy in acl.policies),
    )


def _entry_info(entry: Entry) -> PolicyEntry:
    return PolicyEntry(str(entry.resource), entry.named_actions, entry.source_ips or None, entry.decision)


def _user(info: UserInfo) -> User:
    if not info.username or info.password is None:
        raise DataError("a user without name or password")
    return User(info.username, info.password, info.user_type or NORMAL, info.user_status or ENABLED)


def _acl(info: AclInfo) -> Acl:
    policies = tuple(
        Policy(policy.policy_type or CUSTOM, tuple(map(_entry, policy.entries or ()))) for policy in info.policies or ()
    )
    return Acl(info.subject or "", policies)


def _entry(info: PolicyEntry) -> Entry:
    resource = resource_of(info.resource)
    if resource is None or info.decision is None:
        raise DataError(f"a policy entry without a meaning: {info.resource!r}")
    actions = info.actions or ()
    return Entry(resource, frozenset(actions), info.decision, info.source_ips or (), actions)
