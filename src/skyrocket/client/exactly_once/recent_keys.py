"""The last keys that were done, in memory: most repetitions come soon after the first."""

import threading
from collections import OrderedDict


class RecentKeys:
    """At most `most` keys; those that were not asked for longest go first. For all threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: tuple[str, str]) -> bool:
        with self._lock:
            if key not in self._keys:
                return False
            self._keys.move_to_end(key)
            return True

    def add(self, key: tuple[str, str]) -> None:
        with self._lock:
            self._keys[key] = None
            self._keys.move_to_end(key)
            while len(self._keys) > self._most:
                self._keys.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._keys.clear()
