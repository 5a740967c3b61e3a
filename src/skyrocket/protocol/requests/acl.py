"""Users and rights: AclInfo 2.0 (5.3 on), and AclInfo 1.0 up to 5.3.2."""

from skyrocket.protocol.bodies.access import ACLS, USERS, AclConfig, AclInfo, UserInfo
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Request, answer, request, wire
from skyrocket.protocol.signing import ACCESS_KEY


@request(RequestCode.AUTH_CREATE_USER, body=UserInfo, optional_body=True)
class CreateUser(Request[Header]):
    """A new user."""

    username: str | None = None
    access_key: str | None = wire(ACCESS_KEY, default=None)  # who asks: the signer writes it


@request(RequestCode.AUTH_UPDATE_USER, body=UserInfo, optional_body=True)
class UpdateUser(Request[Header]):
    """Another password, type or status."""

    username: str | None = None
    access_key: str | None = wire(ACCESS_KEY, default=None)  # who asks: the signer writes it


@request(RequestCode.AUTH_DELETE_USER)
class DeleteUser(Request[Header]):
    """Remove a user."""

    username: str | None = None
    access_key: str | None = wire(ACCESS_KEY, default=None)  # who asks: the signer writes it


@request(RequestCode.AUTH_GET_USER, answer_body=UserInfo)
class GetUser(Request[Header]):
    """One user."""

    username: str | None = None
    access_key: str | None = wire(ACCESS_KEY, default=None)  # who asks: the signer writes it


@request(RequestCode.AUTH_LIST_USER, answer_body=USERS)
class ListUser(Request[Header]):
    """Users whose name contains the filter."""

    filter: str | None = None
    access_key: str | None = wire(ACCESS_KEY, default=None)


@request(RequestCode.AUTH_CREATE_ACL, body=AclInfo, optional_body=True)
class CreateAcl(Request[Header]):
    """Rights of a subject."""

    subject: str | None = None


@request(RequestCode.AUTH_UPDATE_ACL, body=AclInfo, optional_body=True)
class UpdateAcl(Request[Header]):
    """Other rights of a subject."""

    subject: str | None = None


@request(RequestCode.AUTH_DELETE_ACL)
class DeleteAcl(Request[Header]):
    """Remove rights of a subject: all, or those for one resource."""

    subject: str | None = None
    policy_type: str | None = None
    resource: str | None = None


@request(RequestCode.AUTH_GET_ACL, answer_body=AclInfo)
class GetAcl(Request[Header]):
    """Rights of one subject."""

    subject: str | None = None


@request(RequestCode.AUTH_LIST_ACL, answer_body=ACLS)
class ListAcl(Request[Header]):
    """Rights of many subjects."""

    subject_filter: str | None = None
    resource_filter: str | None = None


@request(RequestCode.UPDATE_AND_CREATE_ACL_CONFIG)
class UpdateAndCreateAclConfig(Request[Header]):
    """AclInfo 1.0: an account."""

    access_key: str
    secret_key: str
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    group_perms: str | None = None


@request(RequestCode.DELETE_ACL_CONFIG)
class DeleteAclConfig(Request[Header]):
    """AclInfo 1.0: remove an account."""

    access_key: str


@answer
class ClusterAclInfoAnswer(Header):
    """Versions of the account files as JSON text."""

    version: str | None = None
    all_acl_file_version: str | None = None
    broker_name: str | None = None
    broker_addr: str | None = None
    cluster_name: str | None = None


@request(RequestCode.GET_BROKER_CLUSTER_ACL_INFO, answer=ClusterAclInfoAnswer)
class GetBrokerClusterAclInfo(Request[ClusterAclInfoAnswer]):
    """AclInfo 1.0: versions of the account files."""


@request(RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG)
class UpdateGlobalWhiteAddrsConfig(Request[Header]):
    """AclInfo 1.0: addresses that need no signature."""

    global_white_addrs: str
    acl_file_full_path: str | None = None


@request(RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG, answer_body=AclConfig)
class GetBrokerClusterAclConfig(Request[Header]):
    """AclInfo 1.0: all accounts."""
