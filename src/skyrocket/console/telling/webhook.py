"""What is told as JSON, posted to an address."""

import urllib.request
from collections.abc import Sequence
from dataclasses import asdict
from http.client import HTTPException
from typing import TYPE_CHECKING, Final

import orjson

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_SECONDS: Final = 5.0


def post(url: str, name: str, told: "Sequence[DataclassInstance]") -> None:
    """All of it in one call, as {name: [...]}; raises OSError or ValueError."""
    body = orjson.dumps({name: [asdict(each) for each in told]})
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            answer.read()
    except HTTPException as error:  # which is neither: another program listens there
        raise OSError(f"it does not answer as HTTP does: {error!r}") from error
