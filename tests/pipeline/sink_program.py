"""A driver that dies: a stream of files into a topic, whose first task fails once and whose driver is killed.

    python tests/pipeline/sink_program.py NAME_SERVERS TOPIC INPUT CHECKPOINT when

`when` is `before` the sink's commit, or `after` it (and before Spark writes down that the batch is done).
"""

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from skyrocket.pipeline.session import session
from skyrocket.pipeline.topic_sink.connection import connection
from skyrocket.pipeline.topic_sink.input_columns import InputColumns, input_columns
from skyrocket.pipeline.topic_sink.settings import SinkSettings, sink_settings
from skyrocket.pipeline.topic_sink.task import existing_ends
from skyrocket.pipeline.topic_sink.writers import TopicStreamWriter
from skyrocket.pipeline.topic_source.data_source import TopicDataSource


class DyingWriter(TopicStreamWriter):
    """The sink with two faults."""

    def __init__(self, settings: SinkSettings, columns: InputColumns, driver: int, when: str) -> None:
        super().__init__(settings, columns)
        self.driver = driver
        self.when = when

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0 and context.attemptNumber() == 0:
            return super().write(self._failing(iterator))
        return super().write(iterator)

    def _failing(self, iterator: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(iterator)
        opened = connection(self._settings)
        assert self._settings.topic is not None
        while not any(opened.run(existing_ends(opened.producer, self._settings.topic)).values()):
            time.sleep(0.05)
        raise RuntimeError("this task fails in the middle")

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        if self.when == "after":
            super().commit(messages, batchId)
        os.kill(self.driver, signal.SIGKILL)
        time.sleep(60)


class DyingSource(TopicDataSource):
    """format("dying")."""

    @classmethod
    def name(cls) -> str:
        return "dying"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        options: dict[str, Any] = dict(self.options)
        driver, when = int(options.pop("driver")), options.pop("when")
        settings = sink_settings(options, is_stream=True)
        return DyingWriter(settings, input_columns(schema, settings.topic), driver, when)


def main(names: str, topic: str, source: str, checkpoint: str, when: str) -> None:
    conf = {
        "spark.ui.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
        "spark.driver.memory": "1g",
    }
    spark = session("dies", "local[2,4]", conf)
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(DyingSource)
    gateway: Any = spark.sparkContext._jvm
    jvm = int(gateway.java.lang.ProcessHandle.current().pid())
    query = (
        spark.readStream.text(source)
        .withColumnRenamed("value", "body")
        .writeStream.format("dying")
        .option("namesrvAddr", names)
        .option("topic", topic)
        .option("driver", str(jvm))
        .option("when", when)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(380)


if __name__ == "__main__":
    main(*sys.argv[1:])
