"""Values by namespace and key, kept in `kvConfig.json`; one namespace says which topics are strictly ordered.

Every change is on disk before it is answered. Where the file is and what it looks like is the business of whoever
gives us the `KvFile`.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from skyrocket.protocol.errors import QueryNotFound

ORDER_TOPICS: Final = "ORDER_TOPIC_CONFIG"


class KvFile(Protocol):
    """Where the values outlive the process."""

    def load(self) -> dict[str, dict[str, str]] | None: ...

    def save(self, content: dict[str, dict[str, str]]) -> None: ...


class KvConfig:
    """The values; a change that cannot be saved is not made."""

    def __init__(self, file: KvFile) -> None:
        self._file = file
        self._namespaces = file.load() or {}
        self.changes = 0

    def put(self, namespace: str, key: str, value: str | None) -> None:
        """Keep a value. RocketMQ: one without a value counts as absent."""
        if value is None:
            self.delete(namespace, key)
            return
        self._save({**self._namespaces, namespace: {**self._namespaces.get(namespace, {}), key: value}})

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
        return " ".join(
            f"{name}/{key}={value}" for name, values in self._namespaces.items() for key, value in values.items()
        )

    def _save(self, namespaces: dict[str, dict[str, str]]) -> None:
        self._file.save(namespaces)
        self._namespaces = namespaces
        self.changes += 1
