"""The files of the pages, read once, and the document that every page begins with.

A browser that has never been here paints after one answer: style sheets and the choice of dark or light stand in the
document, and the Content-Security-Policy names their hashes. Modules lie under an address that changes with them, so
that browsers keep them and a new release shows at once.
"""

import base64
import gzip
import hashlib
import mimetypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

_STATIC: Final = Path(__file__).parent.parent / "static"
_SHEET: Final = re.compile(r'<link rel="stylesheet" href="/static/([^"]+)">')
_SCRIPT: Final = re.compile(r'<script src="/static/([^"]+)"></script>')
_KEPT: Final = "public, max-age=31536000, immutable"
_ASKED_AGAIN: Final = "no-cache"
_WORTH_PACKING: Final = 512  # bytes; below, headers are most of an answer


@dataclass(frozen=True, slots=True)
class _File:
    plain: bytes
    packed: bytes
    media_type: str
    tag: str

    @classmethod
    def of(cls, data: bytes, media_type: str) -> "_File":
        tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        return cls(data, gzip.compress(data, mtime=0) if len(data) > _WORTH_PACKING else data, media_type, tag)

    def answer(self, request: Request, caching: str) -> Response:
        headers = {"Cache-Control": caching, "ETag": self.tag, "Vary": "Accept-Encoding"}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if self.packed is not self.plain and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=self.media_type)
        return Response(self.plain, headers=headers, media_type=self.media_type)


class Files:
    """All of them; `release` is their common address, `inline_hashes` what a policy must allow beside them."""

    def __init__(self) -> None:
        found = {
            path.relative_to(_STATIC).as_posix(): path.read_bytes()
            for path in sorted(_STATIC.rglob("*"))
            if path.is_file()
        }
        self.release = f"/static/{_digest(found)}"
        self._files = {name: _File.of(data, _media_type(name)) for name, data in found.items()}
        self.inline_hashes: list[str] = []
        self._document = _File.of(self._written(found).encode(), "text/html")

    async def document(self, request: Request) -> Response:
        """Every address of a page gives the same one; its script shows what the address names."""
        return self._document.answer(request, _ASKED_AGAIN)

    async def kept(self, request: Request) -> Response:
        """Under the address of this release."""
        return self._answer(request, _KEPT)

    async def asked_again(self, request: Request) -> Response:
        """Under an address that stays the same."""
        return self._answer(request, _ASKED_AGAIN)

    def _answer(self, request: Request, caching: str) -> Response:
        file = self._files.get(request.path_params["path"])
        return Response("there is no such file\n", 404) if file is None else file.answer(request, caching)

    def _written(self, found: Mapping[str, bytes]) -> str:
        def inline(kind: str, name: str) -> str:
            text = found[name].decode()
            self.inline_hashes.append(f"'sha256-{base64.b64encode(hashlib.sha256(found[name]).digest()).decode()}'")
            return f"<{kind}>{text}</{kind}>"

        text = found["index.html"].decode()
        text = _SHEET.sub(lambda match: inline("style", match[1]), text)
        text = _SCRIPT.sub(lambda match: inline("script", match[1]), text)
        return text.replace('"/static/', f'"{self.release}/')


def _digest(found: Mapping[str, bytes]) -> str:
    whole = hashlib.sha256()
    for name, data in found.items():
        whole.update(name.encode() + data)
    return whole.hexdigest()[:16]


def _media_type(name: str) -> str:
    # The machine's own table may call scripts something that browsers refuse.
    return "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "application/octet-stream"
