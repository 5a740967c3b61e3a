"""Is it alive, and may work be given to it?"""

import json
from collections.abc import Callable, Mapping

from skyrocket.observability.http_endpoint import Page

Check = Callable[[], str | None]  # why not; None: all is well


def alive() -> Page:
    """The event loop answers: that is all there is to it."""
    return _page(200, {"status": "alive"})


def readiness(checks: Mapping[str, Check]) -> Page:
    """200 when all checks pass, otherwise 503 and the reasons."""
    reasons = {name: reason for name, check in checks.items() if (reason := check()) is not None}
    if reasons:
        return _page(503, {"status": "not ready", "reasons": reasons})
    return _page(200, {"status": "ready"})


def _page(status: int, content: Mapping[str, object]) -> Page:
    return Page(status, "application/json", json.dumps(content).encode() + b"\n")
