"""Users and their rights (AclInfo 2.0), and the accounts of AclInfo 1.0."""

from typing import Annotated

from skyrocket.fastjson.bean import bean, tuple_of
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body


@body
class UserInfo(BodyBase):
    """A user; the password travels in clear, as RocketMQ has it."""

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    user_status: str | None = None


USERS = JsonBody(tuple_of(bean(UserInfo)))


@body
class PolicyEntry(BodyBase):
    """Who may do what with one resource, and from where."""

    resource: str | None = None
    actions: tuple[str, ...] | None = None
    source_ips: tuple[str, ...] | None = None
    decision: str | None = None


@body
class Policy(BodyBase):
    """Entries of one policy type."""

    policy_type: str | None = None
    entries: tuple[PolicyEntry, ...] | None = None


@body
class AclInfo(BodyBase):
    """All policies of one subject, such as `User:alice`."""

    subject: str | None = None
    policies: tuple[Policy, ...] | None = None


ACLS = JsonBody(tuple_of(bean(AclInfo)))


@body
class PlainAccessConfig(BodyBase):
    """An account of AclInfo 1.0."""

    access_key: str | None = None
    secret_key: str | None = None
    white_remote_address: str | None = None
    is_admin: Annotated[bool, "admin"] = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: tuple[str, ...] | None = None
    group_perms: tuple[str, ...] | None = None


@body
class AclConfig(BodyBase):
    """GET_BROKER_CLUSTER_ACL_CONFIG."""

    global_white_addresses: Annotated[tuple[str, ...] | None, "globalWhiteAddrs"] = None
    accounts: Annotated[tuple[PlainAccessConfig, ...] | None, "plainAccessConfigs"] = None
