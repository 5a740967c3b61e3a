"""Schemas by number and by subject, from a registry that speaks Confluent's API (Apicurio: `…/apis/ccompat/v7`).

What has a number never changes, so it is asked once per process. Nobody is asked but the address that was configured:
redirections are refused, as they would take the account elsewhere.
"""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from functools import lru_cache
from http.client import HTTPResponse
from typing import Any, Final

from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError, SkyrocketError

_TIMEOUT_SECONDS: Final = 10.0
_MOST_BYTES: Final = 8 * 1024 * 1024
_PIECE_BYTES: Final = 64 * 1024
_ACCEPTED: Final = "application/vnd.schemaregistry.v1+json, application/json"


class RegistryError(SkyrocketError):
    """The registry does not answer, or does not know what was asked for."""


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Makes it an HTTPError."""


_opener: Final = urllib.request.build_opener(_NoRedirection)


@lru_cache(maxsize=1000)
def schema_text(registry: str, number: int) -> str:
    """The schema of this number; raises RegistryError."""
    return str(_asked(registry, f"schemas/ids/{number}")["schema"])


def numbered_schema(registry: str, number: int) -> dict[str, Any]:
    """`schema`, `schemaType` (AVRO when there is none) and `references` of a number; raises RegistryError."""
    return _asked(registry, f"schemas/ids/{number}")


def serialized_number(registry: str, number: int) -> dict[str, Any]:
    """The same of Protobuf, as descriptors where the registry can give them: of other types it may refuse to."""
    return _asked(registry, f"schemas/ids/{number}?format=serialized")


def versioned_schema(registry: str, subject: str, version: str) -> dict[str, Any]:
    """A version of a subject, as the registry has it; raises RegistryError."""
    return _asked(registry, f"subjects/{urllib.parse.quote(subject, safe='')}/versions/{version}")


def latest_schema(registry: str, subject: str) -> str:
    """The newest schema of a subject; raises RegistryError."""
    return str(versioned_schema(registry, subject, "latest")["schema"])


def serialized_schema(registry: str, subject: str, version: str) -> dict[str, Any]:
    """A schema of Protobuf, as descriptors where the registry can give them; raises RegistryError."""
    name = urllib.parse.quote(subject, safe="")
    return _asked(registry, f"subjects/{name}/versions/{version}?format=serialized")


def _asked(registry: str, path: str) -> dict[str, Any]:
    if urllib.parse.urlsplit(registry).scheme not in ("http", "https"):
        raise ConfigError(f"registry {registry!r} is no address: write it as http://host:8081")
    place, headers = _without_account(registry)
    address = f"{place.rstrip('/')}/{path}"
    try:
        request = urllib.request.Request(address, headers={"Accept": _ACCEPTED, **headers})
        with _opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
            found = json.loads(_whole(answer))
        if not isinstance(found, dict) or "schema" not in found:
            raise ValueError("its answer has no schema")
    except urllib.error.HTTPError as error:
        raise RegistryError(f"{address}: {error.code} {error.reason}; check the subject and the registry") from error
    except (OSError, ValueError) as error:
        why = error.reason if isinstance(error, urllib.error.URLError) else error
        raise RegistryError(f"{address} cannot be asked: {why}; check that the registry runs") from error
    return found


def without_account(registry: str) -> str:
    """The address as it may be shown."""
    return _without_account(registry)[0]


def _whole(answer: HTTPResponse) -> bytes:
    """The body, of a bounded length and within a bounded time, however slowly it drips."""
    deadline, pieces, size = SystemClock.monotonic() + _TIMEOUT_SECONDS, [], 0
    while piece := answer.read1(_PIECE_BYTES):
        pieces.append(piece)
        size += len(piece)
        if size > _MOST_BYTES:
            raise ValueError(f"its answer is longer than {_MOST_BYTES:,} bytes")
        if SystemClock.monotonic() > deadline:
            raise ValueError(f"its answer has no end after {_TIMEOUT_SECONDS:.0f} s")
    return b"".join(pieces)


def _without_account(registry: str) -> tuple[str, dict[str, str]]:
    """The address, and what `http://user:password@host` says about who asks; errors show the first alone."""
    parts = urllib.parse.urlsplit(registry)
    account, at, host = parts.netloc.rpartition("@")
    if not at:
        return registry, {}
    token = base64.b64encode(urllib.parse.unquote(account).encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {token}"}
