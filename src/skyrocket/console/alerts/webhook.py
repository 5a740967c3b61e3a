"""Alerts as JSON, posted to an address."""

import urllib.request
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import orjson

from skyrocket.console.alerts.news import News

_SECONDS: Final = 5.0


def post(url: str, news: Sequence[News]) -> None:
    """All of it in one call; raises OSError or ValueError."""
    body = orjson.dumps({"alerts": [asdict(each) for each in news]})
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
        answer.read()
