"""How rows get into a sink: as a query that goes on, or once."""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from skyrocket.pipeline.declared.frames import Output
from skyrocket.pipeline.declared.plan import ROCKETMQ, TABLE_FORMATS, Pipeline, Sink, Trigger
from skyrocket.pipeline.table_sink import append_batch, append_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_JDBC_NAMES: Final = {"table": "dbtable"}


def query_name(pipeline: Pipeline, sink: Sink) -> str:
    return f"{pipeline.name} ▸ {sink.name}"


def checkpoint_of(pipeline: Pipeline, sink: Sink) -> str:
    """Each sink is at a batch of its own."""
    return f"{pipeline.checkpoint_directory}/{sink.name}"


def start_query(pipeline: Pipeline, output: Output, namesrv: str, trigger: Trigger) -> "StreamingQuery":
    """The query behind a sink, from where its checkpoint says; what has failed can be started again."""
    sink = output.sink
    writer = output.rows.writeStream.outputMode(sink.output_mode)
    # A table in memory is called as its query.
    writer = writer.queryName(sink.name if sink.format == "memory" else query_name(pipeline, sink))
    writer = writer.option("checkpointLocation", checkpoint_of(pipeline, sink))
    if sink.partition_by and sink.format not in TABLE_FORMATS:
        writer = writer.partitionBy(*sink.partition_by)
    if trigger.seconds is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{round(trigger.seconds * 1000)} milliseconds")
    if sink.format == "jdbc":
        return writer.foreachBatch(partial(_append_by_jdbc, sink)).start()
    if sink.format in TABLE_FORMATS:
        return writer.foreachBatch(partial(append_batch, sink.format, sink.options, sink.partition_by)).start()
    return writer.format(sink.format).options(**_options(sink, namesrv)).start()


def write_once(output: Output, namesrv: str) -> None:
    """All rows of a table that has an end."""
    sink = output.sink
    if sink.format == "jdbc":
        _append_by_jdbc(sink, output.rows, 0)
    elif sink.format in TABLE_FORMATS:
        append_rows(sink.format, sink.options, sink.partition_by, output.rows)
    elif sink.format == "console":
        output.rows.show(int(sink.options.get("numRows", "20")), truncate=sink.options.get("truncate") != "false")
    elif sink.format == "memory":
        output.rows.createOrReplaceTempView(sink.name)
    else:
        writer = output.rows.write.format(sink.format).mode("append").options(**_options(sink, namesrv))
        (writer.partitionBy(*sink.partition_by) if sink.partition_by else writer).save()


def _options(sink: Sink, namesrv: str) -> dict[str, str]:
    if sink.format != ROCKETMQ:
        return dict(sink.options)
    usual = {"namesrvAddr": namesrv}
    if "properties" not in sink.message:
        usual["reservedProperties"] = "drop"  # of messages that are passed on: the broker will set its own
    return usual | dict(sink.options)


def _append_by_jdbc(sink: Sink, rows: "DataFrame", _batch: int) -> None:
    """A batch that fails after its rows were committed is written again: JDBC gives at-least-once."""
    options: dict[str, Any] = {_JDBC_NAMES.get(name, name): value for name, value in sink.options.items()}
    rows.write.format("jdbc").mode("append").options(**options).save()
