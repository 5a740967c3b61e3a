"""What mqadmin prints: lines, and tables in the widths that RocketMQ gives them; or their rows as JSON or CSV.

Widths are those of `%-32s` formats, as RocketMQ has them: scripts cut columns by place. Text of strangers is escaped.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from skyrocket.cli.output.rows import Column, Output, rendered
from skyrocket.cli.output.text import visible, visible_lines
from skyrocket.cli.output.writing import write


class Printer:
    """Writes as it is told, at once; rows for scripts are gathered and written by `end`."""

    def __init__(self, output: Output = Output.TABLE) -> None:
        self._output = output
        self._titles: list[str] = []
        self._rows: list[dict[str, Any]] = []

    @property
    def is_for_people(self) -> bool:
        return self._output.is_for_people

    def text(self, text: str) -> None:
        """As it is, without an end of line; for people alone."""
        if self.is_for_people:
            write(visible_lines(text))

    def line(self, text: str = "") -> None:
        """One line; for people alone."""
        self.text(text + "\n")

    def table(
        self, form: str, titles: Sequence[str], rows: Iterable[Sequence[Any]], *, row_form: str | None = None
    ) -> None:
        """A heading and rows in Java's format; the heading is written before the first row is made."""
        self.text(form % tuple(titles) + "\n")
        self.rows(row_form or form, titles, rows)

    def rows(self, form: str, titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Rows without a heading."""
        keys = [title.removeprefix("#").strip() for title in titles]
        self._titles += [key for key in keys if key not in self._titles]
        for row in rows:
            self.text(form % tuple(visible(each) if isinstance(each, str) else each for each in row) + "\n")
            self._rows.append(dict(zip(keys, row, strict=True)))

    def pairs(self, form: str, pairs: Iterable[tuple[str, Any]]) -> None:
        """`key : value` lines."""
        self.rows(form, ("key", "value"), pairs)

    def end(self) -> None:
        """Write what scripts get."""
        if not self.is_for_people:
            write(rendered([Column(title) for title in self._titles], self._rows, self._output))
