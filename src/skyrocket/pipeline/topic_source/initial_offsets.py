"""Where a stream began, kept in a file.

Spark asks a source twice where it begins, and writes only the end of the first batch down: `latest`, asked again after
a crash, would be another place, and what lies between is lost without a word. So the first answer is written before it
is given, and is the answer ever after. Two writers at once agree: the file is linked into place, and whoever comes
second reads it.
"""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlparse

from skyrocket.pipeline.durable_files import create_file
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.topic_source.offsets import BadOffsets, Offsets, as_text, flat


def local_path(location: str) -> Path:
    """The path of a location on a POSIX file system; raises OptionError for others."""
    parsed = urlparse(location)
    if parsed.scheme in ("", "file") and parsed.netloc in ("", "localhost"):
        return Path(unquote(parsed.path) if parsed.scheme else location)
    raise OptionError(
        f'option "initialOffsetsLocation" is "{location}": the file must lie on a file system that the driver mounts; '
        "give such a path, or say startingOffsets as earliest or JSON, which needs no file"
    )


def remembered(location: str, resolve: Callable[[], Offsets]) -> Offsets:
    """The offsets of the file; the first time they are resolved and written. Raises OptionError."""
    path = local_path(location)
    known = _read(path)
    if known is not None:
        return known
    found = resolve()
    try:
        create_file(path, f"{as_text(found)}\n".encode())
    except OSError as error:
        raise OptionError(f'option "initialOffsetsLocation": {path} cannot be written: {error.strerror}') from error
    written = _read(path)
    assert written is not None
    return written


def _read(path: Path) -> Offsets | None:
    try:
        return flat(json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, BadOffsets) as error:
        raise OptionError(
            f"{path} says where the stream began and cannot be read: {error}; with a new checkpoint it may be removed"
        ) from error
