"""The check of ACL 1.0, and its rules, which follow the files while the broker runs.

The order is RocketMQ's: white address, known account, the account's white address, signature, then rights. A file that
has become wrong changes nothing: the rules of before stay, and the log says what is wrong with it.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from skyrocket.broker.access import plain_accounts as plain
from skyrocket.broker.access.plain_accounts import Account, account_of
from skyrocket.broker.access.plain_files import PlainFiles, PlainRules, content_of, raised_version, write_content
from skyrocket.broker.access.remote_addresses import address_pattern, host_of
from skyrocket.broker.access.required_permissions import CLUSTER, GET, TOPIC, Permission, RequiredPermissions
from skyrocket.broker.access.required_permissions import PUB as TO_PUBLISH
from skyrocket.clock import ServiceClock
from skyrocket.errors import ConfigError
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import MalformedBody, SystemFailure
from skyrocket.protocol.signing import ACCESS_KEY, is_signed_with
from skyrocket.remoting.peer import Peer

_logger = logging.getLogger(__name__)

_WATCH_SECONDS: Final = 0.5
_MAX_KNOWN_PEERS: Final = 10_000
_TRACE: Final = Permission(TOPIC, "RMQ_SYS_TRACE_TOPIC", TO_PUBLISH)
_FIELDS: Final = ("whiteRemoteAddress", "admin", "defaultTopicPerm", "defaultGroupPerm", "topicPerms", "groupPerms")

# Shown messages are read messages; accounts, logs, and what waits in others' topics are the administrators' business.
_READS: Final = frozenset({RequestCode.VIEW_MESSAGE_BY_ID})
_FOR_ADMINS: Final = frozenset(
    {
        RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
        RequestCode.DELETE_ACL_CONFIG,
        RequestCode.GET_BROKER_CLUSTER_ACL_INFO,
        RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG,
        RequestCode.LIST_OPEN_TRANSACTIONS,
        RequestCode.LIST_PENDING_TIMERS,
        RequestCode.COMPARE_LOG_TAIL,
        RequestCode.LIST_QUOTAS,
        RequestCode.LIST_TOPIC_OWNERS,
    }
)


class AclRefused(SystemFailure):
    """RocketMQ: code 1 with the name of its exception."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"org.apache.rocketmq.acl.common.AclException: {reason}")


