"""Where a stream began, kept in a file.

Spark asks a source twice where it begins, and writes only the end of the first batch down: `latest`, asked again after
a crash, would be another place, and what lies between is lost without a word. So the first answer is written before it
is given, and is the answer ever after. Two writers at once agree: the file is linked into place, and whoever comes
second reads it (but for object stores, which cannot tell two writers apart: there the last one counts).
"""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlparse

from skyrocket.pipeline.durable_files import create_file
from skyrocket.pipeline.file_systems import create_remote_file, is_remote, read_remote_file
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.topic_source.offsets import BadOffsets, Offsets, as_text, flat


def local_path(location: str) -> Path:
    """The path of a location on this machine: as it is, or as a URI; raises OptionError for one of another machine."""
    parsed = urlparse(location)
    if parsed.scheme and parsed.netloc not in ("", "localhost"):
        raise OptionError(
            f"{location} names the machine {parsed.netloc}, and a file: location is read on this one: write "
            f"file://{parsed.path} for a path of this machine, or a location that all machines reach (hdfs://, s3a://)"
        )
    return Path(unquote(parsed.path) if parsed.scheme else location)


def remembered(location: str, resolve: Callable[[], Offsets]) -> Offsets:
    """The offsets of the file; the first time they are resolved and written. Raises OptionError."""
    if not is_remote(location):
        local_path(location)  # refused before anything is asked
    known = _read(location)
    if known is not None:
        return known
    _write(location, f"{as_text(resolve())}\n".encode())
    written = _read(location)
    assert written is not None
    return written


def _write(location: str, data: bytes) -> None:
    try:
        if is_remote(location):
            create_remote_file(location, data)
        else:
            create_file(local_path(location), data)
    except Exception as error:  # every file system has errors of its own
        raise _refused(location, error) from error


def _read(location: str) -> Offsets | None:
    try:
        if is_remote(location):
            text = read_remote_file(location)
        else:
            path = local_path(location)
            text = path.read_bytes() if path.exists() else None
    except Exception as error:
        raise _refused(location, error) from error
    try:
        return None if text is None else flat(json.loads(text))
    except (ValueError, BadOffsets) as error:
        raise OptionError(
            f"{location} says where the stream began and cannot be read: {error}; "
            "with a new checkpoint it may be removed"
        ) from error


def _refused(location: str, error: Exception) -> OptionError:
    return OptionError(
        f'option "initialOffsetsLocation": {location} cannot be used: {" ".join(str(error).split())}; '
        "give a checkpoint that the driver can write, or say startingOffsets as earliest or JSON, which needs no file"
    )
