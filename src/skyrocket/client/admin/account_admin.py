"""Users and their rights (RocketMQ 5.3 and newer, Skyrocket); changes go to masters and slaves alike.

A slave asks its own tables who may read from it, so both must know the same accounts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from skyrocket.client.admin.admin_calls import AdminCalls
from skyrocket.client.admin.places import BrokerPlace
from skyrocket.client.core.errors import BrokerRefused, ClientError, NotFound
from skyrocket.protocol.bodies.access import ACLS, USERS, AclInfo, Policy, PolicyEntry, UserInfo
from skyrocket.protocol.requests.acl import (
    CreateAcl,
    CreateUser,
    DeleteAcl,
    DeleteUser,
    GetAcl,
    GetUser,
    ListAcl,
    ListUser,
    UpdateAcl,
    UpdateUser,
)
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.remoting.exchange import Reply

A = TypeVar("A", bound=Header)


@dataclass(frozen=True, slots=True)
class Right:
    """What a subject may do with one resource, or may not, and from where."""

    subject: str  # as User:alice
    resource: str  # as Topic:Orders, Group:Billing*, Cluster:*
    actions: tuple[str, ...]  # All, Pub, Sub, Create, Update, Delete, Get, List
    decision: str = "Allow"
    source_ips: tuple[str, ...] = ()
    policy_type: str = "Custom"


class AccountAdmin(AdminCalls):
    """Operations on users and rights; raises TooOld at brokers that know only the accounts of a file."""

    async def _of_accounts(self, place: BrokerPlace, request: Request[A], doing: str, body: bytes = b"") -> Reply[A]:
        try:
            return await self._since_5(place, request, doing, body)
        except BrokerRefused as error:
            if _keeps_none(error):
                raise ClientError(
                    "{doing} was refused by broker {place}, which keeps no users: set authenticationEnabled=true "
                    "(docs/guides/access-control.md)",
                    doing=doing,
                    place=place,
                ) from error
            raise

    # ── users ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def create_user(
        self,
        name: str,
        password: str,
        *,
        user_type: str | None = None,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> list[BrokerPlace]:
        """A new user, Normal unless Super is asked for. Where it was done."""
        body = UserInfo(name, password, user_type).encode()

        async def create(place: BrokerPlace) -> None:
            await self._of_accounts(place, CreateUser(username=name), f"creating user {name}", body)

        return list(await self._each(await self._places(cluster, broker, with_slaves=True), create))

    async def update_user(
        self,
        name: str,
        *,
        password: str | None = None,
        user_type: str | None = None,
        status: str | None = None,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> list[BrokerPlace]:
        """Another password, type (Super, Normal) or status (enable, disable); what is not named stays."""
        body = UserInfo(name, password, user_type, status).encode()

        async def update(place: BrokerPlace) -> None:
            await self._of_accounts(place, UpdateUser(username=name), f"changing user {name}", body)

        return list(await self._each(await self._places(cluster, broker, with_slaves=True), update))

    async def delete_user(
        self, name: str, *, cluster: str | None = None, broker: str | None = None
    ) -> list[BrokerPlace]:
        """Remove a user. Where it was done."""

        async def delete(place: BrokerPlace) -> None:
            await self._of_accounts(place, DeleteUser(username=name), f"deleting user {name}")

        return list(await self._each(await self._places(cluster, broker, with_slaves=True), delete))

    async def users(
        self, filter_text: str = "", *, cluster: str | None = None, broker: str | None = None
    ) -> dict[BrokerPlace, tuple[UserInfo, ...]]:
        """Users whose name contains a text, master by master; brokers tell passwords as well."""

        async def listed(place: BrokerPlace) -> tuple[UserInfo, ...]:
            reply = await self._of_accounts(place, ListUser(filter=filter_text or None), "listing users")
            return USERS.decode(reply.body) if reply.body else ()

        return await self._each(await self._places(cluster, broker), listed)

    async def user(
        self, name: str, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[BrokerPlace, UserInfo]:
        """One user, as each master that knows it has it; raises NotFound when none does."""

        async def asked(place: BrokerPlace) -> UserInfo | None:
            try:
                reply = await self._of_accounts(place, GetUser(username=name), f"asking for user {name}")
            except BrokerRefused as error:
                if _says_not_there(error):
                    return None
                raise
            return UserInfo.decode(reply.body) if reply.body else None

        answers = await self._each(await self._places(cluster, broker), asked)
        found = {place: user for place, user in answers.items() if user is not None and user.username}
        if not found:
            raise NotFound("there is no user {name}: `user list` has their names", name=name)
        return found

    # ── rights ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def create_rights(
        self, rights: Sequence[Right], *, cluster: str | None = None, broker: str | None = None
    ) -> list[BrokerPlace]:
        """Give rights to a subject that has none for these resources yet. Where it was done."""
        return await self._put_rights(rights, cluster, broker, is_new=True)

    async def update_rights(
        self, rights: Sequence[Right], *, cluster: str | None = None, broker: str | None = None
    ) -> list[BrokerPlace]:
        """Give rights to a subject, in place of those that it has for the same resources. Where it was done."""
        return await self._put_rights(rights, cluster, broker, is_new=False)

    async def _put_rights(
        self, rights: Sequence[Right], cluster: str | None, broker: str | None, *, is_new: bool
    ) -> list[BrokerPlace]:
        places = await self._places(cluster, broker, with_slaves=True)
        done: list[BrokerPlace] = []
        for subject in dict.fromkeys(right.subject for right in rights):
            body = acl_of(subject, rights).encode()

            async def put(place: BrokerPlace, subject: str = subject, body: bytes = body) -> None:
                request = CreateAcl(subject=subject) if is_new else UpdateAcl(subject=subject)
                doing = f"{'creating' if is_new else 'changing'} the rights of {subject}"
                await self._of_accounts(place, request, doing, body)

            done = list(await self._each(places, put))
        return done

    async def delete_rights(
        self, subject: str, resource: str | None = None, *, cluster: str | None = None, broker: str | None = None
    ) -> list[BrokerPlace]:
        """Take rights from a subject: all, or those for one resource. Where it was done."""

        async def delete(place: BrokerPlace) -> None:
            request = DeleteAcl(subject=subject, resource=resource)
            await self._of_accounts(place, request, f"deleting rights of {subject}")

        return list(await self._each(await self._places(cluster, broker, with_slaves=True), delete))

    async def rights(
        self, subject: str = "", resource: str = "", *, cluster: str | None = None, broker: str | None = None
    ) -> dict[BrokerPlace, tuple[AclInfo, ...]]:
        """Rights of subjects whose name contains a text, for resources that do, master by master."""

        async def listed(place: BrokerPlace) -> tuple[AclInfo, ...]:
            request = ListAcl(subject_filter=subject or None, resource_filter=resource or None)
            reply = await self._of_accounts(place, request, "listing rights")
            return ACLS.decode(reply.body) if reply.body else ()

        return await self._each(await self._places(cluster, broker), listed)

    async def rights_of(
        self, subject: str, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[BrokerPlace, AclInfo]:
        """All rights of one subject, as each master that knows it has them; raises NotFound when none does."""
        refusals: list[BrokerRefused] = []

        async def asked(place: BrokerPlace) -> AclInfo | None:
            try:
                reply = await self._of_accounts(place, GetAcl(subject=subject), f"asking for the rights of {subject}")
            except BrokerRefused as error:
                if _says_not_there(error):
                    refusals.append(error)
                    return None
                raise
            return AclInfo.decode(reply.body) if reply.body else None

        answers = await self._each(await self._places(cluster, broker), asked)
        found = {place: acl for place, acl in answers.items() if acl is not None and acl.subject}
        if not found:
            refusal = refusals[0] if refusals else None
            raise NotFound(
                "{subject} has no rights: `acl list` has all; subjects look like User:alice", subject=subject
            ) from refusal
        return found


def acl_of(subject: str, rights: Sequence[Right]) -> AclInfo:
    """Rights of one subject as a broker takes them."""
    by_type: dict[str, list[PolicyEntry]] = {}
    for right in rights:
        if right.subject == subject:
            entry = PolicyEntry(right.resource, right.actions, right.source_ips or None, right.decision)
            by_type.setdefault(right.policy_type, []).append(entry)
    return AclInfo(subject, tuple(Policy(kind, tuple(entries)) for kind, entries in by_type.items()))


def rights_in(acl: AclInfo) -> list[Right]:
    """What a broker told, one line each."""
    return [
        Right(
            acl.subject or "",
            entry.resource or "",
            tuple(entry.actions or ()),
            entry.decision or "",
            tuple(entry.source_ips or ()),
            policy.policy_type or "",
        )
        for policy in acl.policies or ()
        for entry in policy.entries or ()
    ]


def _keeps_none(error: BrokerRefused) -> bool:
    # RocketMQ: a broker without a table of users, and one without a table of rights, in these words.
    told = error.remark or ""
    return told.startswith("An system error occurred") or "MetadataProvider is not configured" in told


def _says_not_there(error: BrokerRefused) -> bool:
    return any(words in (error.remark or "").lower() for words in ("not exist", "not found"))
