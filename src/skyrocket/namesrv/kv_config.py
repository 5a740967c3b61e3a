"""Values by namespace and key, kept in `kvConfig.json`; one namespace says which topics are strictly ordered.

Every change is on disk before it is answered. Where the file is and what it looks like is the business of whoever
gives us the `KvFile`.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from skyrocket.protocol.errors import QueryNotFound, SystemFailure

ORDER_TOPICS: Final = "ORDER_TOPIC_CONFIG"
_MAX_LOGGED: Final = 4000


class KvFile(Protocol):
    """Where the values outlive the process."""

    def load(self) -> dict[str, dict[str, str]] | None: ...

    def save(self, content: dict[str, dict[str, str]]) -> None: ...


class KvConfig:
    """The values; a change that cannot be saved is not made."""

    def __init__(self, file: KvFile, max_bytes: int = 1 << 20) -> None:
        self._file = file
        self.max_bytes = max_bytes
        self._namespaces = file.load() or {}
        self.changes = 0

    def put(self, namespace: str, key: str, value: str | None) -> None:
        """Keep a value; raises SystemFailure when all are too large. RocketMQ: one without a value counts as absent."""
        if value is None:
            self.delete(namespace, key)
            return
        changed = {**self._namespaces, namespace: {**self._namespaces.get(namespace, {}), key: value}}
        size = _bytes_of(changed)
        if size > max(self.max_bytes, _bytes_of(self._namespaces)):
            raise SystemFailure(
                f"the KV values would have {size} bytes, {self.max_bytes} are allowed; maxKvConfigBytes sets the number"
            )
        self._save(changed)

    def delete(self, namespace: str, key: str) -> None:
        """Forget a value; the namespace stays, be it empty."""
        values = self._namespaces.get(namespace)
        if values is not None and key in values:
            self._save({**self._namespaces, namespace: {k: v for k, v in values.items() if k != key}})

    def get(self, namespace: str, key: str) -> str | None:
        """One value."""
        return self._namespaces.get(namespace, {}).get(key)

    def namespace(self, name: str) -> Mapping[str, str] | None:
        """All values of a namespace; None when it was never written."""
        return self._namespaces.get(name)

    def required(self, namespace: str, key: str) -> str:
        """One value; raises QueryNotFound."""
        value = self.get(namespace, key)
        if value is None:
            raise QueryNotFound(f"No config item, Namespace: {namespace} Key: {key}", {})
        return value

    def required_namespace(self, name: str) -> Mapping[str, str]:
        """All values of a namespace; raises QueryNotFound."""
        values = self.namespace(name)
        if values is None:
            raise QueryNotFound(f"No config item, Namespace: {name}")
        return values

    def describe(self) -> str:
        """For the log."""
        text = " ".join(
            f"{name}/{key}={value}" for name, values in self._namespaces.items() for key, value in values.items()
        )
        return text if len(text) <= _MAX_LOGGED else f"{text[:_MAX_LOGGED]}…"

    def _save(self, namespaces: dict[str, dict[str, str]]) -> None:
        self._file.save(namespaces)
        self._namespaces = namespaces
        self.changes += 1


def _bytes_of(namespaces: Mapping[str, Mapping[str, str]]) -> int:
    """About what the file has."""
    return sum(
        len(name.encode()) + sum(len(key.encode()) + len(value.encode()) + 6 for key, value in values.items())
        for name, values in namespaces.items()
    )
