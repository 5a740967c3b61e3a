"""What is wrong in a pipeline file: `file.yml:LINE:COL: cause; next step`, all of it at once."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from skyrocket.errors import ConfigError
from skyrocket.pipeline.options import nearest


class Location(NamedTuple):
    """A character of a file; both numbers count from one."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Problem(NamedTuple):
    """One mistake, and what to do about it."""

    location: Location
    cause: str
    next_step: str

    def __str__(self) -> str:
        return f"{self.location}: {self.cause}; {self.next_step}"


class PipelineFileError(ConfigError):
    """The file cannot be run; every problem that was found, in the order of its lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: Sequence[Problem] = sorted(problems, key=lambda problem: problem.location)
        super().__init__("\n".join(map(str, self.problems)))

    @classmethod
    def at(cls, file: str | Path, cause: str, next_step: str, line: int = 1, column: int = 1) -> Self:
        """One problem, that of the whole file unless a line is given."""
        return cls([Problem(Location(str(file), line, column), cause, next_step)])


def suggestion(wrong: str, right: Sequence[str]) -> str:
    """A next step for a name that nobody knows."""
    meant = nearest(wrong, right)
    if meant is not None:
        return f"did you mean {meant}?"
    return f"known are {', '.join(right)}" if right else "none can stand here"
