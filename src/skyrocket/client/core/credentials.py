"""Who we are to brokers that ask for it: access control of RocketMQ 4 and 5 wants requests signed with a secret."""

from dataclasses import dataclass

from skyrocket.client.core.errors import WrongUse
from skyrocket.protocol.signing import Credentials


@dataclass(frozen=True, slots=True)
class Acl(Credentials):
    """An account: ACL 1.0 calls it accessKey and secretKey, ACL 2.0 user name and password."""

    def __post_init__(self) -> None:
        for what, value in (("access_key", self.access_key), ("secret_key", self.secret_key)):
            if not isinstance(value, str) or not value.strip():
                raise WrongUse(f"{what} is blank: give both access_key and secret_key of an account of the brokers")
