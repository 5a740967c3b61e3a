"""Users and policies of ACL 2.0, managed by operators."""

from collections.abc import Awaitable
from dataclasses import replace

from skyrocket.broker.access.policies import POLICY_TYPES, resource_of
from skyrocket.broker.access.user_file import acl_info, user_info
from skyrocket.broker.access.user_table import UserTable, subject_of
from skyrocket.broker.access.users import USER_STATUSES, USER_TYPES, User, named
from skyrocket.protocol.bodies.access import ACL, ACLS, USER, USERS, UserInfo
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import RemotingCommand
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
from skyrocket.protocol.signing import ACCESS_KEY
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw

_REMARK = "not set any response code"  # RocketMQ says so of every success here

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
            serve_raw(CreateUser.code, self.create_user),
            serve_raw(UpdateUser.code, self.update_user),
            serve_raw(DeleteUser.code, self.delete_user),
            serve_raw(GetUser.code, self.show_user),
            serve_raw(ListUser.code, self.list_users),
            serve_raw((CreateAcl.code, UpdateAcl.code), self.merge_acl),
            serve_raw(DeleteAcl.code, self.delete_acl),
            serve_raw(GetAcl.code, self.show_acl),
            serve_raw(ListAcl.code, self.list_acls),
        )

    # ── users ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def create_user(self, _: Peer, request: RemotingCommand) -> Awaitable[RemotingCommand]:
        """AUTH_CREATE_USER."""
        name, info = _named_user(CreateUser.from_fields(request.ext_fields).username, request)
        kind, status = named(info.user_type, USER_TYPES), named(info.user_status, USER_STATUSES)
        if _is_super(kind) and not self._is_by_super(request):
            raise SystemFailure("The super user can only be create by super user")
        return _done(request, self._table.create_user(name, info.password, kind, status))

    def update_user(self, _: Peer, request: RemotingCommand) -> Awaitable[RemotingCommand]:
        """AUTH_UPDATE_USER."""
        name, info = _named_user(UpdateUser.from_fields(request.ext_fields).username, request)
        kind, status = named(info.user_type, USER_TYPES), named(info.user_status, USER_STATUSES)
        if _is_super(kind) and not self._is_by_super(request):
            raise SystemFailure("The super user can only be update by super user")
        if name not in self._table.users:
            raise NoPermission("The user is not exist")
        self._guard_super(name, request)
        return _done(request, self._table.update_user(name, info.password, kind, status))

    def delete_user(self, _: Peer, request: RemotingCommand) -> Awaitable[RemotingCommand]:
        """AUTH_DELETE_USER."""
        name = DeleteUser.from_fields(request.ext_fields).username or ""
        if not name.strip():
            raise NoPermission("username can not be blank")
        self._guard_super(name, request)
        return _done(request, self._table.delete_user(name))

    def show_user(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """AUTH_GET_USER; RocketMQ: one that does not exist is a success without a body."""
        name = GetUser.from_fields(request.ext_fields).username or ""
        if not name.strip():
            raise InvalidParameter("The username is blank")
        user = self._table.users.get(name)
        return _success(request, b"" if user is None else USER.encode(self._shown(user, request)))

    def list_users(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """AUTH_LIST_USER."""
        users = self._table.matching_users(ListUser.from_fields(request.ext_fields).filter)
        return _success(request, USERS.encode(tuple(self._shown(user, request) for user in users)) if users else b"")

    def _shown(self, user: User, request: RemotingCommand) -> UserInfo:
        info = user_info(user)
        return info if self._is_by_super(request) else replace(info, password=None)

    def _guard_super(self, name: str, request: RemotingCommand) -> None:
        user = self._table.users.get(name)
        if user is not None and user.is_super and not self._is_by_super(request):
            raise NoPermission("The super user can only be update by super user")

    def _is_by_super(self, request: RemotingCommand) -> bool:
        """RocketMQ: nobody in particular counts as one, as long as nobody has to prove who he is."""
        name = (request.ext_fields or {}).get(ACCESS_KEY)
        if not name:
            return not self._authenticates
        user = self._table.users.get(name)
        return user is not None and user.is_super

    # ── policies ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def merge_acl(self, _: Peer, request: RemotingCommand) -> Awaitable[RemotingCommand]:
        """AUTH_CREATE_ACL and AUTH_UPDATE_ACL, which do the same."""
        claimed = CreateAcl.from_fields(request.ext_fields).subject
        info = ACL.decode(request.body) if request.body else None
        if info is None or not info.policies:
            raise SystemFailure("The body of acl is null")
        return _done(request, self._table.merge_acl(subject_of(info.subject or claimed), info))

    def delete_acl(self, _: Peer, request: RemotingCommand) -> Awaitable[RemotingCommand]:
        """AUTH_DELETE_ACL; RocketMQ takes a resource that it does not understand for none, and deletes everything."""
        header = DeleteAcl.from_fields(request.ext_fields)
        subject, resource = subject_of(header.subject), resource_of(header.resource)
        if header.resource and resource is None:
            raise NoPermission("The resource is null.")
        return _done(request, self._table.delete_acl(subject, named(header.policy_type, POLICY_TYPES), resource))

    def show_acl(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """AUTH_GET_ACL."""
        acl = self._table.acl_of(subject_of(GetAcl.from_fields(request.ext_fields).subject))
        return _success(request, b"" if acl is None else ACL.encode(acl_info(acl)))

    def list_acls(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """AUTH_LIST_ACL."""
        header = ListAcl.from_fields(request.ext_fields)
        acls = self._table.matching_acls(header.subject_filter, header.resource_filter)
        return _success(request, ACLS.encode(tuple(map(acl_info, acls))) if acls else b"")


class NoUsersProcessor:
    """What RocketMQ answers as long as ACL 2.0 is off."""

    def handlers(self) -> Handlers:
        return (serve_raw((kind.code for kind in _REQUESTS), self.refuse),)

    def refuse(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """All of them."""
        return request.answer(ResponseCode.SYSTEM_ERROR, "An system error occurred, please try again later.")


def _named_user(name: str | None, request: RemotingCommand) -> tuple[str, UserInfo]:
    if not name:
        raise InvalidParameter("The username is blank")
    return name, USER.decode(request.body)


def _is_super(kind: str | None) -> bool:
    return kind == USER_TYPES["super"]


async def _done(request: RemotingCommand, work: Awaitable[None]) -> RemotingCommand:
    await work
    return _success(request)


def _success(request: RemotingCommand, body: bytes = b"") -> RemotingCommand:
    return request.answer(ResponseCode.SUCCESS, _REMARK, None, body)
