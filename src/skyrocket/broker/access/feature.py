"""Access control as the settings want it: what is checked, what is served, and with whose name the broker itself asks.

Nothing is built, and no request is looked at, while both generations are off.
"""

import json
import logging
from pathlib import Path

from skyrocket.broker.access import migration
from skyrocket.broker.access.plain_access import PlainAccess
from skyrocket.broker.access.plain_acl_admin import PlainAclProcessor
from skyrocket.broker.access.plain_files import TOOLS_FILE, PlainFiles, content_of
from skyrocket.broker.access.required_permissions import RequiredPermissions
from skyrocket.broker.access.user_access import UserAccess, request_codes
from skyrocket.broker.access.user_file import FILE_NAME, is_apache_folder, user_file
from skyrocket.broker.access.user_table import UserTable
from skyrocket.broker.access.users import SUPER, User
from skyrocket.broker.access.users_admin import NoUsersProcessor, UserAdminProcessor
from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.core.plug_ins import plug_ins
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import ConfigError
from skyrocket.format.properties import find_property
from skyrocket.format.property_bytes import REAL_TOPIC
from skyrocket.format.record import read_head
from skyrocket.model.topic import is_system_topic
from skyrocket.protocol.signing import Credentials, Signer
from skyrocket.remoting.router import Check
from skyrocket.remoting.services import Work
from skyrocket.remoting.serving import Handlers
from skyrocket.store.message_store import MessageStore

_logger = logging.getLogger(__name__)


class AccessFeature(Feature):
    """Both generations: checks before every handler, and the requests that manage accounts."""

    def __init__(self, parts: Parts) -> None:
        config, store = parts.config, parts.store
        self._config = config
        self._address = str(parts.identity.address)
        self._own_checks = plug_ins("accessValidators", config.access_validators)
        self._folder = Path(store.paths.config)
        self.plain_files = PlainFiles(_plain_folder(config, self._folder))
        needs = RequiredPermissions(config.cluster_name, lambda offset: topic_of_record(store, offset))
        self.plain = PlainAccess(self.plain_files, needs, parts.clock) if config.acl_enabled else None
        self.users = UserTable(user_file(self._folder), self._users_changed)
        self.user_access: UserAccess | None = None
        if config.authentication_enabled or config.authorization_enabled:
            self.user_access = UserAccess(
                self.users,
                needs,
                authenticates=config.authentication_enabled,
                authorizes=config.authorization_enabled,
                without_authentication=request_codes(config.authentication_whitelist, "authenticationWhitelist"),
                without_authorization=request_codes(config.authorization_whitelist, "authorizationWhitelist"),
            )
        self._first_user = _first_user(config.init_authentication_user)
        self._own = _own_credentials(config.inner_client_credentials) or self._tools_credentials()
        parts.client.signer = self.signer

    @property
    def signer(self) -> Signer | None:
        """Signs what the broker asks of others."""
        return None if self._own is None else Signer(self._own)

    def checks(self) -> tuple[Check, ...]:
        """Our own first: who is refused there does not reach what an operator added."""
        plain = () if self.plain is None else (self.plain.check,)
        users = () if self.user_access is None else (self.user_access.check,)
        return (*plain, *users, *self._own_checks)

    def services(self) -> tuple[Work, ...]:
        return () if self.plain is None else (self.plain.watch,)

    def handlers(self) -> Handlers:
        if self.plain is not None:
            names = (self._config.cluster_name, self._config.broker_name, self._address)
            yield from PlainAclProcessor(self.plain, *names).handlers()
        if self.user_access is None:
            yield from NoUsersProcessor().handlers()
        else:
            yield from UserAdminProcessor(self.users, authenticates=self.user_access.authenticates).handlers()

    async def open(self) -> None:
        """Read accounts, users and policies; raises ConfigError, CorruptFile or OSError."""
        if self.plain is not None:
            self.plain.load()
        if self.user_access is None:
            return
        self.users.load()
        self._add_users_of_settings()
        if not self.users.users:
            _logger.warning("there are no users: everything is refused; set initAuthenticationUser")
        if not self.user_access.authenticates:
            _logger.warning("authorizationEnabled without authenticationEnabled believes every name without a proof")

    def _add_users_of_settings(self) -> None:
        if is_apache_folder(self._folder) and not (self._folder / FILE_NAME).exists():
            _logger.warning(
                "users of RocketMQ are not read: copy them with mqadmin copyUser and copyAcl folder=%s", self._folder
            )
        if self._config.migrate_plain_accounts:
            for account in self.plain_files.read().accounts.values():
                if self.users.add_missing(migration.user_of(account), migration.acl_of(account)):
                    _logger.info("account became a user name=%s", account.access_key)
        if self._first_user is not None:
            self.users.add_missing(self._first_user)
        if self._own is not None:
            self.users.add_missing(User(self._own.access_key, self._own.secret_key, SUPER))

    def _users_changed(self) -> None:
        if self.user_access is not None:
            self.user_access.forget()

    def _tools_credentials(self) -> Credentials | None:
        """RocketMQ: with ACL 1.0 the broker signs as mqadmin does, with the account of tools.yml."""
        path = self.plain_files.main.with_name(TOOLS_FILE)
        if self.plain is None or not path.exists():
            return None
        content = content_of(path)
        key, secret = str(content.get("accessKey") or ""), str(content.get("secretKey") or "")
        return Credentials(key, secret) if key and secret else None


def topic_of_record(store: MessageStore, physical_offset: int) -> str | None:
    """The topic that a message was sent to, also while it waits in a topic of the system; None: there is none."""
    record = store.by_physical_offset(physical_offset)
    head = None if record is None else read_head(record, 0, physical_offset)
    if head is None:
        return None
    topic = head.topic.decode("utf-8", "replace")
    real = find_property(head.properties, REAL_TOPIC) if is_system_topic(topic) else None
    return topic if real is None else real.decode("utf-8", "replace")


def _plain_folder(config: BrokerConfig, tables: Path) -> Path:
    """Beside the .conf file, as in RocketMQ's conf folder; without one, beside the broker's tables."""
    if config.acl_config_path:
        return Path(config.acl_config_path).expanduser()
    return Path(config.config_path).expanduser().parent if config.config_path else tables


def _first_user(text: str) -> User | None:
    pair = _pair(text, "initAuthenticationUser", "username", "password")
    return None if pair is None else User(*pair, SUPER)


def _own_credentials(text: str) -> Credentials | None:
    pair = _pair(text, "innerClientAuthenticationCredentials", "accessKey", "secretKey")
    return None if pair is None else Credentials(*pair)


def _pair(text: str, setting: str, name: str, secret: str) -> tuple[str, str] | None:
    """Two members of a JSON object; an error does not show them."""
    if not text.strip():
        return None
    try:
        value = json.loads(text)
        pair = str(value[name]), str(value[secret])
    except (ValueError, KeyError, TypeError):
        pair = "", ""
    if not all(pair):
        raise ConfigError(f'{setting} must be JSON of the form {{"{name}":"…","{secret}":"…"}}')
    return pair
