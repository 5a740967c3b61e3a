"""Numbers with their words, as sentences for people have them."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 broker`, `2 brokers`, `1,234 brokers`, `0 brokers`; `many` where it is not `one` with an s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
