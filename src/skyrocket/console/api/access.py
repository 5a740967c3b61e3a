"""Users and rights of brokers, and whether somebody may do something: in the name of who asks, no passwords."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import ip_address, ip_network
from typing import Final, Literal

from skyrocket.client.admin.account_admin import Right, rights_in
from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.errors import BrokerRefused, ClientError, TooOld
from skyrocket.client.core.names import wrap
from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.values import BadInput
from skyrocket.console.telling.counts import brokers
from skyrocket.console.telling.told_error import told
from skyrocket.model.words import Phrase, said

family = Family("Access")

_ACTIONS: Final = ("All", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List")


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user of brokers."""

    name: str
    kind: str  # Super or Normal
    status: str  # enable or disable
    brokers: list[str]


@dataclass(frozen=True, slots=True)
class RightRow:
    """What a subject may do with a resource, or may not."""

    subject: str
    resource: str
    actions: list[str]
    decision: str
    source_ips: list[str]
    policy: str


@dataclass(frozen=True, slots=True)
class AccessPage:
    """Users and rights; `trouble` says why there are none."""

    users: list[UserRow]
    rights: list[RightRow]
    trouble: str
    trouble_phrase: Phrase | None = None  # for who says it in another language


@family.get("/api/access", secret=True)
async def access(call: Call) -> AccessPage:
    """Users and rights as masters know them."""
    try:
        users, rights = await call.admin.users(), await call.admin.rights()
    except BrokerRefused as error:
        if not isinstance(error, TooOld):  # RocketMQ 4 keeps accounts in a file
            raise
        return _no_accounts(error)
    except ClientError as error:  # brokers that keep no users say how to get some
        return _no_accounts(error)
    known: dict[str, UserRow] = {}
    for place, of_broker in users.items():
        for user in of_broker:
            row = known.setdefault(
                user.username or "", UserRow(user.username or "", user.user_type or "", user.user_status or "", [])
            )
            row.brokers.append(place.broker_name)
    lines = {right for of_broker in rights.values() for acl in of_broker for right in rights_in(acl)}
    return AccessPage(sorted(known.values(), key=lambda user: user.name), _rows(lines), "")


def _no_accounts(error: ClientError) -> AccessPage:
    why = told(error)
    return AccessPage([], [], why.error, why.phrase)


def _rows(rights: Iterable[Right]) -> list[RightRow]:
    return [
        RightRow(
            right.subject,
            right.resource,
            list(right.actions),
            right.decision,
            list(right.source_ips),
            right.policy_type,
        )
        for right in sorted(rights, key=lambda right: (right.subject, right.resource))
    ]


@dataclass(frozen=True, slots=True)
class RightsOfTopic:
    """`trouble` says why there are none."""

    rights: list[RightRow]
    trouble: str
    trouble_phrase: Phrase | None = None  # for who says it in another language


@family.get("/api/access/topics/{topic}", secret=True)
async def rights_of_topic(call: Call) -> RightsOfTopic:
    """Rights whose resource is this topic, by its name or by a pattern that it fits."""
    resource = f"Topic:{wrap(call.parts.settings.client.effective_namespace(), call.path['topic'])}"
    try:
        rights = await call.admin.rights()
    except BrokerRefused as error:
        if not isinstance(error, TooOld):  # RocketMQ 4 keeps accounts in a file
            raise
        return _no_rights(error)
    except ClientError as error:  # as above
        return _no_rights(error)
    lines = {right for of_broker in rights.values() for acl in of_broker for right in rights_in(acl)}
    return RightsOfTopic(_rows(right for right in lines if _names(right, resource)), "")


def _no_rights(error: ClientError) -> RightsOfTopic:
    why = told(error)
    return RightsOfTopic([], why.error, why.phrase)


@dataclass(frozen=True, slots=True)
class NewUser:
    """A user to create."""

    name: str
    password: str
    kind: Literal["Normal", "Super"] = "Normal"


@family.post("/api/access/users")
async def create_user(call: Call, wanted: NewUser) -> Done:
    """Create a user on all brokers."""
    places = await call.admin.create_user(wanted.name, wanted.password, user_type=wanted.kind)
    return Done(said("user {name} was created on {brokers}", name=wanted.name, brokers=brokers(places)))


@dataclass(frozen=True, slots=True)
class UserWanted:
    """What shall be different; what is not named stays."""

    password: str | None = None
    kind: Literal["Normal", "Super"] | None = None
    status: Literal["enable", "disable"] | None = None


@family.put("/api/access/users/{name}")
async def change_user(call: Call, wanted: UserWanted) -> Done:
    """Another password, type or status."""
    name = call.path["name"]
    call.before = await _user(call, name)
    await call.admin.update_user(name, password=wanted.password, user_type=wanted.kind, status=wanted.status)
    call.after = await _user(call, name)
    return Done(said("user {name} was changed", name=name))


async def _user(call: Call, name: str) -> dict[str, str] | None:
    """What of a user may be written down."""
    for users in (await call.admin.users(name)).values():
        for user in users:
            if user.username == name:
                return {"kind": user.user_type or "", "status": user.user_status or ""}
    return None


