"""Users and policies of ACL 2.0, managed by operators."""

from dataclasses import replace

from skyrocket.broker.access.policies import POLICY_TYPES, resource_of
from skyrocket.broker.access.user_file import acl_info, user_info
from skyrocket.broker.access.user_table import UserTable, subject_of
from skyrocket.broker.access.users import USER_STATUSES, USER_TYPES, User, named
from skyrocket.protocol.bodies.access import AclInfo, UserInfo
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import InvalidParameter, NoPermission, SystemFailure
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
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import UNSET_REMARK, Answered, Handlers, serve, serve_raw

_DONE = Answered(remark=UNSET_REMARK)

_REQUESTS = (
    CreateUser,
    UpdateUser,
    DeleteUser,
    GetUser,
    ListUser,
    CreateAcl,
    UpdateAcl,
    DeleteAcl,
    GetAcl,
    ListAcl,
)


class UserAdminProcessor:
    """Whoever may change the cluster may change users, but super users only one of their kind.

    RocketMQ shows passwords to everybody who may see the cluster; here only super users get them.
    """

    def __init__(self, table: UserTable, *, authenticates: bool) -> None:
        self._table = table
        self._authenticates = authenticates

    def handlers(self) -> Handlers:
        return (
            serve(CreateUser, self.create_user),
            serve(UpdateUser, self.update_user),
            serve(DeleteUser, self.delete_user),
            serve(GetUser, self.show_user),
            serve(ListUser, self.list_users),
            serve(CreateAcl, self.merge_acl),
            serve(UpdateAcl, self.merge_acl),
            serve(DeleteAcl, self.delete_acl),
            serve(GetAcl, self.show_acl),
            serve(ListAcl, self.list_acls),
        )

    # ── users ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def create_user(self, _: Peer, header: CreateUser, body: UserInfo | None) -> Answered:
        """Create a user."""
        name, info = _named_user(header, body)
        kind, status = named(info.user_type, USER_TYPES), named(info.user_status, USER_STATUSES)
        if _is_super(kind) and not self._is_super_user(header.access_key):
            raise SystemFailure("The super user can only be create by super user")
        await self._table.create_user(name, info.password, kind, status)
        return _DONE

    async def update_user(self, _: Peer, header: UpdateUser, body: UserInfo | None) -> Answered:
        """Change a user."""
        name, info = _named_user(header, body)
        kind, status = named(info.user_type, USER_TYPES), named(info.user_status, USER_STATUSES)
        if _is_super(kind) and not self._is_super_user(header.access_key):
            raise SystemFailure("The super user can only be update by super user")
        if name not in self._table.users:
            raise NoPermission("The user is not exist")
        self._guard_super(name, header.access_key)
        await self._table.update_user(name, info.password, kind, status)
        return _DONE

    async def delete_user(self, _: Peer, header: DeleteUser, __: Body) -> Answered:
        """Delete a user."""
        name = header.username or ""
        if not name.strip():
            raise NoPermission("username can not be blank")
        self._guard_super(name, header.access_key)
        await self._table.delete_user(name)
        return _DONE

    def show_user(self, _: Peer, header: GetUser, __: Body) -> Answered:
        """One user; RocketMQ: one that does not exist is a success without a body."""
        name = header.username or ""
        if not name.strip():
            raise InvalidParameter("The username is blank")
        user = self._table.users.get(name)
        return Answered(body=None if user is None else self._shown(user, header.access_key), remark=UNSET_REMARK)

    def list_users(self, _: Peer, header: ListUser, __: Body) -> Answered:
        """Users whose name contains the filter."""
        users = self._table.matching_users(header.filter)
        return Answered(body=tuple(self._shown(user, header.access_key) for user in users) or None, remark=UNSET_REMARK)

    def _shown(self, user: User, asked_by: str | None) -> UserInfo:
        info = user_info(user)
        return info if self._is_super_user(asked_by) else replace(info, password=None)

    def _guard_super(self, name: str, asked_by: str | None) -> None:
        user = self._table.users.get(name)
        if user is not None and user.is_super and not self._is_super_user(asked_by):
            raise NoPermission("The super user can only be update by super user")

    def _is_super_user(self, name: str | None) -> bool:
        """RocketMQ: nobody in particular counts as one, as long as nobody has to prove who he is."""
        if not name:
            return not self._authenticates
        user = self._table.users.get(name)
        return user is not None and user.is_super

    # ── policies ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def merge_acl(self, _: Peer, header: CreateAcl | UpdateAcl, body: AclInfo | None) -> Answered:
        """Add policies to those that a subject has, or replace them: to create and to update is the same."""
        if body is None or not body.policies:
            raise SystemFailure("The body of acl is null")
        await self._table.merge_acl(subject_of(body.subject or header.subject), body)
        return _DONE

    async def delete_acl(self, _: Peer, header: DeleteAcl, __: Body) -> Answered:
        """Delete policies; RocketMQ takes a resource that it does not understand for none, and deletes everything."""
        subject, resource = subject_of(header.subject), resource_of(header.resource)
        if header.resource and resource is None:
            raise NoPermission("The resource is null.")
        await self._table.delete_acl(subject, named(header.policy_type, POLICY_TYPES), resource)
        return _DONE

    def show_acl(self, _: Peer, header: GetAcl, __: Body) -> Answered:
        """The policies of one subject."""
        acl = self._table.acl_of(subject_of(header.subject))
        return Answered(body=None if acl is None else acl_info(acl), remark=UNSET_REMARK)

    def list_acls(self, _: Peer, header: ListAcl, __: Body) -> Answered:
        """The policies of subjects and resources that contain the filters."""
        acls = self._table.matching_acls(header.subject_filter, header.resource_filter)
        return Answered(body=tuple(map(acl_info, acls)) or None, remark=UNSET_REMARK)


class NoUsersProcessor:
    """What RocketMQ answers as long as ACL 2.0 is off."""

    def handlers(self) -> Handlers:
        # Raw: refused whatever they say.
        return (serve_raw((kind.code for kind in _REQUESTS), self.refuse),)

    def refuse(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """All of them."""
        return request.answer(ResponseCode.SYSTEM_ERROR, "An system error occurred, please try again later.")


def _named_user(header: CreateUser | UpdateUser, info: UserInfo | None) -> tuple[str, UserInfo]:
    if not header.username:
        raise InvalidParameter("The username is blank")
    if info is None:
        raise SystemFailure("The body of user is null")
    return header.username, info


def _is_super(kind: str | None) -> bool:
    return kind == USER_TYPES["super"]
