"""One split → Arrow batches of messages, or of damaged regions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from skyrocket.columns import BadBody, decode_parts
from skyrocket.columns.schema import arrow_schema
from skyrocket.errors import CorruptFile
from skyrocket.format.record import Buffer
from skyrocket.format.record_columns import Parts, examine
from skyrocket.pipeline.commit_log.damage import DamagedRegion, damage_batch, damage_error, keep_damage, region
from skyrocket.pipeline.commit_log.settings import CommitLogSettings
from skyrocket.pipeline.commit_log.splits import Split
from skyrocket.pipeline.commit_log.walk import split_records

_FEW_ROWS = 4096  # smaller batches are joined: each costs Spark a fixed amount
_PROPERTY_COLUMNS = ("tags", "keys", "uniqKey")
_FOR_CHECKING = arrow_schema(["body"])


@dataclass(slots=True)
class SplitReader:
    """Reads one split; `damage` fills while it does."""

    split: Split
    settings: CommitLogSettings
    wanted: pa.Schema
    damage: list[DamagedRegion] = field(default_factory=list)

    def messages(self) -> Iterator[pa.RecordBatch]:
        """The wanted messages; raises at damage, or notes it, as the settings say."""
        yield from _joined(self._message_batches())
        if self.settings.damage_location is not None:
            keep_damage(self.settings.damage_location, self.split, self.damage)

    def damaged_regions(self) -> Iterator[pa.RecordBatch]:
        """The damage of the split as rows. Bodies are unpacked as well, unless the settings keep them packed."""
        for buffer, parts in self._walk():
            if self.settings.decompress:
                for _ in self._decoded(buffer, parts, _FOR_CHECKING):
                    pass
        if self.damage:
            yield damage_batch(self.damage, self.wanted)

    def _message_batches(self) -> Iterator[pa.RecordBatch]:
        selection = self.settings.selection
        columns = self.wanted
        if selection.by_property:  # messages inside batches can be judged only when they are decoded
            missing = [name for name in _PROPERTY_COLUMNS if name not in columns.names]
            columns = pa.schema([*columns, *arrow_schema(missing)])
        for buffer, parts in self._walk():
            chosen = selection.of_records(buffer, parts)
            if not len(chosen):
                continue
            for batch in self._decoded(buffer, chosen, columns):
                if selection.by_property:
                    batch = batch.filter(selection.of_rows(*(batch.column(name) for name in _PROPERTY_COLUMNS)))
                yield batch.select(self.wanted.names)

    def _walk(self) -> Iterator[tuple[Buffer, Parts]]:
        try:
            yield from split_records(self.split, self._note, verify_crc=self.settings.verify_crc)
        except FileNotFoundError as error:
            remedy = "Load the DataFrame again, or read a copy of the store; a longer fileReservedTime gives more time"
            raise CorruptFile(self.split.path, "the file was deleted after the read was planned", remedy) from error

    def _decoded(self, buffer: Buffer, parts: Parts, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The columns of records; one whose body does not unpack is damage, and the others go on."""
        while len(parts):
            try:
                settings, name = self.settings, self.split.broker_name
                yield decode_parts(buffer, parts, columns, name, settings.decompress, settings.properties)
                return
            except BadBody as bad:
                row = int(np.searchsorted(parts.positions, bad.position))
                self._note(region(self.split, bad.position, int(parts.sizes[row]), bad.reason))
                parts = examine(buffer, np.delete(parts.positions, row), None)

    def _note(self, found: DamagedRegion) -> None:
        if not self.settings.report_damage and not self.settings.damage_view:
            raise damage_error(found)
        self.damage.append(found)


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Few rows are kept back until there are more of them."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if not waiting and batch.num_rows >= _FEW_ROWS:
            yield batch
            continue
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _FEW_ROWS:
            yield pa.concat_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.concat_batches(waiting)
