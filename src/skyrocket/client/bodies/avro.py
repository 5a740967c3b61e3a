"""Avro bodies: the schema is given, by those who write as by those who read.

    OrderBody = Annotated[Order, Avro(open("order.avsc").read())]

    @consumer.on("Orders")
    async def paid(body: OrderBody) -> None: ...

    await producer.send("Orders", Order(…), codec=Avro(schema))

`pip install 'skyrocket[avro]'`. Bodies have no header: they are one datum of the schema, as schemaless writers make it.
"""

import dataclasses
import io
import json
from collections.abc import Mapping
from typing import Any

from skyrocket.client.bodies.codecs import BodyCodec, FunctionCodec, plain
from skyrocket.client.bodies.values import NotReadable, converter_of
from skyrocket.client.core.errors import WrongUse
from skyrocket.schemas.avro_bounds import Bounds
from skyrocket.schemas.numbered import BodyUnreadable


class Avro:
    """One schema, as text or as what its JSON says."""

    def __init__(self, schema: str | Mapping[str, Any]) -> None:
        try:
            import fastavro
        except ImportError:
            raise WrongUse("Avro bodies need fastavro: pip install 'skyrocket[avro]'") from None
        self._library = fastavro
        named: dict[str, Any] = {}
        described = json.loads(schema) if isinstance(schema, str) else dict(schema)
        self._schema = fastavro.parse_schema(described, named_schemas=named)
        self._bounds = Bounds(self._schema, named)

    def of(self, kind: Any) -> BodyCodec[Any]:
        """A codec whose values are of this type: a dataclass, a model, a TypedDict, or the plain dict."""
        if kind in (dict, Any):
            return FunctionCodec(self.encode, self.decode)
        convert = converter_of(kind)  # takes the UUIDs, Decimals and dates that fastavro has made as they are
        return FunctionCodec(self.encode, lambda body: convert(self.decode(body)))

    def encode(self, value: Any) -> bytes:
        """One datum; raises ValueError for what does not fit the schema."""
        out = io.BytesIO()
        try:
            self._library.schemaless_writer(out, self._schema, _record(value))
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # its words for a value of another shape
            raise ValueError(f"{value!r} does not fit the Avro schema: {error}") from error
        return out.getvalue()

    def decode(self, body: bytes) -> Any:
        """The datum as plain values; raises NotReadable, also for few bytes that say more than fits into memory."""
        source = io.BytesIO(body)
        try:
            self._bounds.check(body)
            found = self._library.schemaless_reader(source, self._schema, None)
        except BodyUnreadable as error:
            raise NotReadable(str(error)) from error
        except (ArithmeticError, EOFError, LookupError, StopIteration, ValueError) as error:
            raise NotReadable(f"the body is no datum of the Avro schema: {error!r}") from error
        if source.read(1):
            raise NotReadable("bytes are left behind the datum: the body has another Avro schema")
        return found


def _record(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if hasattr(type(value), "model_dump"):
        return value.model_dump()
    if hasattr(type(value), "__struct_fields__"):
        return plain(value)
    return value
