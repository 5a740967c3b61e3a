"""plain_acl.yml and acl/*.yml: reads them, knows when they have changed, and rewrites one when an operator asks.

globalWhiteRemoteAddresses: [10.0.0.*]
accounts:
- {accessKey: …, secretKey: …, admin: false, defaultTopicPerm: DENY, topicPerms: [orders=PUB|SUB]}
"""

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from skyrocket.broker.access.plain_accounts import Account, account_of
from skyrocket.broker.access.remote_addresses import Pattern, address_pattern
from skyrocket.errors import ConfigError
from skyrocket.model.data_version import DataVersion

MAIN_FILE: Final = "plain_acl.yml"
FOLDER: Final = "acl"
TOOLS_FILE: Final = "tools.yml"  # RocketMQ: what mqadmin and the broker sign with

_ENDINGS: Final = (".yml", ".yaml")
_LARGEST_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class PlainRules:
    """All files together."""

    accounts: Mapping[str, Account] = field(default_factory=dict)
    white_addresses: tuple[Pattern, ...] = field(default=(), repr=False)
    files: Mapping[str, Path] = field(default_factory=dict)  # by access key: where the account is written
    versions: Mapping[Path, DataVersion] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()  # access keys that stand in more than one place; the first counts


class PlainFiles:
    """The files below one folder, RocketMQ's `conf`."""

    def __init__(self, folder: Path) -> None:
        self.main = folder / MAIN_FILE
        self._more = folder / FOLDER

    def paths(self) -> list[Path]:
        """The files that there are; those of the folder first, as RocketMQ has it."""
        more = sorted(path for path in self._more.rglob("*") if path.suffix in _ENDINGS and path.is_file())
        return [*more, *([self.main] if self.main.is_file() else [])]

    def traces(self) -> tuple[tuple[str, int, int, int], ...]:
        """What changes when a file does; cheap enough to be asked often."""
        return tuple(_traces(self.paths()))

    def digest(self) -> bytes:
        """Of the content of all files."""
        digest = hashlib.sha256()
        for path in self.paths():
            with contextlib.suppress(FileNotFoundError):
                data = path.read_bytes()
                digest.update(f"{path}\0{len(data)}\0".encode())
                digest.update(data)
        return digest.digest()

    def read(self) -> PlainRules:
        """All accounts; raises ConfigError."""
        paths = self.paths()
        if not paths:
            raise ConfigError(
                f"aclEnable=true, but there is neither {self.main} nor a .yml file in {self._more}: write one "
                "(docs/guides/access-control.md shows how), or say with aclConfigPath where it is"
            )
        accounts: dict[str, Account] = {}
        files: dict[str, Path] = {}
        white: list[Pattern] = []
        versions: dict[Path, DataVersion] = {}
        repeated: list[str] = []
        for path in paths:
            content = content_of(path)
            white += _white_addresses(content, path)
            versions[path] = _version(content)
            for entry in _entries(content, path):
                account = account_of(entry, str(path))
                if account.access_key in accounts:
                    repeated.append(account.access_key)
                    continue
                accounts[account.access_key] = account
                files[account.access_key] = path
        return PlainRules(accounts, tuple(white), files, versions, tuple(repeated))


def content_of(path: Path) -> dict[str, Any]:
    """A file as maps, lists and texts: numbers stay as they are written, so 0123456 does not become an octal number."""
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise ConfigError(f"{path} is larger than {_LARGEST_BYTES} bytes")
        content = yaml.load(path.read_text("utf-8"), Loader=yaml.BaseLoader)  # which makes texts only
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not YAML{_line(error)}") from None  # its text would show what stands there
    if content in (None, ""):
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold the keys globalWhiteRemoteAddresses and accounts")
    return content


def write_content(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a file as a whole; who could read it before can read it now, nobody else."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
    temporary = path.with_name(path.name + ".tmp")
    data = yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True).encode()
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
    temporary.replace(path)


def raised_version(content: Mapping[str, Any], now_ms: int) -> list[dict[str, int]]:
    """The next version of a file, as it is written into it."""
    version = _version(content).next(now_ms)
    return [{"counter": version.counter, "timestamp": version.timestamp}]


def _traces(paths: list[Path]) -> Iterator[tuple[str, int, int, int]]:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            yield str(path), status.st_mtime_ns, status.st_size, status.st_ino


def _white_addresses(content: Mapping[str, Any], path: Path) -> list[Pattern]:
    patterns = content.get("globalWhiteRemoteAddresses") or []
    if not isinstance(patterns, list):
        raise ConfigError(f"{path}: globalWhiteRemoteAddresses must be a list")
    try:
        return [address_pattern(str(pattern)) for pattern in patterns]
    except ConfigError as error:
        raise ConfigError(f"{path}: globalWhiteRemoteAddresses: {error}") from None


def _entries(content: Mapping[str, Any], path: Path) -> list[Mapping[str, Any]]:
    entries = content.get("accounts") or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f"{path}: accounts must be a list of accounts")
    return entries


def _version(content: Mapping[str, Any]) -> DataVersion:
    try:
        first = content["dataVersion"][0]
        return DataVersion(timestamp=int(first["timestamp"]), counter=int(first["counter"]))
    except (KeyError, IndexError, TypeError, ValueError):
        return DataVersion(timestamp=0)


def _line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
