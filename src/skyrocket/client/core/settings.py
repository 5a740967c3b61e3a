"""What all producers, consumers and admins of one client share. Times are in seconds."""

import os
import re
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from skyrocket.client.core.errors import NoNameServer, WrongUse
from skyrocket.client.core.names import check_topic
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.signing import Credentials, Signer
from skyrocket.remoting.addresses import Address

DEFAULT_INSTANCE: Final = "DEFAULT"
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

    name_servers: str | Sequence[str] = ""  # host:port, several joined by ; or as a list
    name_server_lookup: str = ""  # a URL that answers with such a list; asked again every two minutes
    instance_name: str = DEFAULT_INSTANCE
    client_ip: str = ""  # "": found out
    unit_name: str = ""
    unit_mode: bool = False
    namespace: str = ""  # stands in front of every topic and group
    namespace_v2: str = ""  # is told to brokers, which do the same
    vip_channel: bool = False
    tls: ssl.SSLContext | None = None
    credentials: Acl | None = None  # requests are signed with them
    sign: Callable[[RemotingCommand], None] | None = None  # a way of one's own to sign; nothing is added after it
    connect_timeout: float = 3.0
    api_timeout: float = 3.0
    route_refresh: float = 30.0
    heartbeat_interval: float = 30.0
    wait_for_name_servers: bool = False  # consumers start although none answers, say so, and go on trying
    trace: bool | str = False  # True: to RMQ_SYS_TRACE_TOPIC, else the name of a topic; docs/guides/trace.md

    def __post_init__(self) -> None:
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
        texts = given.split(";") if isinstance(given, str) else list(given)
        found = tuple(_address(text) for text in texts if text.strip())
        if not found and not self.name_server_lookup:
            raise NoNameServer(
                "no name server is configured: give name_servers='host:9876', or set the environment variable "
                "NAMESRV_ADDR"
            )
        return found

    def effective_namespace(self) -> str:
        """As given, or as an endpoint of the form http://MQ_INST_… names it."""
        if self.namespace:
            return self.namespace
        texts = [self.name_servers] if isinstance(self.name_servers, str) else self.name_servers
        matches = (_INSTANCE_ID.fullmatch(text.strip()) for text in texts)
        return next((match[1] for match in matches if match), "")


def settings_of(
    client: ClientSettings | None, name_servers: str | Sequence[str], credentials: Acl | None
) -> ClientSettings:
    """The shared settings with what a member was given itself."""
    settings = client or ClientSettings()
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
