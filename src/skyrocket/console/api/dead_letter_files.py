"""Dead letters as files: a table for spreadsheets, and columns with whole bodies."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from skyrocket.client.consumer.dead_letter_cause import cause_of
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.console.api.values import BadInput
from skyrocket.errors import DataError


class CsvFile:
    """One line for each."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._out = io.StringIO()
        self._writer = csv.writer(self._out)
        self._writer.writerow(names)

    def take(self, rows: Iterable[object]) -> bytes:
        """The next part of the file."""
        for row in rows:
            self._writer.writerow([_cell(getattr(row, name)) for name in self._names])
        part = self._out.getvalue().encode()
        self._out.seek(0)
        self._out.truncate()
        return part


def _cell(value: Any) -> Any:
    """Spreadsheets take what begins so for a formula."""
    text = " ".join(value) if isinstance(value, list) else value
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


class _Parts:
    """What pyarrow takes for a file, of which each part is handed on."""

    closed = False

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._given = 0

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._bytes += part
        return len(part)

    def tell(self) -> int:
        return self._given + len(self._bytes)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def given(self) -> bytes:
        part = bytes(self._bytes)
        self._given += len(part)
        self._bytes.clear()
        return part


class ParquetFile:
    """One row for each; what is taken at once is a group of rows."""

    def __init__(self) -> None:
        """Raises BadInput where pyarrow is missing."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise BadInput(
                "Parquet needs pyarrow beside the console: pip install pyarrow, or take csv or json"
            ) from None
        text = pa.string()
        self._schema = pa.schema(
            {
                "message_id": text,
                "topic": text,
                "died_at": pa.timestamp("ms", "UTC"),
                "attempts": pa.int32(),
                "keys": pa.list_(text),
                "tags": text,
                "error": text,
                "error_message": text,
                "host": text,
                "properties": pa.map_(text, text),
                "body": pa.binary(),
                "trouble": text,
            }
        )
        self._table_of = pa.Table.from_pylist
        self._parts = _Parts()
        self._writer = pq.ParquetWriter(self._parts, self._schema)

    def take(self, messages: Sequence[ReceivedMessage]) -> bytes:
        """The next part of the file."""
        if messages:
            self._writer.write_table(self._table_of([_record(message) for message in messages], self._schema))
        return self._parts.given()

    def end(self) -> bytes:
        """The last part, without which there is no file."""
        self._writer.close()
        return self._parts.given()


def _record(message: ReceivedMessage) -> dict[str, Any]:
    cause = cause_of(message)
    body, trouble = None, None
    try:
        body = message.body
    except DataError as error:  # it cannot be unpacked: all others are wanted nevertheless
        trouble = str(error)
    return {
        "message_id": message.message_id,
        "topic": message.topic,
        "died_at": message.store_timestamp,
        "attempts": message.reconsume_times,
        "keys": list(message.keys),
        "tags": message.tags,
        "error": None if cause is None else cause.error_type,
        "error_message": None if cause is None else cause.error_message,
        "host": None if cause is None else cause.host,
        "properties": list(message.properties.items()),
        "body": body,
        "trouble": trouble,
    }
