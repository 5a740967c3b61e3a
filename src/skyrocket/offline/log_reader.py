"""Single records of the log, by physical offset."""

from skyrocket.errors import CorruptRecord
from skyrocket.format import record
from skyrocket.offline.offset_files import OffsetFiles


class LogReader:
    """Answers what stands at a physical offset."""

    def __init__(self, log: OffsetFiles) -> None:
        self._log = log

    def head_at(self, physical_offset: int) -> record.RecordHead | None:
        """The record that begins here; None when there is no intact one."""
        data = self.record_at(physical_offset)
        try:
            return record.read_head(data, 0, physical_offset) if data else None
        except CorruptRecord:
            return None

    def record_at(self, physical_offset: int) -> bytes:
        """The bytes that a record beginning here would have; empty when its size is impossible."""
        file = self._log.file_of(physical_offset)
        head = self._log.read(physical_offset, record.BLANK_SIZE)
        if file is None or len(head) < record.BLANK_SIZE:
            return b""
        size, _magic = record.BLANK.unpack(head)
        if not record.SMALLEST_RECORD <= size <= file.end - physical_offset:
            return b""
        return self._log.read(physical_offset, size)

    def store_timestamp_at(self, physical_offset: int) -> int | None:
        """The store time of the record that begins here."""
        head = self.head_at(physical_offset)
        return head.store_timestamp if head is not None else None
