"""A schema registry for tests: answers as Confluent's does, over HTTP on a free port."""

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


@contextlib.contextmanager
def schema_registry(
    answers: Mapping[str, Any], accounts: Mapping[str, str] | None = None, asked: list[str] | None = None
) -> Iterator[str]:
    """Its address. `accounts`: beginning of a path ▸ the Authorization that it needs; `asked` gets all paths."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if asked is not None:
                asked.append(self.path)
            found = answers.get(self.path)
            if any(
                self.path.startswith(begin) and self.headers["Authorization"] != account
                for begin, account in (accounts or {}).items()
            ):
                found = None
            if isinstance(found, str):
                self.send_response(302)
                self.send_header("Location", found)
                self.end_headers()
                return
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(json.dumps(found or {"error_code": 40401}).encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join(10)
        server.server_close()
