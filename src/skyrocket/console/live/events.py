"""Server-sent events: the text of one, and an answer made of many."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
from starlette.responses import StreamingResponse

KEEP_ALIVE = b": still there\n\n"


def event(name: str, value: Any) -> bytes:
    """JSON has no line breaks of its own, so one line carries it."""
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(value) + b"\n\n"


def streamed(events: AsyncIterator[bytes]) -> StreamingResponse:
    """No proxy may keep it back."""
    return StreamingResponse(
        events, media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
