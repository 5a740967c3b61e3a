"""How fast a broker compares: SQL92 over properties beside tags. `python -m bench.filters`

Both as a pull does it, with the properties of a stored message; the best of many short rounds.
"""

import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from skyrocket.broker.rules.subscriptions import property_test
from skyrocket.format.java_hash import java_hash
from skyrocket.format.properties import encode_properties, find_property

EXPRESSION = "a > 5 AND b IN ('x','y') OR c IS NOT NULL"
_ROUNDS, _CALLS = 60, 2000


def main() -> None:
    """Print evaluations per second and core."""
    messages = [
        encode_properties({"KEYS": f"k{number}", "TAGS": "TagA", "a": str(number % 12), "b": "xyz"[number % 3]})
        for number in range(_CALLS)
    ]
    wanted = frozenset({java_hash("TagA"), java_hash("TagB")})
    sql = property_test(EXPRESSION)
    entries = [java_hash((find_property(message, b"TAGS") or b"").decode()) for message in messages]
    table = Table("filter", "evaluations/s", "of the tag filter's")
    tags_rate = _rate(lambda: [entry in wanted for entry in entries])
    sql_rate = _rate(lambda: [sql(message) for message in messages])
    table.add_row("tags, at the queue's entry", f"{tags_rate:,.0f}", "1.00")
    table.add_row(f"SQL92: {EXPRESSION}", f"{sql_rate:,.0f}", f"{sql_rate / tags_rate:.3f}")
    Console().print(table)


def _rate(round_of: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        began = time.thread_time()
        round_of()
        best = min(best, time.thread_time() - began)
    return _CALLS / best


if __name__ == "__main__":
    main()
