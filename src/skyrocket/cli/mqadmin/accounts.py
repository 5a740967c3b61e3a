"""mqadmin's commands of users and their rights; passwords are never printed."""

from collections.abc import Iterable
from typing import Any, Final

from skyrocket.cli.mqadmin.java_text import java_list
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.cli.mqadmin.targets import each_place, masters
from skyrocket.client import Admin, BrokerPlace, Right
from skyrocket.client.admin.account_admin import rights_in
from skyrocket.errors import ConfigError
from skyrocket.protocol.bodies.access import AclInfo, UserInfo

_USERS: Final = ("#UserName", "#Password", "#UserType", "#UserStatus")
_RIGHTS: Final = ("#Subject", "#PolicyType", "#Resource", "#Actions", "#SourceIp", "#Decision")
_HIDDEN: Final = "******"


async def _everywhere(admin: Admin, given: Given) -> list[BrokerPlace]:
    return await masters(admin, given, "brokerAddr", "clusterName", with_slaves=True)


async def create_user(admin: Admin, given: Given, out: Printer) -> None:
    async def create(place: BrokerPlace) -> None:
        kind = given.get("userType")
        await admin.create_user(given["username"], given["password"], user_type=kind, broker=place.address)
        out.line(f"create user to {place.address} success.")

    await each_place(admin, await _everywhere(admin, given), create)


async def update_user(admin: Admin, given: Given, out: Printer) -> None:
    async def update(place: BrokerPlace) -> None:
        await admin.update_user(
            given["username"],
            password=given.get("password"),
            user_type=given.get("userType"),
            status=given.get("userStatus"),
            broker=place.address,
        )
        out.line(f"update user to {place.address} success.")

    await each_place(admin, await _everywhere(admin, given), update)


async def delete_user(admin: Admin, given: Given, out: Printer) -> None:
    async def delete(place: BrokerPlace) -> None:
        await admin.delete_user(given["username"], broker=place.address)
        out.line(f"delete user to {place.address} success.")

    await each_place(admin, await _everywhere(admin, given), delete)


async def get_user(admin: Admin, given: Given, out: Printer) -> None:
    place = (await masters(admin, given, "brokerAddr", "clusterName"))[0]
    if "username" not in given:
        raise ConfigError("Missing required option: u")
    _print_users((await admin.user(given["username"], broker=place.address)).values(), out)


async def list_user(admin: Admin, given: Given, out: Printer) -> None:
    place = (await masters(admin, given, "brokerAddr", "clusterName"))[0]
    (users,) = (await admin.users(given.text("filter", ""), broker=place.address)).values()
    _print_users(users, out)


def _print_users(users: Iterable[UserInfo], out: Printer) -> None:
    rows = [(each.username, _HIDDEN, each.user_type, each.user_status) for each in users]
    if rows or not out.is_for_people:  # RocketMQ: no heading over nothing
        out.table("%-16s  %-22s  %-22s  %-22s", _USERS, rows)


async def copy_user(admin: Admin, given: Given, out: Printer) -> None:
    source, target = given["fromBroker"], given["toBroker"]
    wanted = {each.strip() for each in given.text("usernames", "").split(",") if each.strip()}
    (users,) = (await admin.users(broker=source)).values()
    (known,) = (await admin.users(broker=target)).values()
    there = {each.username for each in known}
    for each in users:
        name = each.username or ""
        if wanted and name not in wanted:
            continue
        if each.password is None:
            raise ConfigError(f"{source} does not tell the password of {name}: ask as a super user")
        if name not in there:
            await admin.create_user(name, each.password, user_type=each.user_type, broker=target)
        else:
            await admin.update_user(
                name, password=each.password, user_type=each.user_type, status=each.user_status, broker=target
            )
        out.line(f"copy user of {name} from {source} to {target} success.")


# ── rights ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _rights(given: Given) -> list[Right]:
    def parts(name: str) -> tuple[str, ...]:
        return tuple(each.strip() for each in given.text(name, "").split(",") if each.strip())

    return [
        Right(given["subject"], resource, parts("actions"), given["decision"], parts("sourceIp"))
        for resource in parts("resources")
    ]


async def create_acl(admin: Admin, given: Given, out: Printer) -> None:
    async def create(place: BrokerPlace) -> None:
        await admin.create_rights(_rights(given), broker=place.address)
        out.line(f"create acl to {place.address} success.")

    await each_place(admin, await _everywhere(admin, given), create)


async def update_acl(admin: Admin, given: Given, out: Printer) -> None:
    async def update(place: BrokerPlace) -> None:
        await admin.update_rights(_rights(given), broker=place.address)
        out.line(f"update acl to {place.address} success.")

    await each_place(admin, await _everywhere(admin, given), update)


async def delete_acl(admin: Admin, given: Given, out: Printer) -> None:
    async def delete(place: BrokerPlace) -> None:
        for resource in [each.strip() for each in given.text("resources", "").split(",")]:
            await admin.delete_rights(given["subject"], resource or None, broker=place.address)
        out.line(f"delete acl to {place.address} success.")

    await each_place(admin, await _everywhere(admin, given), delete)


async def get_acl(admin: Admin, given: Given, out: Printer) -> None:
    place = (await masters(admin, given, "brokerAddr", "clusterName"))[0]
    if "subject" not in given:
        raise ConfigError("Missing required option: s")
    _print_rights((await admin.rights_of(given["subject"], broker=place.address)).values(), out)


async def list_acl(admin: Admin, given: Given, out: Printer) -> None:
    place = (await masters(admin, given, "brokerAddr", "clusterName"))[0]
    subject, resource = given.text("subject", ""), given.text("resource", "")
    (found,) = (await admin.rights(subject, resource, broker=place.address)).values()
    _print_rights(found, out)


def _print_rights(acls: Iterable[AclInfo], out: Printer) -> None:
    rows: list[tuple[Any, ...]] = []
    for acl in acls:
        rows += [
            (
                right.subject,
                right.policy_type,
                right.resource,
                java_list(right.actions),
                java_list(right.source_ips) if right.source_ips else "null",
                right.decision,
            )
            for right in rights_in(acl)
        ] or [(acl.subject, "", "", "", "", "")]
    if rows or not out.is_for_people:
        out.table("%-16s  %-10s  %-22s  %-20s  %-24s  %-10s", _RIGHTS, rows)


async def copy_acl(admin: Admin, given: Given, out: Printer) -> None:
    source, target = given["fromBroker"], given["toBroker"]
    wanted = {each.strip() for each in given.text("subjects", "").split(",") if each.strip()}
    if wanted:
        acls = [acl for each in sorted(wanted) for acl in (await admin.rights_of(each, broker=source)).values()]
    else:
        acls = list(next(iter((await admin.rights(broker=source)).values())))
    for acl in acls:
        await admin.update_rights(rights_in(acl), broker=target)
        out.line(f"copy acl of {acl.subject} from {source} to {target} success.")
