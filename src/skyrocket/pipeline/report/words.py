"""Numbers with their words, as reports have them."""

from skyrocket.model import words


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 finding`, `2 findings`, `1,234 findings`; `no findings` where there are none."""
    return words.counted(count, one, many) if count else f"no {many or f'{one}s'}"
