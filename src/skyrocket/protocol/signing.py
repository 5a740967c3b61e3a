"""The signature of a request, the same for ACL 1.0 and 2.0.

    content     the values of all ext fields in the order of their keys, without Signature; then the body
    signature   Base64 of HMAC-SHA1 over it, the key is the secret

Code, flag, version and opaque number are not signed, and there is neither a time nor a nonce: who sees a request on the
wire can send it again. Use TLS where that matters.
"""

from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import Body, RemotingCommand

if TYPE_CHECKING:
    import hmac

ACCESS_KEY: Final = "AccessKey"
SIGNATURE: Final = "Signature"
SECURITY_TOKEN: Final = "SecurityToken"

# RocketMQ: clients up to 4.9.3 added it after signing, servers 4.9.4 to 4.9.8 leave it out whoever asks.
_MAYBE_UNSIGNED: Final = "_UNIQUE_KEY_QUERY"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who signs; the secret is in no repr."""

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)


def signature_of(fields: Mapping[str, str], body: Body, secret: str, *, without: str | None = None) -> str:
    """The signature over all fields but Signature itself, and the body."""
    values = _values_of(fields) if without is None else [fields[key] for key in _in_order(fields) if key != without]
    code = _keyed(secret).copy()
    code.update("".join(values).encode("utf-8", "replace"))
    code.update(body)
    return b2a_base64(code.digest(), newline=False).decode()


@lru_cache(maxsize=1000)
def _keyed(secret: str) -> "hmac.HMAC":
    """Setting up the key costs more than signing a small message."""
    import hmac  # and OpenSSL with it, which clients without credentials do not load

    return hmac.new(secret.encode("utf-8", "replace"), digestmod="sha1")


def is_signed_with(request: RemotingCommand, secret: str) -> bool:
    """Whether a request bears the signature that this secret gives; takes as long when it is nearly right."""
    from hmac import compare_digest

    fields = request.ext_fields or {}
    claimed = fields.get(SIGNATURE)
    if claimed is None:
        return False
    given = claimed.encode("utf-8", "replace")
    if compare_digest(signature_of(fields, request.body, secret).encode(), given):
        return True
    if request.code != RequestCode.QUERY_MESSAGE or _MAYBE_UNSIGNED not in fields:
        return False
    other = signature_of(fields, request.body, secret, without=_MAYBE_UNSIGNED)
    return compare_digest(other.encode(), given)


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs requests: the last thing that is done to one before it leaves."""

    credentials: Credentials

    def __call__(self, command: RemotingCommand) -> None:
        """Add access key, token and signature to a request."""
        fields = command.ext_fields
        if fields is None:
            fields = command.ext_fields = {}
        fields[ACCESS_KEY] = self.credentials.access_key
        if self.credentials.security_token is not None:
            fields[SECURITY_TOKEN] = self.credentials.security_token
        fields[SIGNATURE] = signature_of(fields, command.body, self.credentials.secret_key)


_MAX_SHAPES: Final = 1000
_readers: dict[tuple[str, ...], Callable[[Mapping[str, str]], Sequence[str]]] = {}  # by the keys of a request


def _values_of(fields: Mapping[str, str]) -> Sequence[str]:
    """The values to sign. Requests have few sets of keys, so each is sorted once."""
    keys = tuple(fields)
    read = _readers.get(keys)
    if read is None:
        if len(_readers) >= _MAX_SHAPES:
            _readers.clear()
        read = _readers[keys] = _reader(_in_order(fields))
    return read(fields)


def _reader(keys: list[str]) -> Callable[[Mapping[str, str]], Sequence[str]]:
    if len(keys) > 1:
        return itemgetter(*keys)
    return lambda fields: [fields[key] for key in keys]


def _in_order(fields: Mapping[str, str]) -> list[str]:
    """As Java orders text: by UTF-16 units, which differs from Python's order beyond the basic plane only."""
    keys = [key for key in fields if key != SIGNATURE]
    if all(map(str.isascii, keys)):
        return sorted(keys)
    return sorted(keys, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
