"""Content ↔ bytes of a file: the `decode` and `encode` of every module in this folder."""

from typing import Generic, TypeVar

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import Field, bean

T = TypeVar("T")


class JsonFile(Generic[T]):
    """A file that holds one Java object; `content` is its dataclass."""

    def __init__(self, content: type[T], *derived: Field) -> None:
        self._kind = bean(content, *derived)

    def decode(self, data: bytes) -> T:
        """The content of the file; raises DataError for anything else."""
        return self._kind.read(loads(data))

    def encode(self, content: T, dialect: Dialect = Dialect.COMPACT) -> bytes:
        """The bytes of the file."""
        return dumps(self._kind.write(content, dialect), dialect)
