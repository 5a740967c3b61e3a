"""What a job is doing while nothing is to be seen: on a terminal a line that goes again, elsewhere lines that stay.

On stderr: stdout is for results.
"""

import contextlib
import sys
from collections.abc import Iterator

from rich.console import Console

from skyrocket.clock import Clock, SystemClock


@contextlib.contextmanager
def phase(
    owner: str, doing: str, done: str, *, terminal: bool | None = None, clock: Clock | None = None
) -> Iterator[None]:
    """`owner: doing` at the beginning and `owner: done after 6.3 s` at the end; nothing more is said after an error."""
    clock = clock or SystemClock()
    began = clock.monotonic()
    if sys.stderr.isatty() if terminal is None else terminal:
        with Console(stderr=True).status(f"{owner}: {doing} …"):
            yield
        return
    print(f"{owner}: {doing} …", file=sys.stderr, flush=True)  # noqa: T201 - what the user waits for, not a log
    yield
    print(f"{owner}: {done} after {clock.monotonic() - began:.1f} s", file=sys.stderr, flush=True)  # noqa: T201
