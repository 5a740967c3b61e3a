"""Texts of one length, back to back: cut when somebody asks for one."""

from collections.abc import Sequence
from typing import overload

import numpy as np

from skyrocket.format.dtypes import Bytes


class EvenTexts(Sequence[bytes]):
    """A sequence of them."""

    __slots__ = ("_count", "joined", "length")

    def __init__(self, joined: bytes, length: int, count: int) -> None:
        assert len(joined) == length * count
        self.joined = joined
        self.length = length
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> list[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | list[bytes]:
        length, joined = self.length, self.joined
        if isinstance(at, slice):
            return [joined[each * length : (each + 1) * length] for each in range(self._count)[at]]
        each = range(self._count)[at]
        return joined[each * length : (each + 1) * length]

    @property
    def rows(self) -> Bytes:
        """A row of bytes for each."""
        return np.frombuffer(self.joined, dtype=np.uint8).reshape(self._count, self.length)

    def all_have(self, begin: int, end: int) -> bool:
        """Whether all have the bytes of the first in these places."""
        rows = self.rows[:, begin:end]
        return bool((rows == rows[0]).all())
