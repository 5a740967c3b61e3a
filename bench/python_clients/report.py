"""What was measured, kept per system, so that a long comparison can be made in several quiet quarters of an hour."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.python_clients.system import Row

BEGIN, END = "<!-- python -m bench.python_clients --last --write-docs -->", "<!-- end of bench.python_clients -->"
TITLES = (
    "",
    "an acknowledgement means",
    "64 awaited sends /s",
    "server µs",
    "client µs",
    "batched sends /s",
    "server µs",
    "one by one /s",
    "client µs",
    "in bulk /s",
    "client µs",
    "as Arrow /s",
    "p50 / p99 ms",
    "MB idle / loaded",
    "s to first message",
)
_PREFIX = "python-"


def save(folder: Path, key: str, row: Row) -> Path:
    """The newest figures of one system."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_PREFIX}{key}.json"
    path.write_text(json.dumps(asdict(row), ensure_ascii=False, indent=1) + "\n")
    return path


def load(folder: Path, keys: Sequence[str]) -> list[Row]:
    """The newest figures of these systems, as far as there are any."""
    paths = [folder / f"{_PREFIX}{key}.json" for key in keys]
    return [Row(**json.loads(path.read_text())) for path in paths if path.exists()]


def title(rows: Sequence[Row], cores: int) -> str:
    """When and where."""
    times, loads = sorted(row.measured_at for row in rows), sorted(row.load_before for row in rows)
    between = f"{times[0]} UTC" if times[0] == times[-1] else f"{times[0]} to {times[-1]} UTC"
    return f"Measured {between}, {cores} cores; load before each {loads[0]:.1f} to {loads[-1]:.1f}"


def table(rows: Sequence[Row], left_out: dict[str, str]) -> str:
    """As Markdown."""
    lines = ["| " + " | ".join(TITLES) + " |", "|---|---" + "|--:" * (len(TITLES) - 2) + "|"]
    lines += ["| " + " | ".join(_cells(row)) + " |" for row in rows]
    return "\n".join([*lines, *(f"\nNo {name}: {reason}" for name, reason in left_out.items())])


def _cells(row: Row) -> list[str]:
    return [
        row.name,
        row.promise,
        f"{row.awaited_rate:,.0f}",
        f"{row.awaited_server_cpu_us:.1f}",
        f"{row.awaited_client_cpu_us:.1f}",
        f"{row.batched_rate:,.0f}",
        f"{row.batched_server_cpu_us:.1f}",
        f"{row.one_by_one_rate:,.0f}",
        f"{row.one_by_one_client_cpu_us:.1f}",
        f"{row.bulk_rate:,.0f}",
        f"{row.bulk_client_cpu_us:.1f}",
        "–" if row.columns_rate is None else f"{row.columns_rate:,.0f}",
        f"{row.latency_p50_ms:.2f} / {row.latency_p99_ms:.2f}",
        f"{row.idle_mb:.0f} / {row.loaded_mb:.0f}",
        f"{row.first_message_s:.2f}",
    ]
