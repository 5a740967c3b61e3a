"""Accounts of ACL 1.0, managed by administrators."""

from collections.abc import Callable
from typing import Any, Final

from skyrocket.broker.access.plain_access import PlainAccess
from skyrocket.broker.access.plain_files import content_of
from skyrocket.errors import ConfigError
from skyrocket.model.data_version import DataVersion
from skyrocket.protocol.bodies.access import ACL_CONFIG, AclConfig, PlainAccessConfig
from skyrocket.protocol.bodies.topics import DATA_VERSION
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.requests.acl import (
    ClusterAclInfoAnswer,
    DeleteAclConfig,
    GetBrokerClusterAclConfig,
    GetBrokerClusterAclInfo,
    UpdateAndCreateAclConfig,
    UpdateGlobalWhiteAddrsConfig,
)
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw

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
            serve_raw(UpdateAndCreateAclConfig.code, self.update),
            serve_raw(DeleteAclConfig.code, self.delete),
            serve_raw(GetBrokerClusterAclInfo.code, self.versions),
            serve_raw(UpdateGlobalWhiteAddrsConfig.code, self.set_white_addresses),
            serve_raw(GetBrokerClusterAclConfig.code, self.show),
        )

    def update(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """UPDATE_AND_CREATE_ACL_CONFIG."""
        header = UpdateAndCreateAclConfig.from_fields(request.ext_fields)
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
        return _tried(request, _UPDATE_FAILED, lambda: self._access.update(account))

    def delete(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """DELETE_ACL_CONFIG."""
        key = DeleteAclConfig.from_fields(request.ext_fields).access_key

        def delete() -> None:
            if not self._access.delete(key):
                raise ConfigError(f"The accesskey[{key}] corresponding to accessConfig has been deleted failed.")

        return _tried(request, _DELETE_FAILED, delete)

    def set_white_addresses(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """UPDATE_GLOBAL_WHITE_ADDRS_CONFIG."""
        header = UpdateGlobalWhiteAddrsConfig.from_fields(request.ext_fields)
        patterns = _listed(header.global_white_addrs) or []
        change = self._access.set_white_addresses
        return _tried(request, _WHITE_ADDRESSES_FAILED, lambda: change(patterns, header.acl_file_full_path))

    def versions(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_BROKER_CLUSTER_ACL_INFO."""
        known = self._access.rules.versions
        by_file = ",".join(f'"{path}":{_version_text(version)}' for path, version in known.items())
        answer = ClusterAclInfoAnswer(
            version=_version_text(known.get(self._access.files.main, DataVersion())),
            all_acl_file_version="{" + by_file + "}",
            broker_name=self._broker,
            broker_addr=self._address,
            cluster_name=self._cluster,
        )
        return request.answer(ResponseCode.SUCCESS, None, answer.to_fields())

    def show(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_BROKER_CLUSTER_ACL_CONFIG, with secrets: only administrators come so far."""
        white: list[str] = []
        accounts: dict[str, PlainAccessConfig] = {}
        for path in self._access.files.paths():
            content = content_of(path)
            white += content.get("globalWhiteRemoteAddresses") or []
            for entry in content.get("accounts") or ():
                accounts.setdefault(str(entry.get("accessKey")), _config(entry))
        return request.answer(
            ResponseCode.SUCCESS, None, None, ACL_CONFIG.encode(AclConfig(tuple(white), tuple(accounts.values())))
        )


def _tried(request: RemotingCommand, failed: int, change: Callable[[], None]) -> RemotingCommand:
    try:
        change()
    except (ConfigError, OSError) as error:
        return request.answer(failed, str(error))
    return request.answer(ResponseCode.SUCCESS)


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
