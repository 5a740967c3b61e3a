"""Where settings come from: a RocketMQ `.conf` file, the environment, the command line; later wins.

    pairs = gather([NameServerConfig], conf=path, environment=os.environ, prefix="SKYROCKET_NAMESRV_", options={…})
    config = section_from(NameServerConfig, pairs, allow_unknown=True)
    for warning in unknown_settings(pairs, [NameServerConfig], NAME_SERVER_KEYS): ...

A `.conf` is a Java properties file. It may hold keys of parts that we build differently: those that RocketMQ knows are
taken without a word, so that its files start us unchanged; others are named with their nearest neighbour.
"""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final

from skyrocket.config.sections import TlsConfig
from skyrocket.config.sections.setting import nearest
from skyrocket.errors import ConfigError

_SPACE: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.|$)", re.DOTALL)
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[.\-]")


def gather(
    sections: Sequence[type],
    *,
    conf: Path | None = None,
    environment: Mapping[str, str] | None = None,
    prefix: str = "SKYROCKET_",
    options: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Text values by RocketMQ's keys; of the environment only what belongs to the sections."""
    return (
        (read_conf(conf) if conf is not None else {})
        | _from_environment(sections, environment or {}, prefix)
        | dict(options or {})
    )


def read_conf(path: Path) -> dict[str, str]:
    """The pairs of a properties file; raises ConfigError when it cannot be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. Give the path of a readable .conf file") from error
    return parse_properties(_decoded(data), str(path))


def parse_properties(text: str, place: str = "properties") -> dict[str, str]:
    """The pairs of a text in the syntax of java.util.Properties; of equal keys the last counts."""
    pairs: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key, value = _split(line)
        try:
            pairs[_unescaped(key)] = _unescaped(value)
        except ValueError:
            raise ConfigError(f"{place}, line {number}: \\u must be followed by four hexadecimal digits") from None
    return pairs


def properties_text(pairs: Mapping[str, str]) -> str:
    """`key=value` lines in the order of the keys, as RocketMQ shows settings; the opposite of `parse_properties`."""
    return "".join(f"{_escaped(key, ' =:#!')}={_escaped(value)}\n" for key, value in sorted(pairs.items()))


def pairs_of(section: Any) -> dict[str, str]:
    """A section as text values by RocketMQ's keys."""
    return {f.metadata["key"]: text_of(getattr(section, f.name)) for f in dataclasses.fields(section)}


SECRET_SHOWN: Final = "******"


def shown_pairs_of(section: Any) -> dict[str, str]:
    """The settings as they may be shown: secrets are covered, empty ones stay empty."""
    secrets = secret_keys_of(type(section))
    pairs = pairs_of(section)
    return {key: SECRET_SHOWN if key in secrets and value else value for key, value in pairs.items()}


def secret_keys_of(section: type) -> set[str]:
    """Keys whose values are shown to nobody."""
    return {field.metadata["key"] for field in dataclasses.fields(section) if field.metadata.get("secret")}


def keys_of(section: type) -> set[str]:
    """RocketMQ's keys of a section."""
    return {field.metadata["key"] for field in dataclasses.fields(section)}


def unknown_settings(pairs: Mapping[str, str], sections: Sequence[type], accepted: Collection[str] = ()) -> list[str]:
    """A sentence for every key that neither we nor RocketMQ know."""
    known = set().union(*map(keys_of, sections))
    unknown = (key for key in pairs if key not in known and key not in accepted)
    return [f"unknown setting {key!r} has no effect{nearest(key, known)}" for key in unknown]


def environment_name(key: str, prefix: str = "SKYROCKET_") -> str:
    """`listenPort` → `SKYROCKET_LISTEN_PORT`."""
    return prefix + _WORD_START.sub("_", key).upper()


def _from_environment(sections: Sequence[type], environment: Mapping[str, str], prefix: str) -> dict[str, str]:
    keys = sorted(set().union(*map(keys_of, sections)))
    names = {environment_name(key, prefix): key for key in keys}
    return {key: environment[name] for name, key in names.items() if name in environment}


def text_of(value: Any) -> str:
    """A value as it stands in a .conf file."""
    if isinstance(value, Enum):
        return str(value.value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # what Java takes every properties file for


# ── the syntax of java.util.Properties ───────────────────────────────────────────────────────────────────────────────


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations and the number of the first; comments and blank lines are left out."""
    whole, start = "", 0
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = natural.lstrip(_SPACE)
        if not start:
            if not line or line[0] in "#!":
                continue
            start = number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            whole += line[:-1]
            continue
        yield start, whole + line
        whole, start = "", 0
    if start:
        yield start, whole


def _split(line: str) -> tuple[str, str]:
    """The key ends at the first `=`, `:` or blank that is not escaped."""
    at = 0
    while at < len(line) and line[at] not in "=:" + _SPACE:
        at += 2 if line[at] == "\\" else 1
    value = line[at:].lstrip(_SPACE)
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(_SPACE)
    return line[:at], value


def _escaped(text: str, special: str = "") -> str:
    for sign in "\\" + special:
        text = text.replace(sign, "\\" + sign)
    if text[:1] == " ":
        text = "\\" + text
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r").replace("\f", "\\f")


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_meant, text) if "\\" in text else text


def _meant(match: re.Match[str]) -> str:
    sign = match[1]
    if sign == "u":
        raise ValueError
    return chr(int(sign[1:], 16)) if len(sign) == 5 else _ESCAPES.get(sign, sign)


FILE_KEY: Final = "tls.config.file"
# RocketMQ: the mode comes from the command line alone.
_NOT_FROM_FILE: Final = frozenset({FILE_KEY, "tls.server.mode"})


def with_tls_file(pairs: Mapping[str, str]) -> dict[str, str]:
    """The settings with those of `tls.properties`; the usual file need not exist, one that was named must.

    What the file says counts more than what was said elsewhere.
    """
    named = pairs.get(FILE_KEY)
    path = Path(named if named is not None else TlsConfig().config_file).expanduser()
    if not path.exists():
        if named:
            raise ConfigError(f"{FILE_KEY}={named}: there is no such file. Give the path of a tls.properties")
        return dict(pairs)
    known = keys_of(TlsConfig) - _NOT_FROM_FILE
    return dict(pairs) | {key: value for key, value in read_conf(path).items() if key in known}
