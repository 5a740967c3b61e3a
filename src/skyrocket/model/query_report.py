"""What a Spark query tells of itself: a small text under its group's name, among the values that name servers keep.

Anybody who reaches a name server can write there, so a reader trusts nothing: what is not a report is no report.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias, cast, get_args

State: TypeAlias = Literal["running", "ended", "failed"]

QUERIES: Final = "SKYROCKET_QUERIES"  # the namespace
_STATES: Final = get_args(State)
_SEPARATOR: Final = "/"  # no group has one in its name
_MOST_KEY: Final = 250
_MOST_NAME: Final = 120
_MOST_SINK: Final = 200
_MOST_URL: Final = 500
_MOST_TEXT: Final = 8192  # all of it; above what our own fields can come to
_MOST_NUMBER: Final = 1 << 53  # browsers know larger ones only nearly


@dataclass(frozen=True, slots=True)
class QueryReport:
    """One query, as it was at a moment."""

    name: str  # "" for a query without one
    query_id: str  # stays with the checkpoint
    run_id: str  # of each start
    state: State
    batch: int | None  # None before the first
    rows_per_second: float | None
    sink: str
    url: str  # of the query's page in the Spark UI; "" where there is none
    reported_ms: int

    def text(self) -> str:
        """As it is kept; long names are cut, so that a report stays small."""
        kept = asdict(self)
        for name, most in (("name", _MOST_NAME), ("sink", _MOST_SINK), ("url", _MOST_URL)):
            kept[name] = kept[name][:most]
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def key_of(group: str, query: str) -> str:
    """Where the report of a query is kept: by its name, or by its id if it has none."""
    return f"{group}{_SEPARATOR}{query}"[:_MOST_KEY]


def group_of(key: str) -> str:
    """The group that a report is about."""
    return key.partition(_SEPARATOR)[0]


def report_of(text: str) -> QueryReport | None:
    """The report in a text; None when it is none: of another form, too long, or with numbers that cannot be."""
    if len(text) > _MOST_TEXT:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("state") not in _STATES or not _is_whole(found.get("reported_ms")):
        return None
    texts = [_text(found.get(name)) for name in ("name", "query_id", "run_id", "sink", "url")]
    if None in texts:
        return None
    name, query_id, run_id, sink, url = cast(list[str], texts)
    batch: Any = found.get("batch")
    rate: Any = found.get("rows_per_second")
    return QueryReport(
        name=name,
        query_id=query_id,
        run_id=run_id,
        state=found["state"],
        batch=batch if _is_whole(batch) else None,
        rows_per_second=float(rate) if _is_rate(rate) else None,
        sink=sink,
        url=url,
        reported_ms=found["reported_ms"],
    )


def _text(value: Any) -> str | None:
    """A text that can be written as UTF-8; JSON can also hold halves of a pair of surrogates."""
    if not isinstance(value, str):
        return None
    return value if value.encode("utf-8", "ignore").decode() == value else None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_NUMBER


def _is_rate(value: Any) -> bool:
    """NaN, which Python's JSON knows, is in no range."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST_NUMBER
