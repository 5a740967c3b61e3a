"""`tls.properties`: certificates and keys in a file of their own, as RocketMQ reads it.

What the file says counts more than what was said elsewhere. The mode is not read from it: RocketMQ takes that from the
command line alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from skyrocket.config.sections import TlsConfig
from skyrocket.config.sources import keys_of, read_conf
from skyrocket.errors import ConfigError

FILE_KEY: Final = "tls.config.file"
_NOT_FROM_FILE: Final = frozenset({FILE_KEY, "tls.server.mode"})


def with_tls_file(pairs: Mapping[str, str]) -> dict[str, str]:
    """The settings with those of the file; the usual file need not exist, one that was named must."""
    named = pairs.get(FILE_KEY)
    path = Path(named if named is not None else TlsConfig().config_file).expanduser()
    if not path.exists():
        if named:
            raise ConfigError(f"{FILE_KEY}={named}: there is no such file. Give the path of a tls.properties")
        return dict(pairs)
    known = keys_of(TlsConfig) - _NOT_FROM_FILE
    return dict(pairs) | {key: value for key, value in read_conf(path).items() if key in known}
