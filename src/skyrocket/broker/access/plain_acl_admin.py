"""Accounts of ACL 1.0, managed by administrators."""

from collections.abc import Callable
from typing import Any, Final

from skyrocket.broker.access.plain_access import PlainAccess
from skyrocket.broker.access.plain_files import content_of
from skyrocket.errors import ConfigError
from skyrocket.model.data_version import DataVersion
from skyrocket.protocol.bodies.access import AclConfig, PlainAccessConfig
from skyrocket.protocol.bodies.topics import DATA_VERSION
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.acl import (
    ClusterAclInfoAnswer,
    DeleteAclConfig,
    GetBrokerClusterAclConfig,
    GetBrokerClusterAclInfo,
    UpdateAndCreateAclConfig,
    UpdateGlobalWhiteAddrsConfig,
)
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Answered, Handlers, serve

# RocketMQ: these numbers have another meaning since 5.3.3, which has no ACL 1.0 any more.
_UPDATE_FAILED: Final = 209
_DELETE_FAILED: Final = 210
_WHITE_ADDRESSES_FAILED: Final = 211


class PlainAclProcessor:
    """Changes the files; what they say is in force when the answer leaves."""

    def __init__(self, access: PlainAccess, cluster: str, broker: str, address: str) -> None:
        self._access = access
        self._cluster = cluster
        self._broker = broker
        self._address = address

    def handlers(self) -> Handlers:
        return (
            serve(UpdateAndCreateAclConfig, self.update),
            serve(DeleteAclConfig, self.delete),
            serve(GetBrokerClusterAclInfo, self.versions),
            serve(UpdateGlobalWhiteAddrsConfig, self.set_white_addresses),
            serve(GetBrokerClusterAclConfig, self.show),
        )

    def update(self, _: Peer, header: UpdateAndCreateAclConfig, __: Body) -> Answered:
        """Create or change an account."""
        account: dict[str, Any] = {
            "accessKey": header.access_key,
            "secretKey": header.secret_key,
            "whiteRemoteAddress": header.white_remote_address,
            "admin": header.admin,
            "defaultTopicPerm": header.default_topic_perm or None,
            "defaultGroupPerm": header.default_group_perm or None,
            "topicPerms": _listed(header.topic_perms),
            "groupPerms": _listed(header.group_perms),
        }
        return _tried(_UPDATE_FAILED, lambda: self._access.update(account))

    def delete(self, _: Peer, header: DeleteAclConfig, __: Body) -> Answered:
        """Delete an account."""
        key = header.access_key

        def delete() -> None:
            if not self._access.delete(key):
                raise ConfigError(f"The accesskey[{key}] corresponding to accessConfig has been deleted failed.")

        return _tried(_DELETE_FAILED, delete)

    def set_white_addresses(self, _: Peer, header: UpdateGlobalWhiteAddrsConfig, __: Body) -> Answered:
        """Set the addresses that need no account."""
        patterns = _listed(header.global_white_addrs) or []
        change = self._access.set_white_addresses
        return _tried(_WHITE_ADDRESSES_FAILED, lambda: change(patterns, header.acl_file_full_path))

    def versions(self, _: Peer, __: GetBrokerClusterAclInfo, ___: Body) -> ClusterAclInfoAnswer:
        """The version of every file."""
        known = self._access.rules.versions
        by_file = ",".join(f'"{path}":{_version_text(version)}' for path, version in known.items())
        return ClusterAclInfoAnswer(
            version=_version_text(known.get(self._access.files.main, DataVersion())),
            all_acl_file_version="{" + by_file + "}",
            broker_name=self._broker,
            broker_addr=self._address,
            cluster_name=self._cluster,
        )

    def show(self, _: Peer, __: GetBrokerClusterAclConfig, ___: Body) -> AclConfig:
        """All accounts with their secrets: only administrators come so far."""
        white: list[str] = []
        accounts: dict[str, PlainAccessConfig] = {}
        for path in self._access.files.paths():
            content = content_of(path)
            white += content.get("globalWhiteRemoteAddresses") or []
            for entry in content.get("accounts") or ():
                accounts.setdefault(str(entry.get("accessKey")), _config(entry))
        return AclConfig(tuple(white), tuple(accounts.values()))


def _tried(failed: int, change: Callable[[], None]) -> Answered:
    try:
        change()
    except (ConfigError, OSError) as error:
        return Answered(remark=str(error), code=failed)
    return Answered()


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _version_text(version: DataVersion) -> str:
    return DATA_VERSION.encode(version).decode()


def _config(entry: dict[str, Any]) -> PlainAccessConfig:
    return PlainAccessConfig(
        entry.get("accessKey"),
        entry.get("secretKey"),
        entry.get("whiteRemoteAddress"),
        str(entry.get("admin") or "").lower() == "true",
        entry.get("defaultTopicPerm"),
        entry.get("defaultGroupPerm"),
        tuple(entry.get("topicPerms") or ()) or None,
        tuple(entry.get("groupPerms") or ()) or None,
    )
