"""The description of all endpoints, in the words of OpenAPI 3.1, made from their types."""

import dataclasses
import inspect
import re
from collections.abc import Sequence
from typing import Any, get_type_hints

from skyrocket import __version__
from skyrocket.console.api.endpoint import JSON, Endpoint
from skyrocket.console.api.values import is_required, schema
from skyrocket.console.telling.told_error import Error

_NAMES = re.compile(r"{(\w+)(?::\w+)?}")

# The one endpoint that is no function with types: it follows the others.
_LIVE = {
    "tags": ["Live"],
    "operationId": "live",
    "summary": "Follow a GET: `answer` events with what it answers, when that has changed; `trouble` while it cannot.",
    "parameters": [
        {
            "name": "of",
            "in": "query",
            "required": True,
            "schema": {"type": "string"},
            "example": "/api/groups?sort=-lag",
        }
    ],
    "responses": {
        "200": {"description": "Events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
        "default": {
            "description": "Why not.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        },
    },
}


def description(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The whole document."""
    known: dict[str, Any] = {}
    schema(Error, known)
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        path = _NAMES.sub(lambda match: f"{{{match[1]}}}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, known)
    paths["/api/live"] = {"get": _LIVE}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Skyrocket console",
            "version": __version__,
            "description": "Every number of a page comes from here. GET /api/live?of=… follows any GET as server-sent "
            "events. Changes need the session's cookie and its csrf in the header X-Skyrocket-Csrf, or a token of the "
            "page Access as Authorization: Bearer ….",
        },
        "paths": paths,
        "components": {"schemas": known},
    }


def _operation(endpoint: Endpoint, known: dict[str, Any]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": match[1], "in": "path", "required": True, "schema": {"type": "string"}}
        for match in _NAMES.finditer(endpoint.path)
    ]
    operation: dict[str, Any] = {
        "tags": [endpoint.family],
        "operationId": endpoint.handler.__name__,
        "summary": (inspect.getdoc(endpoint.handler) or "").split("\n")[0],
        "parameters": parameters,
        "responses": {
            "200": _content(schema(endpoint.answer, known), "The answer.", endpoint.media),
            "default": _content({"$ref": "#/components/schemas/Error"}, "Why not."),
        },
    }
    if endpoint.wanted is not None and endpoint.changes:
        operation["requestBody"] = _content(schema(endpoint.wanted, known), "What is wanted.")
    elif endpoint.wanted is not None:
        hints = get_type_hints(endpoint.wanted)
        parameters += [
            {
                "name": field.name,
                "in": "query",
                "required": is_required(field),
                "schema": schema(hints[field.name], known),
            }
            for field in dataclasses.fields(endpoint.wanted)
        ]
    return operation


def _content(of: dict[str, Any], says: str, media: Sequence[str] = JSON) -> dict[str, Any]:
    return {"description": says, "content": {each: {"schema": of} for each in media}}
