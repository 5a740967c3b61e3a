"""What operators allow, kept in `quotas.json`: a file of our own, RocketMQ has no quotas."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.clock import Clock
from skyrocket.format.config_files import JsonFile
from skyrocket.model.data_version import DataVersion
from skyrocket.model.quota import ACCOUNT, EVERYBODY, NAMESPACE, NO_LIMIT, SUBJECTS, wrong_quota
from skyrocket.protocol.errors import InvalidParameter
from skyrocket.store.config_file import ConfigFile

MOST_QUOTAS: Final = 1000  # each has a line in the metrics

Limits = dict[str, int]


@dataclass(frozen=True, slots=True)
class Quotas:
    """Content of the file: limits by kind, of accounts and of namespaces."""

    data_version: DataVersion = field(default_factory=DataVersion)
    accounts: Annotated[dict[str, dict[str, int]], "accounts"] = field(default_factory=dict)
    namespaces: Annotated[dict[str, dict[str, int]], "namespaces"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


QUOTAS = JsonFile(Quotas)


class QuotaTable(SavedTable[Quotas]):
    """Limits of accounts and namespaces by name."""

    def __init__(self, file: ConfigFile[Quotas], clock: Clock) -> None:
        super().__init__(file, clock, save_at_once=False)
        self._unknown: Mapping[str, Any] = {}
        self._limits: dict[str, dict[str, Limits]] = {subject: {} for subject in SUBJECTS}

    def __len__(self) -> int:
        return sum(map(len, self._limits.values()))

    def content(self) -> Quotas:
        accounts, namespaces = ({name: dict(each) for name, each in self._limits[of].items()} for of in SUBJECTS)
        return Quotas(self.data_version, accounts, namespaces, self._unknown)

    def _take(self, content: Quotas) -> None:
        """A kind that a newer release has written is not enforced here, so it is not taken; nor what cannot be."""
        self.data_version = content.data_version
        self._unknown = content.unknown
        for subject, told in ((ACCOUNT, content.accounts), (NAMESPACE, content.namespaces)):
            of_subject = self._limits[subject] = {}
            for name, limits in told.items():
                known = {
                    kind: limit
                    for kind, limit in limits.items()
                    if limit != NO_LIMIT and wrong_quota(subject, name, {kind: limit}) is None
                }
                if known:
                    of_subject[name] = known

    def of(self, subject: str) -> Mapping[str, Limits]:
        """All limits of one kind of subject."""
        return self._limits[subject]

    def counting_for(self, subject: str, name: str) -> Limits | None:
        """The limits that hold for a name: its own, or else those of everybody."""
        of_subject = self._limits[subject]
        return of_subject.get(name) or of_subject.get(EVERYBODY)

    def set(self, subject: str, name: str, changed: Limits) -> None:
        """Change limits; those that are not named stay. Raises InvalidParameter."""
        wrong = wrong_quota(subject, name, changed)
        if wrong is not None:
            raise InvalidParameter(wrong)
        of_subject = self._limits[subject]
        if name not in of_subject and len(self) >= MOST_QUOTAS:
            raise InvalidParameter(f"there are {MOST_QUOTAS} quotas already: remove some, or set one for * instead")
        limits = {**of_subject.get(name, {}), **changed}
        limits = {kind: limit for kind, limit in limits.items() if limit != NO_LIMIT}
        if limits:
            of_subject[name] = limits
        else:
            of_subject.pop(name, None)
        self._changed()

    def remove(self, subject: str, name: str) -> bool:
        """Forget all limits of a name; False when there were none."""
        if self._limits.get(subject, {}).pop(name, None) is None:
            return False
        self._changed()
        return True
