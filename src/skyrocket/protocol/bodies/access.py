"""Users and their rights (ACL 2.0), and the accounts of ACL 1.0."""

from skyrocket.fastjson.bean import FLAG, TEXT, Field, bean, tuple_of
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body


@body
class UserInfo(BodyBase):
    """A user; the password travels in clear, as RocketMQ has it."""

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    user_status: str | None = None


_USER = bean(
    UserInfo,
    Field("password", "password", TEXT),
    Field("userStatus", "user_status", TEXT),
    Field("userType", "user_type", TEXT),
    Field("username", "username", TEXT),
)
USER = JsonBody(_USER)
USERS = JsonBody(tuple_of(_USER))


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


_POLICY_ENTRY = bean(
    PolicyEntry,
    Field("actions", "actions", tuple_of(TEXT)),
    Field("decision", "decision", TEXT),
    Field("resource", "resource", TEXT),
    Field("sourceIps", "source_ips", tuple_of(TEXT)),
)
_POLICY = bean(Policy, Field("entries", "entries", tuple_of(_POLICY_ENTRY)), Field("policyType", "policy_type", TEXT))
_ACL = bean(AclInfo, Field("policies", "policies", tuple_of(_POLICY)), Field("subject", "subject", TEXT))
ACL = JsonBody(_ACL)
ACLS = JsonBody(tuple_of(_ACL))


@body
class PlainAccessConfig(BodyBase):
    """An account of ACL 1.0."""

    access_key: str | None = None
    secret_key: str | None = None
    white_remote_address: str | None = None
    is_admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: tuple[str, ...] | None = None
    group_perms: tuple[str, ...] | None = None


@body
class AclConfig(BodyBase):
    """GET_BROKER_CLUSTER_ACL_CONFIG."""

    global_white_addresses: tuple[str, ...] | None = None
    accounts: tuple[PlainAccessConfig, ...] | None = None


ACL_CONFIG = JsonBody(
    bean(
        AclConfig,
        Field("globalWhiteAddrs", "global_white_addresses", tuple_of(TEXT)),
        Field(
            "plainAccessConfigs",
            "accounts",
            tuple_of(
                bean(
                    PlainAccessConfig,
                    Field("accessKey", "access_key", TEXT),
                    Field("admin", "is_admin", FLAG),
                    Field("defaultGroupPerm", "default_group_perm", TEXT),
                    Field("defaultTopicPerm", "default_topic_perm", TEXT),
                    Field("groupPerms", "group_perms", tuple_of(TEXT)),
                    Field("secretKey", "secret_key", TEXT),
                    Field("topicPerms", "topic_perms", tuple_of(TEXT)),
                    Field("whiteRemoteAddress", "white_remote_address", TEXT),
                )
            ),
        ),
    )
)
