"""Paths that may begin with `~`."""

from pathlib import Path

from skyrocket.errors import ConfigError


def in_home(path: str | Path) -> Path:
    """The path, with the home directory for its `~`; raises ConfigError where the system names none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{path} is below a home directory, and this user has none: set HOME, or name another place"
        ) from None
