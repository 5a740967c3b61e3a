"""What Spark says against a statement, as a problem of the line that it stands in."""

import contextlib
import logging
import re
from collections.abc import Iterator, Sequence

from pyspark.errors import PySparkException, QueryContextType

from skyrocket.pipeline.declared.locations import Locations, Part
from skyrocket.pipeline.declared.problems import Problem, suggestion
from skyrocket.pipeline.options import nearest

_LINE_AND_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")


def problem_of(error: PySparkException, part: Part, text: str, locations: Locations, tables: Sequence[str]) -> Problem:
    """`text` is the statement that Spark was given, `tables` what it could have named."""
    location = locations.of(part, _index(error, text))
    parameters = error.getMessageParameters() or {}
    match (error.getCondition() or "").split("."):
        case ["TABLE_OR_VIEW_NOT_FOUND", *_]:
            wrong = parameters.get("relationName", "?").replace("`", "")
            return Problem(location, f"there is no source or former step {wrong}", suggestion(wrong, tables))
        case ["UNRESOLVED_COLUMN", *_]:
            wrong = parameters.get("objectName", "?").replace("`", "")
            proposal = [name.strip() for name in parameters.get("proposal", "").replace("`", "").split(",")]
            return Problem(location, f"there is no column {wrong}", _column_advice(wrong, proposal))
        case ["UNRESOLVED_ROUTINE", *_]:
            wrong = parameters.get("routineName", "?").replace("`", "")
            return Problem(location, f"there is no function {wrong}", "see the list of Spark SQL's functions")
        case ["PARSE_SYNTAX_ERROR", *_]:
            return Problem(
                location,
                f"syntax error at {parameters.get('error', '?')}",
                "this is not Spark SQL; check the words here",
            )
        case ["PARSE_EMPTY_STATEMENT", *_]:
            return Problem(location, "the statement is empty", "write `SELECT … FROM …`")
        case ["STREAMING_OUTPUT_MODE", *_]:
            step = "group by a window over a column with a watermark, or write `outputMode: update`"
            return Problem(location, _sentence(error), step)
    return Problem(location, _sentence(error), "change the statement here")


def _column_advice(wrong: str, proposal: Sequence[str]) -> str:
    known = [name for name in proposal if name]
    meant = nearest(wrong, known)
    if meant is not None:
        return f"did you mean {meant}?"
    return f"there are {', '.join(known)}" if known else "check its name, and what the former step selects"


def is_about_table(error: PySparkException, names: set[str]) -> bool:
    """Whether it only complains that one of these is not there."""
    if not (error.getCondition() or "").startswith("TABLE_OR_VIEW_NOT_FOUND"):
        return False
    return (error.getMessageParameters() or {}).get("relationName", "").replace("`", "") in names


def _index(error: PySparkException, text: str) -> int:
    """Where in the statement; Spark says it in one of two ways, or not at all."""
    with contextlib.suppress(AttributeError):  # some errors come from Python and have no context
        for context in error.getQueryContext() or ():
            if context.contextType() == QueryContextType.SQL:
                return int(context.startIndex())
    match = _LINE_AND_POSITION.search(str(error))
    if match is None:
        return 0
    lines = text.splitlines(keepends=True)
    return sum(map(len, lines[: int(match[1]) - 1])) + int(match[2])


def _sentence(error: PySparkException) -> str:
    """The first line of its message without its class and state, which the user has no use for."""
    text = (error.getMessage() or str(error)).strip().splitlines()[0]
    text = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", text)
    return re.sub(r"\.?\s*SQLSTATE: \w+.*$", "", text)


@contextlib.contextmanager
def without_log() -> Iterator[None]:
    """PySpark logs every wrong statement with two pages of Java; the problem itself is told."""
    loggers = [logging.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was_disabled in zip(loggers, before, strict=True):
            logger.disabled = was_disabled
