"""Which options a format has, so that a misspelt one is told with its line; None where Spark alone knows them all."""

from collections.abc import Sequence
from typing import Final

from skyrocket.pipeline.commit_log.settings import OPTIONS as LOG_OPTIONS
from skyrocket.pipeline.declared.plan import COMMIT_LOG, ROCKETMQ
from skyrocket.pipeline.topic_sink.settings import OPTION_NAMES as SINK_OPTIONS
from skyrocket.pipeline.topic_source.settings import OPTIONS as SOURCE_OPTIONS

_JDBC: Final = ("url", "table", "driver", "user", "password", "batchsize", "truncate", "isolationLevel")
_CONSOLE: Final = ("numRows", "truncate")
# The runner's own business; who gives them here would have two pipelines share one progress.
OURS: Final = ("initialOffsetsLocation", "checkpointLocation")


def source_options(kind: str) -> Sequence[str] | None:
    if kind == ROCKETMQ:
        return [name for name in SOURCE_OPTIONS if name not in OURS]
    return LOG_OPTIONS if kind == COMMIT_LOG else None


def sink_options(kind: str) -> Sequence[str] | None:
    if kind == ROCKETMQ:
        return [name for name in SINK_OPTIONS if name not in OURS]
    if kind == "jdbc":
        return _JDBC
    if kind == "console":
        return _CONSOLE
    return None
