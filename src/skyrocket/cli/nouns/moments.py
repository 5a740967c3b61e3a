"""Times of brokers for rows: a moment, or nothing where there is none."""

from datetime import UTC, datetime


def moment(ms: int | None) -> datetime | None:
    """Milliseconds since 1970; None for 0 and less, which brokers say for never, and for what no calendar has."""
    if ms is None or ms <= 0:
        return None
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError):  # clients may say any number
        return None


def span(seconds: float | None) -> str | None:
    """A length of time for people: 850 ms, 12 s, 3.5 min, 2.1 h, 4.0 d."""
    if seconds is None:
        return None
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
