"""Messages of other brokers that are to be revived here: wanted, fetched, or not to be had now."""

from collections.abc import Iterable
from typing import Final

from skyrocket.broker.rules.special_services import OtherBrokers, SpecialServices, Unreachable
from skyrocket.errors import DataError
from skyrocket.format.revive_log import CheckPointKey

_MOST_WANTED: Final = 256
_Place = tuple[CheckPointKey, int]


class ForeignRecords:
    """What the revive service asks for and gets at a later look."""

    def __init__(self, special: SpecialServices) -> None:
        self._special = special
        self._wanted: dict[_Place, None] = {}
        self._found: dict[_Place, bytes | None] = {}  # None: it is gone
        self._unreachable: set[_Place] = set()

    def has_all(self, key: CheckPointKey, offsets: Iterable[int]) -> bool:
        """Whether it is known what became of these messages; those of which it is not are asked for."""
        places = [(key, offset) for offset in offsets]
        lacking = [place for place in places if place not in self._found and place not in self._unreachable]
        self._wanted.update(dict.fromkeys(lacking[: max(_MOST_WANTED - len(self._wanted), 0)]))
        return not lacking

    def is_unreachable(self, key: CheckPointKey, offset: int) -> bool:
        """Whether nobody has answered."""
        return (key, offset) in self._unreachable

    def record(self, key: CheckPointKey, offset: int) -> memoryview:
        """A message that was fetched; raises DataError when it is gone."""
        found = self._found[key, offset]
        if found is None:
            raise DataError(f"broker {key.broker_name} has no such message any more")
        return memoryview(found)

    def forget(self, key: CheckPointKey, offset: int) -> None:
        """It is done."""
        self._found.pop((key, offset), None)
        self._unreachable.discard((key, offset))

    async def fetch(self) -> bool:
        """Ask for what is wanted; whether there was something."""
        wanted, self._wanted = self._wanted, {}
        for key, offset in wanted:
            await self._fetch(self._special.others, key, offset)
        return bool(wanted)

    async def _fetch(self, others: OtherBrokers | None, key: CheckPointKey, offset: int) -> None:
        try:
            if others is None:
                raise Unreachable("there are no name servers")
            self._found[key, offset] = await others.fetch(key.broker_name, key.topic, key.queue_id, offset)
        except Unreachable:
            self._unreachable.add((key, offset))
