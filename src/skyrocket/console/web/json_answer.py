"""An answer in JSON that no browser keeps."""

from typing import Any

import orjson
from starlette.responses import Response


def json_answer(value: Any, status: int = 200) -> Response:
    """Dataclasses are objects; keys that are numbers become texts."""
    return Response(
        orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS),
        status,
        {"Cache-Control": "no-store"},
        "application/json",
    )
