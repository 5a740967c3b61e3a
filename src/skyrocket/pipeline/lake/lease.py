"""Who writes a lake where there are no locks: a small file says who, and until when; it is written again and again.

A writer that dies keeps others waiting until its lease ends. Clocks of machines that write one lake may differ by less
than a lease lasts.
"""

import json
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from pyarrow import fs

from skyrocket.clock import SystemClock
from skyrocket.pipeline.file_systems import replace_at
from skyrocket.pipeline.lake.files import LakeBusy

_logger = logging.getLogger(__name__)

LEASE_SECONDS: Final = 120.0
RENEWED_AFTER_SECONDS: Final = 30.0


@contextmanager
def leased(
    files: fs.FileSystem, path: str, name: str, seconds: float = LEASE_SECONDS, renewed: float = RENEWED_AFTER_SECONDS
) -> Iterator[Callable[[], None]]:
    """Hold the lease; what is given raises LakeBusy when somebody else has it. Raises LakeBusy."""
    me = f"{socket.gethostname()} process {os.getpid()} {secrets.token_hex(4)}"

    def write() -> None:
        until_ms = SystemClock().now_ms() + round(seconds * 1000)
        replace_at(files, path, json.dumps({"owner": me, "untilMs": until_ms}).encode())

    def check() -> None:
        _refuse_other(_read(files, path), me, path, name)

    check()
    write()
    check()  # of two who came at the same time the last one has it
    is_over = threading.Event()
    keeper = threading.Thread(target=_keep, args=(write, check, is_over, renewed), name="lake-lease", daemon=True)
    keeper.start()
    try:
        yield check
    finally:
        is_over.set()
        keeper.join(seconds)
        if (_read(files, path) or {}).get("owner") == me:
            files.delete_file(path)


def _keep(write: Callable[[], None], check: Callable[[], None], is_over: threading.Event, renewed: float) -> None:
    while not is_over.wait(renewed):
        try:
            check()
            write()
        except LakeBusy:
            return  # the writer hears it before it publishes
        except Exception as error:  # noqa: BLE001 - whatever the system raises: there is time for more attempts
            _logger.warning("the lease of a lake could not be renewed error=%s", error)


def _read(files: fs.FileSystem, path: str) -> dict[str, Any] | None:
    if files.get_file_info(path).type == fs.FileType.NotFound:
        return None
    with files.open_input_stream(path) as stream:
        told = json.loads(bytes(stream.read()))
    return told if isinstance(told, dict) else None


def _refuse_other(lease: dict[str, Any] | None, me: str, path: str, name: str) -> None:
    if lease is None or lease["owner"] == me or lease["untilMs"] < SystemClock().now_ms():
        return
    until = datetime.fromtimestamp(lease["untilMs"] / 1000, UTC)
    raise LakeBusy(
        f"another process ({lease['owner']}) writes the records of {name} into this lake until {until:%H:%M:%S} UTC or "
        f"longer; wait for it, or stop it (its lease: {path})"
    )
