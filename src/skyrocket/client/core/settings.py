"""What all producers, consumers and admins of one client share. Times are in seconds."""

import os
import re
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from skyrocket.client.core.errors import HOW_TO_NAME_THEM, NoNameServer, WrongUse
from skyrocket.client.core.names import check_topic
from skyrocket.client.core.setting_types import check_types
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.signing import Credentials, Signer
from skyrocket.remoting.addresses import Address

DEFAULT_INSTANCE: Final = "DEFAULT"
S = TypeVar("S")
_INSTANCE_ID = re.compile(r"(?:\w+://)?(MQ_INST_\w+_\w+)\..*")


@dataclass(frozen=True, slots=True)
class Acl(Credentials):
    """An account of brokers that want requests signed: accessKey and secretKey of ACL 1.0, user and password of 2.0."""

    def __post_init__(self) -> None:
        for what, value in (("access_key", self.access_key), ("secret_key", self.secret_key)):
            if not isinstance(value, str) or not value.strip():
                raise WrongUse(f"{what} is blank: give both access_key and secret_key of an account of the brokers")


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How a client finds and talks to its cluster.

    Without `name_servers` and `name_server_lookup` the environment variable NAMESRV_ADDR says where to ask. Clients of
    one process with the same `instance_name` share connections, routes and heartbeats.
    """

    name_servers: str | Sequence[str] = ""
    """host:port, several joined by ; or , or as a list; "": $NAMESRV_ADDR."""
    name_server_lookup: str = ""
    """A URL that answers with such a list; asked again every two minutes."""
    instance_name: str = DEFAULT_INSTANCE
    """Clients of one process with the same name share connections."""
    client_ip: str = ""
    """The address that brokers are told; "": found out."""
    unit_name: str = ""
    """The unit of a deployment in several: part of the client id."""
    unit_mode: bool = False
    """Whether topics are of that unit."""
    namespace: str = ""
    """Stands in front of every topic and group."""
    namespace_v2: str = ""
    """Is told to brokers, which put it there."""
    vip_channel: bool = False
    """Use the brokers' second port, two below the first."""
    tls: ssl.SSLContext | None = None
    """Encrypt connections with this context."""
    credentials: Acl | None = None
    """The account that requests are signed with."""
    sign: Callable[[RemotingCommand], None] | None = None
    """A way of one's own to sign requests; nothing is added after it."""
    connect_timeout: float = 3.0
    """Seconds to reach a server."""
    api_timeout: float = 3.0
    """Seconds for an answer to what is no send and no pull."""
    route_refresh: float = 30.0
    """Seconds between two looks at where topics are."""
    heartbeat_interval: float = 30.0
    """Seconds between two heartbeats to all brokers."""
    wait_for_name_servers: bool = False
    """Consumers start although no name server answers, say so, and go on trying."""
    trace: bool | str = False
    """True: tell RMQ_SYS_TRACE_TOPIC of sends and consumption; a text: that topic (docs/guides/trace.md)."""

    def __post_init__(self) -> None:
        check_types(self)
        names = [self.name_servers] if isinstance(self.name_servers, str) else self.name_servers
        if not isinstance(names, Sequence) or not all(isinstance(text, str) for text in names):
            raise WrongUse(f"name_servers={self.name_servers!r}: give 'host:9876', or a list of such texts")
        if isinstance(self.trace, str) and self.trace:
            check_topic(self.trace)
        if self.sign is not None and self.credentials is not None:
            raise WrongUse("credentials and sign exclude each other: a request has one signature")

    def signer(self) -> Callable[[RemotingCommand], None] | None:
        """What signs requests, None when nothing does."""
        return self.sign if self.credentials is None else Signer(self.credentials)

    def addresses(self) -> tuple[str, ...]:
        """The name servers; empty when they must be looked up. Raises NoNameServer or WrongUse."""
        given = self.name_servers or os.environ.get("NAMESRV_ADDR", "")
        texts = given.replace(",", ";").split(";") if isinstance(given, str) else list(given)
        found = tuple(_address(text) for text in texts if text.strip())
        if not found and not self.name_server_lookup:
            raise NoNameServer(f"no name server is configured: give one as host:9876 ({HOW_TO_NAME_THEM})")
        return found

    def effective_namespace(self) -> str:
        """As given, or as an endpoint of the form http://MQ_INST_… names it."""
        if self.namespace:
            return self.namespace
        texts = [self.name_servers] if isinstance(self.name_servers, str) else self.name_servers
        matches = (_INSTANCE_ID.fullmatch(text.strip()) for text in texts)
        return next((match[1] for match in matches if match), "")


def of_kind(argument: str, given: Any, kind: type[S]) -> S:
    """What was given for an argument, None: the defaults; raises WrongUse for something else, such as a dict."""
    if given is None:
        return kind()
    if not isinstance(given, kind):
        # Not the value: it may be a secret.
        raise WrongUse(
            f"{argument} is {type(given).__name__}, not {kind.__name__}: write {argument}={kind.__name__}(…)"
        )
    return given


def settings_of(
    client: ClientSettings | None, name_servers: str | Sequence[str], credentials: Acl | None
) -> ClientSettings:
    """The shared settings with what a member was given itself."""
    settings = of_kind("client", client, ClientSettings)
    if credentials is not None:
        of_kind("credentials", credentials, Acl)
    if name_servers:
        settings = replace(settings, name_servers=name_servers)
    return settings if credentials is None else replace(settings, credentials=credentials)


def _address(text: str) -> str:
    bare = text.strip().rpartition("/")[2]  # http://host:port is a way to write it
    try:
        Address.parse(bare)
    except ValueError as error:
        raise WrongUse(f"name server {text.strip()!r}: {error}; an example is 127.0.0.1:9876") from None
    return bare
