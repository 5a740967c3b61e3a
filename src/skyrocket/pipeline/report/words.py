"""Numbers with their words."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 finding`, `2 findings`, `1,234 findings`; `no findings` where there are none."""
    words = one if count == 1 else many or f"{one}s"
    return f"{count:,} {words}" if count else f"no {words}"