@family.delete("/api/access/users/{name}")
async def delete_user(call: Call) -> Done:
    """Remove a user from all brokers."""
    call.before = await _user(call, call.path["name"])
    await call.admin.delete_user(call.path["name"])
    return Done(said("user {name} was removed", name=call.path["name"]))


@dataclass(frozen=True, slots=True)
class NewRight:
    """A right to give: subject User:alice, resource Topic:Orders, Group:Billing* or Cluster:*."""

    subject: str
    resource: str
    actions: list[str]
    decision: Literal["Allow", "Deny"] = "Allow"
    source_ips: list[str] = field(default_factory=list)


@family.post("/api/access/rights")
async def give_right(call: Call, wanted: NewRight) -> Done:
    """Give a right, or change the one for the same resource."""
    unknown = [action for action in wanted.actions if action not in _ACTIONS]
    if unknown or not wanted.actions:
        raise BadInput("actions are some of {names}", names=", ".join(_ACTIONS))
    right = Right(wanted.subject, wanted.resource, tuple(wanted.actions), wanted.decision, tuple(wanted.source_ips))
    call.before = await _rights_of(call, wanted.subject, wanted.resource)
    known = {acl.subject for of_broker in (await call.admin.rights()).values() for acl in of_broker}
    change = call.admin.update_rights if wanted.subject in known else call.admin.create_rights
    places = await change([right])
    call.after = await _rights_of(call, wanted.subject, wanted.resource)
    return Done(said("{subject} has the right on {brokers}", subject=wanted.subject, brokers=brokers(places)))


async def _rights_of(call: Call, subject: str, resource: str | None) -> list[RightRow]:
    """As they are now; those of one resource, or all."""
    known = {
        right
        for of_broker in (await call.admin.rights(subject)).values()
        for acl in of_broker
        for right in rights_in(acl)
        if right.subject == subject and resource in (None, right.resource)
    }
    return _rows(known)


@dataclass(frozen=True, slots=True)
class RightGone:
    """Whose right for which resource; without a resource all of them."""

    subject: str
    resource: str | None = None


@family.delete("/api/access/rights")
async def take_right(call: Call, wanted: RightGone) -> Done:
    """Take rights from a subject."""
    call.before = await _rights_of(call, wanted.subject, wanted.resource)
    await call.admin.delete_rights(wanted.subject, wanted.resource)
    return Done(said("rights of {subject} were removed", subject=wanted.subject))


@dataclass(frozen=True, slots=True)
class MayWanted:
    """May this user do that here? `address`: where it asks from; without it rights for some addresses alone count."""

    user: str
    resource: str
    action: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class May:
    """The verdict and the rule that decides."""

    allowed: bool
    because: str


@family.get("/api/access/may", secret=True)
async def may(call: Call, wanted: MayWanted) -> May:
    """Whether a user may do something, by the rules as they are."""
    if wanted.address:
        _check_address(wanted.address)
    return await verdict(call.admin, wanted)


async def verdict(admin: Admin, wanted: MayWanted) -> May:
    """By what brokers tell `admin` of users and rights."""
    users = [user for of_broker in (await admin.users(wanted.user)).values() for user in of_broker]
    user = next((user for user in users if user.username == wanted.user), None)
    if user is None:
        return May(False, "the brokers do not know this user")
    if user.user_status == "disable":
        return May(False, "this user is disabled")
    if user.user_type == "Super":
        return May(True, "Super users may do everything")
    lines = [
        right
        for of_broker in (await admin.rights(f"User:{wanted.user}")).values()
        for acl in of_broker
        for right in rights_in(acl)
        if right.subject == f"User:{wanted.user}" and _covers(right, wanted)
    ]
    if not lines:
        here = f", from {wanted.address}" if wanted.address else ""
        return May(False, f"no right of this user names the resource and the action{here}")
    # RocketMQ: custom policies first; the most exact resource decides, and a Deny wins over an Allow for the same one.
    line = min(lines, key=_rank)
    where = f" from {', '.join(line.source_ips)}" if line.source_ips else ""
    return May(line.decision == "Allow", f"{line.decision} {', '.join(line.actions)} on {line.resource}{where}")


def _rank(right: Right) -> tuple[bool, bool, bool, int, bool]:
    """The smaller, the sooner it decides."""
    is_default, is_any = right.policy_type == "Default", right.resource == "*"
    return is_default, is_any, right.resource.endswith("*"), -len(right.resource), right.decision != "Deny"


def _check_address(address: str) -> None:
    try:
        ip_address(address)
    except ValueError:
        raise BadInput("address is {address!r}: give one as 192.0.2.1 or 2001:db8::1", address=address) from None


def _names(right: Right, resource: str) -> bool:
    return right.resource == "*" or fnmatchcase(resource, right.resource)


def _covers(right: Right, wanted: MayWanted) -> bool:
    names_it = _names(right, wanted.resource) and ("All" in right.actions or wanted.action in right.actions)
    return names_it and (not wanted.address or _is_from(right, wanted.address))


def _is_from(right: Right, address: str) -> bool:
    """Brokers take addresses and networks; what is neither is nobody's."""
    return not right.source_ips or any(_is_in(address, span) for span in right.source_ips)


def _is_in(address: str, span: str) -> bool:
    try:
        return ip_address(address) in ip_network(span.strip(), strict=False)
    except ValueError:
        return False