class PlainAccess:
    """Accounts and their rights."""

    def __init__(self, files: PlainFiles, needs: RequiredPermissions, clock: ServiceClock) -> None:
        self.files = files
        self.rules = PlainRules()
        self._needs = needs
        self._clock = clock
        self._traces: tuple[tuple[str, int, int, int], ...] = ()
        self._digest = b""
        self._is_white: dict[str, bool] = {}  # by host

    # ── the check ────────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self, peer: Peer, request: RemotingCommand) -> None:
        """Raises AclRefused."""
        host = host_of(peer)
        if self._comes_from_white_address(host):
            return
        fields = request.ext_fields
        key = fields.get(ACCESS_KEY) if fields else None
        if not key:
            raise AclRefused("No accessKey is configured")
        account = self.rules.accounts.get(key)
        if account is None:
            raise AclRefused(f"No acl config for {key}")
        if account.white_address(host):
            return
        if not is_signed_with(request, account.secret_key):
            raise AclRefused(f"Check signature failed for accessKey={key}")
        if not account.is_admin:
            self._check_rights(account, request)

    def _comes_from_white_address(self, host: str) -> bool:
        known = self._is_white.get(host)
        if known is None:
            if len(self._is_white) >= _MAX_KNOWN_PEERS:
                self._is_white.clear()
            known = self._is_white[host] = any(matches(host) for matches in self.rules.white_addresses)
        return known

    def _check_rights(self, account: Account, request: RemotingCommand) -> None:
        code = request.code
        if code in _FOR_ADMINS:
            raise _needs_admin(account, code)
        try:
            needs = self._needs.of(request)
        except MalformedBody as error:
            raise AclRefused(str(error)) from None
        if _TRACE in needs:
            return
        for need in needs:
            needed = _needed(need, code)
            if needed is None:
                raise _needs_admin(account, code)
            refusal = account.refusal_of(need, needed) if needed else None
            if refusal is not None:
                raise AclRefused(refusal)

    # ── the rules ────────────────────────────────────────────────────────────────────────────────────────────────────

    def load(self) -> None:
        """Take what the files say; raises ConfigError."""
        traces, digest = self.files.traces(), self.files.digest()
        rules = self.files.read()
        self._traces, self._digest = traces, digest
        self.rules = rules
        self._is_white = {}
        if rules.repeated:
            _logger.warning("accounts stand in more than one place; the first counts keys=%s", ",".join(rules.repeated))
        _logger.info("accounts read files=%d accounts=%d", len(rules.versions), len(rules.accounts))

    async def watch(self) -> None:
        """Follow the files until cancelled."""
        while True:
            await self._clock.sleep(_WATCH_SECONDS)
            self.follow()

    def follow(self) -> None:
        """Take what the files say, if they say something new and it is right."""
        try:
            traces = self.files.traces()
            if traces == self._traces:
                return
            self._traces = traces
            if self.files.digest() != self._digest:
                self.load()
        except (ConfigError, OSError) as error:
            _logger.error("accounts have not changed: their files are wrong reason=%s", error)

    def update(self, wanted: Mapping[str, Any]) -> None:
        """Change an account, or add one; raises ConfigError or OSError and then nothing has changed."""
        key = str(wanted.get("accessKey") or "")
        path = self.rules.files.get(key, self.files.main)
        content = content_of(path) if path.exists() else {}
        entries: list[dict[str, Any]] = list(content.get("accounts") or ())
        others = [entry for entry in entries if str(entry.get("accessKey")) != key]
        old: dict[str, Any] = next((entry for entry in entries if str(entry.get("accessKey")) == key), {})
        entry = {**old, **{name: wanted[name] for name in ("accessKey", *_FIELDS) if wanted.get(name) is not None}}
        if wanted.get("secretKey"):
            entry["secretKey"] = wanted["secretKey"]
        account_of(entry, str(path))
        self._write(path, {**content, "accounts": [*others, entry]})

    def delete(self, key: str) -> bool:
        """Remove an account; False when there is none."""
        path = self.rules.files.get(key)
        if path is None:
            return False
        content = content_of(path)
        entries = [entry for entry in content.get("accounts") or () if str(entry.get("accessKey")) != key]
        self._write(path, {**content, "accounts": entries})
        return True

    def set_white_addresses(self, patterns: list[str], file: str | None) -> None:
        """Replace the addresses of one file, the main one unless it is named."""
        for pattern in patterns:
            address_pattern(pattern)
        path = self.files.main if not file else Path(file)
        if file and path not in self.rules.versions:
            raise ConfigError(f"{file} is none of the broker's files with accounts")
        content = content_of(path) if path.exists() else {}
        self._write(path, {"globalWhiteRemoteAddresses": patterns, **_without(content, "globalWhiteRemoteAddresses")})

    def _write(self, path: Path, content: Mapping[str, Any]) -> None:
        version = raised_version(content, self._clock.now_ms())
        write_content(path, {**_without(content, "dataVersion"), "dataVersion": version})
        self.load()


def _without(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != name}


def _needed(need: Permission, code: int) -> int | None:
    """The bit that an account must own: 0 when its signature is enough, None when only administrators may."""
    if "Pub" in need.actions:
        return plain.PUB
    if "Sub" in need.actions or code in _READS:
        return plain.SUB if need.kind != CLUSTER else 0
    return 0 if need.actions == GET else None


def _needs_admin(account: Account, code: int) -> AclRefused:
    return AclRefused(f"Need admin permission for request code={code}, but accessKey={account.access_key} is not")
