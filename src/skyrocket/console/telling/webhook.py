"""What is told as JSON, posted to an address."""

import http.client
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_SECONDS: Final = 5.0
_SOME_BYTES: Final = 1 << 16


class _Here(urllib.request.HTTPRedirectHandler):
    """Elsewhere it would be asked for with GET, without what is to be told."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(_Here)


def post(url: str, name: str, told: "Sequence[DataclassInstance]") -> None:
    """All of it in one call, as {name: [...]}; raises OSError or ValueError."""
    body = orjson.dumps({name: [asdict(each) for each in told]})
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    try:
        with _OPENER.open(request, timeout=_SECONDS) as answer:
            answer.read1(_SOME_BYTES)  # its status counts, and nobody waits for a long answer
    except http.client.HTTPException as error:
        raise OSError(f"it does not speak HTTP: {error!r}") from error
