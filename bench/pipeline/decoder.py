"""The decoder alone, one thread in processor time, beside what any reader must at least do with the same bytes."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from bench.pipeline.logs import LogShape
from bench.pipeline.measure import Rate, best_of, cpu_of
from skyrocket.columns import decode_parts
from skyrocket.columns.schema import PropertiesForm, arrow_schema
from skyrocket.columns.slices import slices
from skyrocket.format.column_walk import BATCH_RECORDS, ColumnWalk, record_positions
from skyrocket.format.dtypes import Int64s
from skyrocket.format.record import Buffer
from skyrocket.format.record_columns import Parts, examine
from skyrocket.pipeline.commit_log.log_files import mapped

HEADER_COLUMNS = ("queueId", "queueOffset", "commitLogOffset")


def floor(path: Path, shape: LogShape, log_bytes: int, times: int) -> tuple[Rate, Rate]:
    """Read the file once, and let Arrow copy every record once: in processor time, and by the clock."""
    with mapped(path) as buffer:
        positions = record_positions(buffer, 0, log_bytes, int(path.name)).positions
        batches = [examine(buffer, piece, None) for piece in _pieces(positions)]

        def read_and_copy() -> None:
            target = bytearray(1 << 23)
            with path.open("rb", buffering=0) as file:
                for _ in range(-(-log_bytes // len(target))):
                    file.readinto(target)
            data = pa.py_buffer(buffer)
            for parts in batches:
                slices(data, parts.positions, parts.sizes)

        return (
            Rate("floor: raw read + Arrow copy, CPU", shape.messages, log_bytes, cpu_of(times, read_and_copy)),
            Rate("floor: raw read + Arrow copy, clock", shape.messages, log_bytes, best_of(times, read_and_copy)),
        )


def decoder(path: Path, shape: LogShape, log_bytes: int, times: int) -> list[Rate]:
    """Walk, known offsets, all columns, few columns."""
    small = shape.body_bytes <= 256
    base = int(path.name)
    with mapped(path) as buffer:
        positions = record_positions(buffer, 0, log_bytes, base).positions

        def rate(what: str, design: tuple[float, float] | None, work: Callable[[], object]) -> Rate:
            spec = None if design is None else design[0 if small else 1]
            return Rate(what, shape.messages, log_bytes, cpu_of(times, work), spec)

        return [
            rate("decoder: walk and checks", (1.9, 1.9), lambda: _walked(buffer, base, log_bytes, None)),
            rate("decoder: walk + all columns", (1.35, 0.95), lambda: _walked(buffer, base, log_bytes, "map")),
            rate("decoder: known offsets + all columns", (1.95, 1.0), lambda: _known(buffer, positions, "map")),
            rate("decoder: known offsets, raw properties", (2.3, 1.4), lambda: _known(buffer, positions, "raw")),
            rate("decoder: walk + three header columns", None, lambda: _walked(buffer, base, log_bytes, "none")),
        ]


def _walked(buffer: Buffer, base: int, end: int, form: PropertiesForm | None) -> None:
    schema = arrow_schema(HEADER_COLUMNS if form == "none" else None, form or "map")
    for parts in ColumnWalk(buffer, 0, end, base):
        assert isinstance(parts, Parts)
        if form is not None:
            decode_parts(buffer, parts, schema, "a", properties=form)


def _known(buffer: Buffer, positions: Int64s, form: PropertiesForm) -> None:
    schema = arrow_schema(properties=form)
    for piece in _pieces(positions):
        decode_parts(buffer, examine(buffer, piece, None), schema, "a", properties=form)


def _pieces(positions: Int64s) -> list[Int64s]:
    return [positions[start : start + BATCH_RECORDS] for start in range(0, len(positions), BATCH_RECORDS)]
