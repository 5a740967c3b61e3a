"""Accounts of ACL 1.0: what plain_acl.yml says, read and checked. Secrets are in no repr and in no error."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from skyrocket.broker.access.remote_addresses import Pattern, address_pattern
from skyrocket.broker.access.required_permissions import GROUP, Permission
from skyrocket.errors import ConfigError

DENY: Final = 1
PUB: Final = 4
SUB: Final = 8
MIN_KEY_LENGTH: Final = 7

_PERMISSIONS: Final = {"PUB": PUB, "SUB": SUB, "PUB|SUB": PUB | SUB, "SUB|PUB": PUB | SUB, "DENY": DENY}


def permission_of(text: str | None) -> int:
    """The bits of a permission; missing or unknown is DENY."""
    return _PERMISSIONS.get((text or "").strip(), DENY)


def allows(owned: int, needed: int) -> bool:
    """Whether owned bits cover a needed one."""
    return not owned & DENY and owned & needed != 0


@dataclass(frozen=True, slots=True)
class Account:
    """One access key and what it may do."""

    access_key: str
    secret_key: str = field(repr=False)
    is_admin: bool = False
    white_address: Pattern = field(default=address_pattern(None), repr=False)
    default_topic: int = DENY
    default_group: int = DENY
    topics: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)

    def refusal_of(self, need: Permission, needed: int) -> str | None:
        """Why a topic or group may not be used so; None when it may."""
        own, default = (self.groups, self.default_group) if need.kind == GROUP else (self.topics, self.default_topic)
        special = own.get(need.name)
        if allows(default if special is None else special, needed):
            return None
        return f"No {'default ' if special is None else ''}permission for {need.kind.lower()}:{need.name}"


def account_of(entry: Mapping[str, Any], place: str) -> Account:
    """One entry of `accounts`; raises ConfigError that names the account but not its secret."""
    key, secret = str(entry.get("accessKey") or ""), str(entry.get("secretKey") or "")
    if len(key) < MIN_KEY_LENGTH or len(secret) < MIN_KEY_LENGTH:
        raise ConfigError(
            f"{place}: account {key!r}: accessKey and secretKey must have at least {MIN_KEY_LENGTH} characters each"
        )
    where = f"{place}: account {key!r}"
    try:
        white_address = address_pattern(entry.get("whiteRemoteAddress"))
    except ConfigError as error:
        raise ConfigError(f"{where}: whiteRemoteAddress: {error}") from None
    return Account(
        key,
        secret,
        str(entry.get("admin") or "").strip().lower() == "true",
        white_address,
        permission_of(entry.get("defaultTopicPerm")),
        permission_of(entry.get("defaultGroupPerm")),
        _special(entry.get("topicPerms"), where),
        _special(entry.get("groupPerms"), where),
    )


def _special(lines: Sequence[str] | None, where: str) -> dict[str, int]:
    if lines is not None and not isinstance(lines, list):
        if lines == "":
            return {}
        raise ConfigError(f"{where}: {lines!r} is not a list of name=permission")
    return dict(_special_line(str(line), where) for line in lines or ())


def _special_line(line: str, where: str) -> tuple[str, int]:
    name, equals, permission = line.partition("=")
    if not equals or not name.strip() or "=" in permission:
        raise ConfigError(f"{where}: {line!r} is not of the form name=permission, such as orders=PUB|SUB")
    return name.strip(), permission_of(permission)
