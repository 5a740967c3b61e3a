"""SkyrocketError and its few families: what went wrong, where, and what to do next.

`DataError`: bytes from disk or wire are not what they must be. `StoreError`: the store refuses or cannot go on.
`ConfigError`: a setting or a file of settings is wrong. Our own bugs are asserts, never these.
"""

from os import PathLike


class SkyrocketError(Exception):
    """Base of everything that Skyrocket raises on purpose."""


class ConfigError(SkyrocketError):
    """A setting is unknown or out of bounds."""


class DataError(SkyrocketError):
    """Bytes are not what their format says."""


class CorruptRecord(DataError):
    """A commit-log record fails its checks at a known place."""

    def __init__(
        self, reason: str, physical_offset: int | None = None, path: PathLike[str] | str | None = None
    ) -> None:
        self.reason = reason
        self.physical_offset = physical_offset
        self.path = path
        place = f" in {path}" if path is not None else ""
        where = f" at physical offset {physical_offset}" if physical_offset is not None else ""
        super().__init__(f"damaged record{where}{place}: {reason}")


class CorruptFile(DataError):
    """A store file cannot be used; the text names the file, the place and the remedy."""

    def __init__(self, path: PathLike[str] | str, reason: str, remedy: str, position: int | None = None) -> None:
        self.path = path
        self.reason = reason
        self.remedy = remedy
        self.position = position
        where = f" at byte {position}" if position is not None else ""
        super().__init__(f"{path}{where}: {reason}. {remedy}")


class StoreError(SkyrocketError):
    """The store refuses an operation or cannot continue."""


class StoreLocked(StoreError):
    """Another process holds the store directory."""


class StoreClosed(StoreError):
    """The store was closed, or was never opened."""


class StoreFailed(StoreError):
    """A write or flush failed; the store takes no more writes until it is reopened."""


class MessageRefused(SkyrocketError, ValueError):
    """A message cannot be encoded: some part is too long or of the wrong kind."""
