"""Named clusters in a file, so that nobody types addresses and secrets: what `--context` means.

    current: staging
    contexts:
      production:
        namesrv: 10.0.0.1:9876;10.0.0.2:9876
        access_key: ops
        secret_key: …
        read_only: true

The file is `$SKYROCKET_CONTEXTS`, else `skyrocket/contexts.yml` in `$XDG_CONFIG_HOME` or `~/.config`. It may hold
secrets: only its owner may read it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from skyrocket.errors import ConfigError

FILES_OF_TLS: Final = frozenset({"tls_ca", "tls_cert", "tls_key"})

_OWNER_ONLY: Final = 0o600


@dataclass(frozen=True, slots=True)
class Context:
    """One cluster, and as whom; names are those of the options."""

    namesrv: str = ""
    access_key: str | None = None
    secret_key: str | None = None
    security_token: str | None = None
    namespace: str = ""
    tls: bool = False
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_insecure: bool = False
    read_only: bool = False  # commands that change something are refused


@dataclass(frozen=True, slots=True)
class Contexts:
    """All of a file."""

    by_name: Mapping[str, Context] = field(default_factory=dict)
    current: str | None = None

    def named(self, name: str) -> Context:
        """Raises ConfigError."""
        if name not in self.by_name:
            known = ", ".join(sorted(self.by_name)) or f"none in {contexts_path()}"
            raise ConfigError(f"there is no context {name!r}; there are {known}: `skyrocket context set {name} …`")
        return self.by_name[name]

    def with_one(self, name: str, context: Context) -> "Contexts":
        return replace(self, by_name={**self.by_name, name: context})

    def without(self, name: str) -> "Contexts":
        """Raises ConfigError."""
        self.named(name)
        left = {each: context for each, context in self.by_name.items() if each != name}
        return Contexts(left, None if self.current == name else self.current)


def contexts_path() -> Path:
    """Where the file is, or would be."""
    given = os.environ.get("SKYROCKET_CONTEXTS")
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    # A `~` stays where nobody has a home, as in containers that run under any number: then there is no such file.
    return Path(os.path.expanduser(given or f"{base}/skyrocket/contexts.yml"))  # noqa: PTH111 - Path's raises


def read_contexts() -> Contexts:
    """What the file says, or nothing without one; raises ConfigError."""
    path = contexts_path()
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return Contexts()
    except PermissionError:
        if "SKYROCKET_CONTEXTS" not in os.environ:
            return Contexts()  # a home that is another's, as after `sudo -u`, or none: its contexts are not ours
        raise ConfigError(f"{path} cannot be read: Permission denied") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as a file of contexts: {error}") from None
    import yaml  # here, because most commands have no file

    try:
        content = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} cannot be read as a file of contexts: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("contexts") or {}, dict):
        raise ConfigError(f"{path}: a file of contexts has `current: NAME` and `contexts:` with a name for each")
    named = {str(name): _context(path, str(name), given) for name, given in (content.get("contexts") or {}).items()}
    current = content.get("current")
    return Contexts(named, None if current is None else str(current))


def write_contexts(contexts: Contexts) -> Path:
    """Replace the file; raises ConfigError."""
    import yaml

    path = contexts_path()
    default = Context()
    named = {
        name: {
            each.name: value
            for each in fields(Context)
            if (value := getattr(context, each.name)) != getattr(default, each.name)
        }
        for name, context in sorted(contexts.by_name.items())
    }
    content: dict[str, Any] = {"current": contexts.current, "contexts": named}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yaml.safe_dump(content, file, sort_keys=False, allow_unicode=True)
        fresh.replace(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error}") from None
    return path


def _context(path: Path, name: str, given: Any) -> Context:
    kinds = {each.name: type(getattr(Context(), each.name)) for each in fields(Context)}
    if not isinstance(given, dict):
        raise ConfigError(f"{path}: context {name} has no settings; the first is namesrv: host:9876")
    for key, value in given.items():
        if key not in kinds:
            raise ConfigError(f"{path}: context {name} has {key!r}, which is not one of {', '.join(kinds)}")
        if (kinds[key] is bool) != isinstance(value, bool):
            raise ConfigError(
                f"{path}: {key} of context {name} is {value!r}, not {'true or false' if kinds[key] is bool else 'text'}"
            )
    checked: dict[str, Any] = {key: value if isinstance(value, bool) else str(value) for key, value in given.items()}
    return Context(**checked)
